// A page with the attention of one sentence, which needs no server: `attentive inspect` writes it.

import * as attention from "./attention.js";
import * as dictionary from "./dictionary.js";
import { byId } from "./dom.js";
import { change, state } from "./state.js";
import * as steps from "./steps.js";
import * as theme from "./theme.js";
import { label } from "./tokens.js";
import * as weights from "./weights.js";
import * as model from "./whole.js";

const { attention: seen, details, vectors, hidden } = JSON.parse(byId("data").textContent);
const whole = seen.attention.filter(({ part }) => !part);
// A page that would be too large has no weights of parts, and offers none.
if (whole.length === seen.attention.length) whole.forEach((map) => (map.biased = false));
const ofKind = (kind) => whole.filter((map) => map.kind === kind);
const kinds = [...new Set(whole.map(({ kind }) => kind))];

/** Whether the page has every layer: it may have been written for one of them. */
const hasAll = kinds.every((kind) => {
  const layers = kind === "encoder" ? details.encoder_layers : details.decoder_layers;
  return ofKind(kind).filter(({ head }) => head === null).length === layers;
}) && kinds.length === (details.encoder_layers && details.decoder_layers ? 3 : 1);

function trouble(error) {
  byId("trouble").textContent = error?.message ?? "";
  byId("trouble").hidden = error === null;
}

/** The vectors of a head, or null if the page was written without them. */
const vectorsOf = async (look) =>
  vectors.find(({ kind, layer, head }) => kind === look.kind && layer === look.layer && head === look.head) ?? null;

/** The hidden states of a step. */
const hiddenOf = async ({ stack, point, layer }) =>
  hidden.find((states) => states.stack === stack && states.point === point && states.layer === layer);

/** The token that was written, and how probable it was. */
async function written(row) {
  const token = seen.target[row];
  return token?.logprob === undefined ? null : [[label(token), Math.exp(token.logprob)]];
}

state.model = { details: { ...details, kinds } };
weights.start(async () => seen, ofKind);
attention.offer(kinds);
theme.start();
if (hasAll) model.start(written, hiddenOf, trouble);
byId("whole").hidden = !hasAll;
attention.start(trouble);
dictionary.start();
steps.start(vectorsOf, trouble);
const { kind, layer, head } = whole.at(-1);
change("look", { kind, layer, head });
change("subject", { number: 1 });
