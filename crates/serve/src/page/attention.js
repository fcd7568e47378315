// The part of the page that shows what looks at what.

import { busyWith, byId, chosen } from "./dom.js";
import { grid, nameOf } from "./grid.js";
import { heatmap } from "./heatmap.js";
import { lines } from "./lines.js";
import { fixed } from "./numbers.js";
import { saveButtons } from "./save.js";
import { change, on, state } from "./state.js";
import { label } from "./tokens.js";

/** What each kind of attention is, for people. */
const KINDS = {
  encoder: {
    name: "encoder self-attention",
    hint: "Each source token (a row) attends to all source tokens (columns).",
    rows: "source (queries)", columns: "source (keys)",
  },
  decoder: {
    name: "decoder self-attention",
    hint: "To predict a target token (a row), the decoder attends to the tokens before it (columns). "
      + "Later tokens are masked.",
    rows: "target (queries)", columns: "target so far (keys)",
  },
  cross: {
    name: "cross attention",
    hint: "To predict a target token (a row), the decoder attends to the source tokens (columns).",
    rows: "target (queries)", columns: "source (keys)",
  },
  causal: {
    name: "causal self-attention",
    hint: "Each token (a row) attends to itself and to the tokens before it (columns). Later tokens are masked.",
    rows: "text (queries)", columns: "text so far (keys)",
  },
};

/** What a decoder is shown before it has written anything, whatever its own name is. */
const START = { piece: "(start)", word: null };

/** Asks for one kind of attention; set by whoever knows where it comes from. */
let fetchAttention;
/** What has been fetched of the translation that is looked at, by kind. */
let fetched = {};
let trouble;

/** Begins to show attention. `fetch(kind)` gets it, `ontrouble(error)` hears what went wrong. */
export function start(fetch, ontrouble) {
  [fetchAttention, trouble] = [fetch, ontrouble];
  document.querySelectorAll("input[name=kind]").forEach((input) =>
    input.addEventListener("change", () => choose({ ...state.look, kind: input.value })));
  document.querySelectorAll("input[name=view]").forEach((input) => input.addEventListener("change", draw));
  // The last layer has the words behind it, and mostly the clearest pictures.
  on("model", () => {
    const { task, encoder_layers, decoder_layers } = state.model.details;
    const kinds = kindsOf(task);
    offer(kinds);
    state.look = { kind: kinds.at(-1), layer: (decoder_layers ?? encoder_layers) - 1, head: null };
  });
  on("translation", refetch);
  on("look", draw);
  on("theme", draw);
  byId("picture-save").append(saveButtons(
    () => byId("picture").querySelector("svg"),
    () => `${state.look.kind} ${nameOf(state.look)}`.replaceAll(/\W+/g, "-")));
}

/** The kinds of attention that models for a task have. */
export const kindsOf = (task) => ({ translate: ["encoder", "decoder", "cross"], generate: ["causal"] })[task] ?? ["encoder"];

/** Lets the reader choose among some kinds; the last is chosen. */
export function offer(kinds) {
  document.querySelectorAll("input[name=kind]").forEach((input) => {
    input.disabled = !kinds.includes(input.value);
    input.closest("label").hidden = input.disabled;
    input.checked = input.value === kinds.at(-1);
  });
}

/** The attention of a kind for what is looked at, fetched once. */
export async function attentionOf(kind) {
  return (fetched[kind] ??= fetchAttention(kind));
}

/** The tokens on both axes of a kind of attention. */
export function axesOf(kind, answer) {
  const tokens = {
    encoder: [answer.source, answer.source],
    decoder: [answer.target, [START, ...answer.shown.slice(1)]],
    cross: [answer.target, answer.source],
    causal: [answer.source, answer.source],
  }[kind];
  const { rows, columns } = KINDS[kind];
  return { rows: { tokens: tokens[0], title: rows }, columns: { tokens: tokens[1], title: columns } };
}

function refetch() {
  fetched = {};
  document.querySelector("#attention .empty").hidden = state.translation !== null;
  document.querySelector("#attention .filled").hidden = state.translation === null;
  if (state.translation) draw();
}

/** Looks at another attention; one that this kind does not have becomes the nearest that it has. */
function choose(look) {
  change("look", look);
}

const draw = () => state.translation && busyWith(byId("picture"), redraw);

async function redraw() {
  const { look: { kind }, translation } = state;
  let answer;
  try {
    answer = await attentionOf(kind);
  } catch (error) {
    fetched[kind] = undefined;
    return trouble(error);
  }
  // Something else may be looked at by now.
  if (kind !== state.look.kind || translation !== state.translation) return;
  const maps = answer.attention;
  const map = maps.find(({ layer, head }) => layer === state.look.layer && head === state.look.head) ?? maps[0];
  if (map.layer !== state.look.layer || map.head !== state.look.head) {
    return choose({ kind, layer: map.layer, head: map.head });
  }
  // Another part of the page may have chosen it.
  document.querySelector(`input[name=kind][value=${kind}]`).checked = true;
  byId("kind-hint").textContent = KINDS[kind].hint;
  // Many tokens want the whole width.
  document.querySelector(".look").classList.toggle("wide", map.columns > 40);
  byId("chosen").textContent = `${KINDS[kind].name}, ${nameOf(map)}`;
  redrawGrid(maps, kind);
  drawLarge(map, maps, answer, kind);
}

function redrawGrid(maps, kind) {
  const hadFocus = byId("grid").contains(document.activeElement);
  grid(byId("grid"), maps, state.look, (map) => choose({ kind, layer: map.layer, head: map.head }));
  if (hadFocus) byId("grid").querySelector("[tabindex='0']").focus();
}

function drawLarge(map, maps, answer, kind) {
  const axes = axesOf(kind, answer);
  const title = `${KINDS[kind].name}, ${nameOf(map)}`;
  const onchoose = (row) => change("query", row);
  const name = (tokens, i) => `“${label(tokens[i])}”`;
  if (chosen("view") === "heatmap") {
    const onlook = (row, column, masked) => {
      const weight = masked ? "masked" : fixed(map.weights[row][column], 4);
      byId("read-out").textContent = `${name(axes.rows.tokens, row)} → ${name(axes.columns.tokens, column)}: ${weight}`;
    };
    byId("picture").replaceChildren(heatmap({ matrix: map, axes, title, onlook, onchoose }));
  } else {
    const onlook = (row) => {
      const best = map.weights[row].map((weight, column) => [weight, column]).sort((a, b) => b[0] - a[0]).slice(0, 3);
      const told = best.map(([weight, column]) => `${name(axes.columns.tokens, column)} ${fixed(weight, 2)}`);
      byId("read-out").textContent = `${name(axes.rows.tokens, row)} → ${told.join(", ")}`;
    };
    // The mean is drawn as what it is the mean of: every head in a colour of its own.
    const own = maps.filter(({ layer, head }) => layer === map.layer && head !== null);
    const heads = (map.head === null && own.length ? own : [map]).map((matrix) => ({ head: matrix.head, matrix }));
    byId("picture").replaceChildren(lines({ heads, axes, title, onlook, onchoose }));
  }
  byId("read-out").textContent = "\u00a0";
}
