// Positional encodings as a heat map: position × dimension.

import { positionalEncoding } from "./arithmetic.js";
import { cells } from "./cells.js";
import { diverging, palette } from "./colour.js";
import { byId, html, onresize, slider, svg } from "./dom.js";
import { fixed, ticks } from "./numbers.js";
import { saveButtons } from "./save.js";
import { on } from "./state.js";
import { FONT } from "./tokens.js";

const shown = { positions: 50, d: 128, halves: false };
/** The position and dimension that are pointed at. */
let at = [10, 20];

/** Begins to show positions. */
export function start() {
  const place = byId("positions-body");
  const set = (name) => (value) => {
    shown[name] = value;
    at = [Math.min(at[0], shown.positions - 1), Math.min(at[1], shown.d - 1)];
    draw();
  };
  const order = (value, name) => html("label", {},
    html("input", {
      type: "radio", name: "order", value, checked: value === "interleaved",
      onchange: () => set("halves")(value === "halves"),
    }),
    html("span", {}, name));
  place.append(
    html("div", { class: "options" },
      slider({ id: "positions-count", name: "positions", min: 10, max: 100, value: shown.positions, onchange: set("positions") }),
      slider({ id: "positions-d", name: "d_model", min: 16, max: 256, step: 16, value: shown.d, onchange: set("d") }),
      html("fieldset", { class: "choice" }, html("legend", {}, "Sines and cosines"),
        order("interleaved", "alternating (the paper)"), order("halves", "in halves (Marian)"))),
    html("div", {},
      html("div", { id: "positions-picture", class: "scroll" }),
      html("p", { id: "positions-read-out", class: "read-out", role: "status" })),
    saveButtons(() => place.querySelector("svg"), () => `positional-encodings-${shown.positions}x${shown.d}`));
  on("theme", draw);
  onresize(byId("positions-picture"), draw);
  draw();
}

function draw() {
  const { positions, d, halves } = shown;
  const colours = palette();
  const room = byId("positions-picture").clientWidth;
  const narrow = room < 600;
  const [left, top, w, h] = [48, 26, Math.min(Math.max(room - 62, 240), 860), narrow ? 300 : 380];
  const wave = { y: top + h + 46, height: 90 };
  const value = (position, dimension) => positionalEncoding(position, dimension, d, halves);
  const total = [left + w + 14, wave.y + wave.height + 26];
  const caption = { "font-size": 12, fill: colours.soft };
  const marks = svg("g", { "data-transient": "" });
  const picture = svg("svg", {
    viewBox: `0 0 ${total.join(" ")}`, style: `max-width:${total[0]}px`, class: "picture", "font-family": FONT,
    role: "application", "aria-roledescription": "heat map", tabindex: 0,
    "aria-label": `Positional encodings of ${positions} positions in ${d} dimensions. Arrow keys move.`,
  },
    cells({ rows: positions, columns: d, x: left, y: top, width: w, height: h, value, scale: diverging, range: [-1, 1] }),
    svg("rect", { x: left, y: top, width: w, height: h, fill: "none", stroke: colours.line }),
    svg("g", { ...caption, "text-anchor": "end" }, ticks(positions - 1, 5).map((position) =>
      svg("text", { x: left - 6, y: top + ((position + 0.5) * h) / positions + 4 }, String(position)))),
    svg("g", { ...caption, "text-anchor": "middle" }, ticks(d - 1, narrow ? 4 : 8).map((dimension) =>
      svg("text", { x: left + ((dimension + 0.5) * w) / d, y: top + h + 16 }, String(dimension)))),
    svg("text", { ...caption, "font-style": "italic", x: left + w / 2, y: 14, "text-anchor": "middle" }, "dimension"),
    svg("text", {
      ...caption, "font-style": "italic", transform: `translate(12 ${top + h / 2}) rotate(-90)`, "text-anchor": "middle",
    }, "position"),
    marks);
  const look = ([position, dimension]) => {
    at = [Math.min(Math.max(position, 0), positions - 1), Math.min(Math.max(dimension, 0), d - 1)];
    marks.replaceChildren(...pointedAt({ at, value, positions, d, left, top, w, h, wave, colours }));
    byId("positions-read-out").textContent = `position ${at[0]}, dimension ${at[1]}: ${fixed(value(...at), 4)}`;
  };
  picture.addEventListener("pointermove", (event) => {
    const box = picture.getBoundingClientRect();
    const scale = total[0] / box.width;
    const [x, y] = [(event.clientX - box.left) * scale - left, (event.clientY - box.top) * scale - top];
    if (x >= 0 && x < w && y >= 0 && y < h) look([Math.floor((y / h) * positions), Math.floor((x / w) * d)]);
  });
  picture.addEventListener("keydown", (event) => {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!step) return;
    event.preventDefault();
    look([at[0] + step[0], at[1] + step[1]]);
  });
  byId("positions-picture").replaceChildren(picture);
  look(at);
}

/** The column that is pointed at, and the wave that it is. */
function pointedAt({ at: [position, dimension], value, positions, d, left, top, w, h, wave, colours }) {
  const middle = wave.y + wave.height / 2;
  const x = (p) => left + (p / Math.max(positions - 1, 1)) * w;
  const y = (v) => middle - (v * wave.height) / 2;
  const points = Array.from({ length: positions }, (_, p) => `${x(p).toFixed(1)},${y(value(p, dimension)).toFixed(1)}`);
  return [
    svg("rect", {
      x: left + (dimension * w) / d - 1, y: top, width: w / d + 2, height: h,
      fill: "none", stroke: colours.ink, "stroke-width": 1.5,
    }),
    svg("path", { d: `M${left} ${middle}h${w}`, stroke: colours.line }),
    svg("polyline", { points: points.join(" "), fill: "none", stroke: colours.accent, "stroke-width": 2 }),
    svg("circle", { cx: x(position), cy: y(value(position, dimension)), r: 4.5, fill: colours.accent }),
    svg("text", { x: left, y: wave.y + wave.height + 18, "font-size": 12, "font-style": "italic", fill: colours.soft },
      `dimension ${dimension} over all positions`),
  ];
}
