// The part of the page that shows which token attends to which.

import { busyWith, byId, chosen, html, onresize } from "./dom.js";
import { grid } from "./grid.js";
import { headChips } from "./heads.js";
import { heatmap } from "./heatmap.js";
import { axesOf, KINDS, kindsOf, placeName } from "./kinds.js";
import { lines } from "./lines.js";
import * as link from "./link.js";
import { fixed } from "./numbers.js";
import { saveButtons } from "./save.js";
import { change, on, state } from "./state.js";
import { label } from "./tokens.js";
import * as weights from "./weights.js";

let trouble;
/** The heads of the chosen layer that are drawn as lines; null is the mean. */
let lit = new Set();
/** The part of the scores whose weights are drawn, where a bias is added to them: null for all of them. */
let part = null;

/** What the weights of a part say. */
const PARTS = {
  content: "These are the weights as they would be without the bias: the softmax of the products of queries and keys alone.",
  bias: "These are the weights as they would be from the bias alone: from where tokens stand, whatever their queries and keys have in common.",
};
const BOTH = "The scores of this model have two parts: products of queries and keys, and a bias for where the tokens stand. Choose one to see its share.";
/** The large picture as it was drawn last, for files: at its full size, with all tokens. */
let drawWhole = () => null;

/** Begins to show attention. `ontrouble(error)` hears what went wrong. */
export function start(ontrouble) {
  trouble = ontrouble;
  document.querySelectorAll("input[name=kind]").forEach((input) =>
    input.addEventListener("change", () => change("look", { ...state.look, kind: input.value })));
  ["view", "part"].forEach((name) =>
    document.querySelectorAll(`input[name=${name}]`).forEach((input) => input.addEventListener("change", draw)));
  // The last layer has the words behind it, and mostly the clearest pictures.
  on("model", () => {
    const kinds = kindsOf(state.model.details);
    offer(kinds);
    const asked = lookOf(link.take("look"));
    const isThere = asked && kinds.includes(asked.kind);
    state.look = weights.nearest(isThere ? asked : { kind: kinds.at(-1), layer: Infinity, head: null });
    lit = new Set([state.look.head]);
    link.keepLook(isThere ? addressOf(state.look) : null);
  });
  on("subject", () => {
    document.querySelector("#attention .empty").hidden = state.subject !== null;
    document.querySelector("#attention .filled").hidden = state.subject === null;
    draw();
  });
  on("look", () => {
    lit = new Set([state.look.head]);
    link.keepLook(addressOf(state.look));
    draw();
  });
  on("theme", draw);
  onresize(byId("picture"), draw);
  byId("picture-save").append(saveButtons(() => drawWhole(), () => `${state.look.kind} ${placeName(state.look)}${partName()}`.replaceAll(/\W+/g, "-")));
}

/** `cross.2.3` or `cross.2.mean`, for an address. */
const addressOf = ({ kind, layer, head }) => [kind, layer + 1, head === null ? "mean" : head + 1].join(".");

/** What an address asks for, or null. */
function lookOf(text) {
  const [, kind, layer, head] = /^(\w+)\.(\d+)\.(\d+|mean)$/.exec(text ?? "") ?? [];
  return kind ? { kind, layer: layer - 1, head: head === "mean" ? null : head - 1 } : null;
}

/** Lets the reader choose among some kinds; the last is chosen. */
export function offer(kinds) {
  document.querySelectorAll("input[name=kind]").forEach((input) => {
    input.disabled = !kinds.includes(input.value);
    input.closest("label").hidden = input.disabled;
    input.checked = input.value === kinds.at(-1);
  });
  byId("kind").hidden = kinds.length < 2;
}

const draw = () => state.subject && busyWith(byId("picture"), redraw);

/** Draws what is chosen as soon as it is there, and then the small pictures of all heads as they come. */
async function redraw() {
  const { subject } = state;
  const look = weights.nearest(state.look);
  const view = chosen("part");
  const isWanted = () => subject === state.subject && state.look === look && view === chosen("part");
  state.look = look;
  try {
    const whole = await weights.mapOf(look);
    const wanted = whole.map.biased && view !== "both" ? view : null;
    const { map, answer } = wanted ? await weights.mapOf(look, wanted) : whole;
    if (!isWanted()) return;
    part = wanted;
    byId("part").hidden = byId("part-hint").hidden = !whole.map.biased;
    byId("part-hint").textContent = PARTS[part] ?? BOTH;
    show(map, answer);
    await weights.complete(look.kind, part, () => isWanted() && drawGrid(look), isWanted);
    // Lines may want heads that were not there before.
    if (isWanted() && chosen("view") === "lines") drawLarge(map, answer);
  } catch (error) {
    if (isWanted()) trouble(error);
  }
}

