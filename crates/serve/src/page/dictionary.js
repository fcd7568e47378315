// A dictionary of colours that answers half-way: the first thing to play with.

import { attend } from "./arithmetic.js";
import { css, palette } from "./colour.js";
import { byId, html, onresize, slider, svg } from "./dom.js";
import { fixed } from "./numbers.js";
import { saveButtons } from "./save.js";
import { stages, table } from "./stages.js";
import { on } from "./state.js";

/** What is in the dictionary: each name is a direction of its own, each value red, green and blue. */
const ENTRIES = [
  ["red", [1, 0, 0]],
  ["green", [0, 1, 0]],
  ["blue", [0, 0, 1]],
  ["yellow", [1, 1, 0]],
  ["black", [0, 0, 0]],
  ["white", [1, 1, 1]],
];
const NAMES = ENTRIES.map(([name]) => name);
const VALUES = ENTRIES.map(([, value]) => value);
const KEYS = NAMES.map((_, i) => NAMES.map((_, j) => (i === j ? 1 : 0)));

/** What one can ask for: how much of each name there is in it. */
const QUESTIONS = {
  red: { red: 1 },
  orange: { red: 0.5, yellow: 0.5 },
  violet: { red: 0.5, blue: 0.5 },
  turquoise: { green: 0.5, blue: 0.5 },
  pink: { red: 0.5, white: 0.5 },
  grey: { black: 0.5, white: 0.5 },
  brown: { red: 0.4, yellow: 0.3, black: 0.3 },
  "anything": {},
};

const vectorOf = (parts) => NAMES.map((name) => parts[name] ?? 0);

let question = "orange";
let mix = vectorOf(QUESTIONS.orange);
let length = 24;

/** Begins to show the dictionary. */
export function start() {
  const place = byId("colours");
  const buttons = Object.keys(QUESTIONS).map((name) =>
    html("button", { type: "button", class: "chip", "data-name": name, onclick: () => ask(name) }, name));
  place.append(
    html("p", {}, "The dictionary has six colours as keys. Choose a query that is not among them: ",
      html("em", {}, "orange"), " is half red and half yellow, so the result is a mix of both values."),
    html("div", { class: "examples", role: "group", "aria-label": "Query" }, buttons),
    html("div", { class: "mixture" },
      html("div", { id: "swatch", role: "img" }),
      html("div", {}, html("p", { id: "swatch-name" }), html("p", { id: "swatch-value", class: "hint", role: "status" }))),
    html("div", { id: "colours-picture", class: "scroll", tabindex: 0, role: "group", "aria-label": "The colours, step by step" }),
    html("p", { id: "colours-peak", class: "hint" }),
    saveButtons(() => place.querySelector("svg"), () => `attention-to-colours-${question}`),
    html("div", { id: "colours-table" }),
    html("details", {}, html("summary", {}, "Mix a query of your own"), html("div", { id: "mixer", class: "options" })));
  ask("orange");
  on("theme", draw);
  onresize(byId("colours-picture"), draw);
  byId("divide").addEventListener("change", draw);
}

function ask(name) {
  question = name;
  mix = vectorOf(QUESTIONS[name]);
  byId("colours").querySelectorAll("[data-name]").forEach((button) =>
    button.setAttribute("aria-pressed", String(button.dataset.name === name)));
  byId("mixer").replaceChildren(
    ...NAMES.map((colour, i) => slider({
      id: `mix-${colour}`, name: `share of ${colour}`, min: 0, max: 1, step: 0.05, value: mix[i], show: (x) => x.toFixed(2),
      onchange: (x) => {
        mix[i] = x;
        question = "a mixture";
        draw();
      },
    })),
    slider({
      id: "query-length", name: "length of the query", min: 1, max: 60, value: length,
      onchange: (x) => {
        length = x;
        draw();
      },
    }));
  draw();
}

function draw() {
  const divide = byId("divide").checked;
  const query = mix.map((x) => x * length);
  const steps = attend({ query, keys: KEYS, values: VALUES, divisor: divide ? Math.sqrt(query.length) : 1 });
  const width = byId("colours-picture").clientWidth;
  if (width === 0) return;
  const scene = {
    query: { name: question, vector: query }, names: NAMES, keys: KEYS, values: VALUES, visible: NAMES.length, steps, divide,
  };
  byId("colours-picture").replaceChildren(stages({ ...scene, width, drawValue: swatch }));
  byId("colours-table").replaceChildren(table(scene));
  const result = css(steps.result.map((x) => 255 * x));
  byId("swatch").style.background = result;
  byId("swatch").setAttribute("aria-label", `The result is the colour ${result}.`);
  byId("swatch-name").textContent = question;
  byId("swatch-value").textContent = `red ${fixed(steps.result[0])}, green ${fixed(steps.result[1])}, blue ${fixed(steps.result[2])}`;
  byId("colours-peak").textContent = divide
    ? "Turn the division off, or make the query longer: the softmax becomes sharper, "
      + "and keys with lower scores get almost no weight."
    : "Without the division the softmax is sharp: the key with the highest score gets nearly all the weight.";
}

function swatch(value, x, y, width, height, opacity) {
  const frame = { x, y, width, height, rx: 3 };
  return svg("g", {},
    svg("rect", { ...frame, fill: css(value.map((part) => 255 * part)), "fill-opacity": opacity.toFixed(3) }),
    svg("rect", { ...frame, fill: "none", stroke: palette().line }));
}

/** Draws again, when it can be seen again. */
export const show = draw;
