// The attention weights of the text that is looked at, fetched part by part: those that are shown first, then all others.

import { kindsOf } from "./kinds.js";
import { on, state } from "./state.js";

/** How many weights one answer should have: more would make the page wait. */
const AT_ONCE = 500_000;

let fetchAttention;
/** `placesOf(kind)` has every layer and head of a kind, the mean of all heads behind the heads. */
let placesOf;
/** What has come, by kind and by part of the scores: the tokens (`answer`), and the maps by layer and head. */
let known = {};
/** The means of all heads, of all kinds and layers: they are asked for first, and once. */
let means = null;
/** Ends what is under way when another text is looked at. */
let underWay = new AbortController();

/**
 * `fetch({ kinds, layers, heads }, signal)` gets attention weights; `places(kind)` are the layers and heads that there are. It must be
 * called before the parts that draw weights listen for another text.
 */
export function start(fetch, places = ofModel) {
  fetchAttention = (wanted) => fetch(wanted, underWay.signal);
  placesOf = places;
  on("subject", forget);
}

/** Forgets what belongs to another text. */
function forget() {
  underWay.abort();
  underWay = new AbortController();
  known = {};
  means = null;
}

/** Every layer and head of the model that is chosen. */
function ofModel(kind) {
  const { encoder_layers, decoder_layers, h, decoder_h } = state.model.details;
  const [layers, heads] = kind === "encoder" ? [encoder_layers, h] : [decoder_layers, decoder_h ?? h];
  const all = [...Array(heads).keys(), null];
  return Array.from({ length: layers }, (_, layer) => all.map((head) => ({ layer, head }))).flat();
}

/** The same place of a kind of attention, or one that this kind has: the last is the mean of the last layer. */
export function nearest({ kind, layer, head }) {
  const places = placesOf(kind);
  const found = places.find((place) => place.layer === layer && place.head === head) ?? places.findLast((place) => place.head === head);
  return { kind, ...(found ?? places.at(-1)) };
}

const nameOf = ({ layer, head }) => `${layer}/${head}`;

const ofKind = (kind, part) => (known[`${kind} ${part ?? ""}`] ??= { maps: new Map(), answer: null });

/** Gets the means of all heads. Of a long text and many layers they may be too much for one answer: then each comes when it is shown. */
async function getMeans() {
  const before = known;
  try {
    const answer = await fetchAttention({ kinds: kindsOf(state.model.details), heads: [null] });
    if (known !== before) return;
    new Set(answer.attention.map(({ kind }) => kind)).forEach((kind) => take(kind, null, answer));
  } catch (error) {
    if (error.status !== 413) throw error;
  }
}

/** The means, which are asked for once, and again after a failure. */
function theMeans() {
  if (!means) {
    const own = (means = getMeans());
    own.catch(() => {
      if (means === own) means = null;
    });
  }
  return means;
}

/** The map of one layer and head, together with the tokens: `{ map, answer }`. With a `part` of the scores its weights come from that. */
export async function mapOf({ kind, layer, head }, part = null) {
  await theMeans();
  const own = ofKind(kind, part);
  const name = nameOf({ layer, head });
  if (!own.maps.has(name)) take(kind, part, await fetchAttention({ kinds: [kind], layers: [layer], heads: [head], ...(part && { part }) }));
  return { map: own.maps.get(name), answer: own.answer };
}

/** The maps of a kind: those that are known, in the order of layers and heads; the others without weights. */
export function mapsOf(kind, part = null) {
  const { maps } = ofKind(kind, part);
  return placesOf(kind).map((place) => maps.get(nameOf(place)) ?? { ...place, weights: null });
}

/** Fetches all that is missing of a kind, and calls `onmore` whenever some of it has come. `isWanted` says whether to go on. */
export async function complete(kind, part, onmore, isWanted) {
  const own = ofKind(kind, part);
  const [{ rows, columns }] = own.maps.values();
  const missing = placesOf(kind).filter((place) => !own.maps.has(nameOf(place)));
  if (missing.length === 0) return;
  for (const wanted of requests(kind, missing, rows * columns)) {
    take(kind, part, await fetchAttention({ kinds: [kind], ...wanted, ...(part && { part }) }));
    if (!isWanted() || ofKind(kind, part) !== own) return;
    onmore();
  }
}

/** Requests for what is missing: all at once, or layer by layer, or a few heads of a layer at a time. */
function requests(kind, missing, weights) {
  if (placesOf(kind).length * weights <= AT_ONCE) return [{}];
  const layers = [...new Set(missing.map(({ layer }) => layer))];
  const together = Math.max(1, Math.floor(AT_ONCE / weights));
  return layers.flatMap((layer) => {
    const heads = missing.filter((place) => place.layer === layer).map(({ head }) => head);
    return Array.from({ length: Math.ceil(heads.length / together) }, (_, i) =>
      ({ layers: [layer], heads: heads.slice(i * together, (i + 1) * together) }));
  });
}

function take(kind, part, answer) {
  const own = ofKind(kind, part);
  own.answer ??= answer;
  const isOwn = (map) => map.kind === kind && (map.part ?? null) === part;
  answer.attention.filter(isOwn).forEach((map) => own.maps.set(nameOf(map), map));
}