function show(map, answer) {
  const { kind } = state.look;
  // Another part of the page may have chosen it.
  document.querySelector(`input[name=kind][value=${kind}]`).checked = true;
  byId("kind-hint").textContent = KINDS[kind].hint;
  // Many tokens want the whole width.
  document.querySelector(".look").classList.toggle("wide", map.columns > 30);
  byId("chosen").textContent = `${KINDS[kind].name}, ${placeName(map)}${partName()}`;
  drawGrid(state.look);
  drawLarge(map, answer);
}

function drawGrid(look) {
  const hadFocus = byId("grid").contains(document.activeElement);
  const onchoose = ({ layer, head }) => change("look", { kind: look.kind, layer, head });
  grid(byId("grid"), weights.mapsOf(look.kind, part), look, onchoose);
  if (hadFocus) byId("grid").querySelector("[tabindex='0']").focus();
}

function drawLarge(map, answer) {
  const { kind } = state.look;
  const axes = axesOf(kind, answer);
  const asLines = chosen("view") === "lines";
  const picture = asLines ? linesOf(map, axes, kind) : heatmapOf(map, axes, kind);
  byId("heads").hidden = !asLines;
  byId("picture").replaceChildren(picture(byId("picture").clientWidth));
  drawWhole = () => picture(null);
  byId("view-hint").textContent = asLines
    ? "The stronger a line, the greater the weight. Weights below 0.03 are not drawn."
    : "A colour stands for the square root of its weight, so that small weights can be seen.";
  byId("view-hint").append(" Choose a token on the left to follow it ", html("a", { href: "#steps" }, "step by step"), ".");
  byId("read-out").textContent = asLines
    ? "Point at a token on the left to see what it attends to."
    : "Point at a cell to see its weight.";
}

const quoted = (tokens, i) => `“${label(tokens[i])}”`;
const onchoose = (row) => change("query", row);

/** What is drawn of the scores, if not all of them. */
const partName = () => (part ? `, ${part} alone` : "");

/** The large heat map, for a width or for a file. */
function heatmapOf(map, axes, kind) {
  const title = `${KINDS[kind].name}, ${placeName(map)}${partName()}`;
  const onlook = (row, column, masked) => {
    const weight = masked ? "masked" : fixed(map.weights[row][column], 4);
    byId("read-out").textContent = `${quoted(axes.rows.tokens, row)} → ${quoted(axes.columns.tokens, column)}: ${weight}`;
  };
  return (width) => heatmap({ matrix: map, axes, title, width, onlook, onchoose });
}

/** The lines of the heads that are lit, for a width or for a file. */
function linesOf(map, axes, kind) {
  const own = weights.mapsOf(kind, part).filter(({ layer, weights }) => layer === map.layer && weights);
  headChips(byId("heads"), own.map(({ head }) => head), lit, (chosen) => {
    lit = chosen;
    draw();
  });
  const heads = own.filter(({ head }) => lit.has(head)).map((matrix) => ({ head: matrix.head, matrix }));
  const title = `${KINDS[kind].name}, layer ${map.layer + 1}${partName()}`;
  const onlook = (row) => {
    const mean = (column) => heads.reduce((sum, { matrix }) => sum + matrix.weights[row][column], 0) / heads.length;
    const best = axes.columns.tokens.map((_, column) => [mean(column), column]).sort((a, b) => b[0] - a[0]).slice(0, 3);
    const told = best.map(([weight, column]) => `${quoted(axes.columns.tokens, column)} ${fixed(weight, 2)}`);
    byId("read-out").textContent = heads.length ? `${quoted(axes.rows.tokens, row)} → ${told.join(", ")}` : "No head is switched on.";
  };
  return (width) => lines({ heads, axes, title, width, onlook, onchoose });
}
