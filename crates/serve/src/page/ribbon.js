// The attention of the last layer at a glance, below what was written: queries under keys, and a line for each weight.

import { palette } from "./colour.js";
import { busyWith, byId, onresize, svg } from "./dom.js";
import { axesOf, kindsOf } from "./kinds.js";
import { change, on, state } from "./state.js";
import { continues, FONT, label, shortened, textWidth } from "./tokens.js";
import * as weights from "./weights.js";

const SIZE = 14;
const HEIGHT = 124;
/** The space between two words, in pixels. */
const SPACE = { least: 14, most: 56 };
/** Of more tokens nobody would see the lines. */
const MOST = 40;
/** Weights below this are not drawn. */
const LEAST = 0.04;

/** Begins to show it. Errors are told by the part that shows all attention. */
export function start() {
  ["subject", "theme"].forEach((topic) => on(topic, draw));
  onresize(byId("ribbon"), draw);
}

function draw() {
  byId("glance").hidden = true;
  return state.subject && busyWith(byId("ribbon"), redraw);
}

async function redraw() {
  const { subject } = state;
  const kind = kindsOf(state.model.details).at(-1);
  const found = await weights.mapOf(weights.nearest({ kind, layer: Infinity, head: null })).catch(() => null);
  if (!found || subject !== state.subject || Math.max(found.map.rows, found.map.columns) > MOST) return;
  byId("glance").hidden = false;
  byId("ribbon").replaceChildren(ribbon(found.map, axesOf(kind, found.answer)));
}

function ribbon({ rows, columns, weights, causal }, axes) {
  const colours = palette();
  const both = [axes.columns.tokens, axes.rows.tokens];
  const wide = Math.max(...both.map((tokens) => row(tokens, byId("ribbon").clientWidth, SPACE.most).width));
  // The shorter row is as wide as the longer one.
  const [keys, queries] = both.map((tokens) => row(tokens, wide, 3 * SPACE.most));
  const width = Math.ceil(wide) + 4;
  const [top, bottom] = [SIZE + 8, HEIGHT - SIZE - 10];
  const lines = [];
  for (let i = 0; i < rows; i++) {
    for (let j = 0; j < columns; j++) {
      const weight = weights[i][j];
      if (weight < LEAST || (causal && j > i)) continue;
      const [a, b] = [queries.centres[i], keys.centres[j]];
      const d = `M${a} ${bottom}C${a} ${bottom - 40} ${b} ${top + 40} ${b} ${top}`;
      lines.push({ i, line: svg("path", { d, stroke: colours.accent, "stroke-width": 0.8 + 4 * weight, "stroke-opacity": Math.min(1, weight + 0.08).toFixed(2) }) });
    }
  }
  const words = ({ texts, centres, shades }, y) => texts.map((text, i) =>
    svg("text", { x: centres[i], y, "text-anchor": "middle", fill: colours[shades[i]] }, text));
  const below = words(queries, HEIGHT - 6);
  const light = (row) => {
    lines.forEach(({ i, line }) => (line.style.display = row === null || i === row ? "" : "none"));
    below.forEach((word, i) => (word.style.fontWeight = i === row ? 700 : ""));
  };
  below.forEach((word, i) => {
    word.addEventListener("pointerenter", () => light(i));
    word.addEventListener("click", () => change("query", i));
  });
  const picture = svg("svg", {
    viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, role: "img", "font-family": FONT, "font-size": SIZE,
    "aria-label": `${axes.rows.title} below, ${axes.columns.title} above; the lines are the weights, which the part Attention has as numbers.`,
  }, svg("g", { fill: "none", "stroke-linecap": "round" }, lines.map(({ line }) => line)), words(keys, SIZE), below);
  picture.addEventListener("pointerleave", () => light(null));
  return picture;
}

/** Where the tokens of a row stand: apart as far as there is room, and further where a word begins. */
function row(tokens, room, most) {
  const goes = continues(tokens);
  const texts = tokens.map((token) => shortened(label(token), 140, SIZE));
  const widths = texts.map((text) => Math.max(textWidth(text, SIZE), 8));
  const shares = goes.map((goesOn) => (goesOn ? 0.4 : 1));
  const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
  const space = Math.min(Math.max((room - sum(widths) - 8) / Math.max(sum(shares.slice(1)), 1), SPACE.least), most);
  let x = 0;
  const centres = widths.map((width, i) => {
    x += (i > 0 ? space * shares[i] : 4) + width;
    return x - width / 2;
  });
  return { texts, centres, width: x + 4, shades: tokens.map((token, i) => (goes[i] || token.word === null ? "soft" : "ink")) };
}
