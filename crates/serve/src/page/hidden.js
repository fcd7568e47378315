// Hidden states as strips: a row for each token, a cell for each number of its vector, and the length of the vector.

import { cells } from "./cells.js";
import { diverging, palette } from "./colour.js";
import { html, svg } from "./dom.js";
import { fixed, grouped } from "./numbers.js";
import { FONT, label, shortened, textWidth } from "./tokens.js";

const SIZE = 12;
/** The height of a row. */
const ROW = 17;
/** The share of numbers whose colour is not yet the strongest: a few are far larger than all others. */
const INSIDE = 0.98;

/**
 * The hidden states of a step: `states` has the `width` of vectors, how many neighbouring numbers each of `values` stands for
 * (`together`), and `norms`. `tokens` are those of the rows, of which `followed` is the one that is followed, or null; `room` is how wide
 * the picture may be.
 */
export function hiddenStates(states, tokens, followed, room) {
  const shown = { ...states, norms: states.norms.slice(0, tokens.length), values: states.values.slice(0, tokens.length) };
  const range = rangeOf(shown.values.flat());
  const readOut = html("p", { class: "read-out", role: "status" }, "Point at a cell to read its number.");
  return html("div", { class: "hidden-states" },
    html("p", { class: "hint" }, explained(shown, range)),
    html("div", { class: "scroll states" }, picture(shown, tokens, followed, room, range, (text) => (readOut.textContent = text))),
    readOut);
}

/** From which number on a colour is the strongest. */
function rangeOf(values) {
  const sizes = values.map(Math.abs).sort((a, b) => a - b);
  return Math.max(sizes[Math.floor(INSIDE * (sizes.length - 1))] ?? 0, 1e-6);
}

function explained({ width, together }, range) {
  const cell = together > 1
    ? `A cell stands for ${together} neighbouring numbers: it shows the one that is furthest from 0.`
    : "A cell is a number.";
  return `What this step passes on: a vector of ${grouped(width)} numbers for each token, its hidden state. ${cell} Blue is above 0, `
    + `brown below; the colour is strongest from ±${fixed(range, 2)} on. Behind each row is the length of its vector.`;
}

function picture({ width: d, together, norms, values }, tokens, followed, room, range, tell) {
  const colours = palette();
  const [rows, columns] = [values.length, values[0]?.length ?? 0];
  const names = tokens.map((token) => shortened(label(token), 84, SIZE));
  const lengths = norms.map((norm) => fixed(norm, norm < 100 ? 2 : 0));
  const widest = (texts) => Math.ceil(Math.max(...texts.map((text) => textWidth(text, SIZE)), 12));
  const [left, right] = [widest(names) + 8, widest([...lengths, "length"]) + 8];
  const w = Math.max(room - left - right, 120);
  const [top, cell] = [18, w / columns];
  const y = (row) => top + row * ROW;
  const caption = { "font-size": 11, fill: colours.soft, "font-style": "italic" };
  const mark = svg("rect", { width: cell, height: ROW - 3, fill: "none", stroke: colours.ink, "stroke-width": 1.5, visibility: "hidden" });
  const word = (row) => svg("text", { x: left - 8, y: y(row) + ROW - 5, "text-anchor": "end", fill: row === followed ? colours.accent : colours.ink,
    "font-weight": row === followed ? 700 : 400 }, names[row]);
  const length = (row) => svg("text", { x: left + w + right, y: y(row) + ROW - 5, "text-anchor": "end", fill: colours.soft }, lengths[row]);
  const strip = (row) => cells({
    rows: 1, columns, x: left, y: y(row) + 1, width: w, height: ROW - 3, scale: diverging, range: [-1, 1],
    value: (_, column) => values[row][column] / range,
  });
  const all = [...Array(rows).keys()];
  const height = y(rows) + 2;
  const drawn = svg("svg", {
    viewBox: `0 0 ${left + w + right} ${height}`, width: left + w + right, height, tabindex: 0, role: "application",
    "aria-roledescription": "heat map", "aria-label": `Hidden states of ${rows} token${rows === 1 ? "" : "s"}, ${grouped(d)} numbers each. Arrow keys move.`,
    "font-family": FONT, "font-size": SIZE,
  },
    svg("text", { ...caption, x: left, y: 11 }, `${grouped(d)} numbers`),
    svg("text", { ...caption, x: left + w + right, y: 11, "text-anchor": "end" }, "length"),
    all.map(word), all.map(strip), all.map(length), mark);

  let at = null;
  const look = ([row, column]) => {
    at = [Math.min(Math.max(row, 0), rows - 1), Math.min(Math.max(column, 0), columns - 1)];
    mark.setAttribute("x", left + at[1] * cell);
    mark.setAttribute("y", y(at[0]) + 1);
    mark.setAttribute("visibility", "visible");
    const [first, last] = [at[1] * together + 1, Math.min((at[1] + 1) * together, d)];
    const which = first === last ? `number ${first}` : `numbers ${first} to ${last}`;
    tell(`“${label(tokens[at[0]])}”, ${which}: ${fixed(values[at[0]][at[1]], 4)}. Its vector is ${lengths[at[0]]} long.`);
  };
  drawn.addEventListener("pointermove", (event) => {
    const box = drawn.getBoundingClientRect();
    const [row, column] = [Math.floor((event.clientY - box.top - top) / ROW), Math.floor((event.clientX - box.left - left) / cell)];
    if (row >= 0 && row < rows && column >= 0 && column < columns) look([row, column]);
  });
  drawn.addEventListener("keydown", (event) => {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!step) return;
    event.preventDefault();
    // The steps of the model listen to the arrow keys, too.
    event.stopPropagation();
    look(at ? [at[0] + step[0], at[1] + step[1]] : [0, 0]);
    const place = y(at[0]) - drawn.parentElement.scrollTop;
    if (place < 0 || place > drawn.parentElement.clientHeight - ROW) drawn.parentElement.scrollTop = y(at[0]) - drawn.parentElement.clientHeight / 2;
  });
  return drawn;
}
