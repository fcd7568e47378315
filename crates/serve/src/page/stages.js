// One query against all keys, drawn in the order of the formula: dot products, division, softmax, weighted sum.

import { cells } from "./cells.js";
import { css, diverging, inkOn, palette } from "./colour.js";
import { html, svg } from "./dom.js";
import { fixed } from "./numbers.js";
import { FONT, textWidth } from "./tokens.js";

/**
 * The picture. `names` are those of the keys, `query` has a `name` and a `vector`; `steps` is what `attend` computes.
 * `drawValue(vector, x, y, width, height, opacity)` draws a value.
 */
export function stages({ query, names, keys, values, visible, steps, divide, width, drawValue = strip }) {
  const colours = palette();
  const pitch = names.length > 40 ? 20 : 27;
  const tall = pitch - 9;
  const columns = layout(width, [...names, query.name], numbersOf(steps, divide, query.vector.length));
  const top = 92;
  const bottom = top + names.length * pitch;
  const y = (row) => top + row * pitch;
  const { name, key, numbers, weight, value } = columns;
  const text = (x, at, words, more = {}) => svg("text", { x, y: at, ...more }, words);
  const number = (x, at, words, more) => text(x, at, words, { "text-anchor": "end", ...more });
  const base = tall * 0.5 + 5;
  const greatest = (vectors) => Math.max(1e-6, ...vectors.flat().map(Math.abs));
  const [queryRange, keyRange, valueRange] = [[query.vector], keys, values].map(greatest);

  const rows = names.map((word, row) => {
    const hidden = row >= visible;
    const shade = { fill: hidden ? colours.soft : colours.ink };
    const w = steps.weights[row];
    return svg("g", { opacity: hidden ? 0.45 : 1 },
      text(name.x + name.width, y(row) + base, word, { ...shade, "text-anchor": "end" }),
      strip(keys[row], key.x, y(row), key.width, tall, 1, keyRange),
      numbers.map(({ x, width, of, range }) => {
        const masked = of[row] === -Infinity;
        const colour = range && !masked ? diverging(of[row] / range) : null;
        return [
          colour && svg("rect", { x: x + 6, y: y(row), width: width - 4, height: tall, rx: 2, fill: css(colour) }),
          number(x + width, y(row) + base, masked ? "masked" : fixed(of[row], 2), colour ? { fill: inkOn(colour) } : shade),
        ];
      }).flat(),
      svg("rect", { x: weight.x, y: y(row), width: weight.width, height: tall, rx: 2, fill: colours.masked, opacity: 0.6 }),
      svg("rect", { x: weight.x, y: y(row), width: weight.width * w, height: tall, rx: 2, fill: colours.accent }),
      number(weight.x + weight.width + 44, y(row) + base, fixed(w, 3), shade),
      drawValue(values[row], value.x, y(row), value.width, tall, hidden ? 0.1 : 0.12 + 0.88 * w, valueRange));
  });
  const caption = { "font-size": 12, fill: colours.soft, "font-style": "italic" };
  const height = bottom + 58;
  return svg("svg", {
    viewBox: `0 0 ${Math.ceil(columns.total)} ${height}`,
    width: Math.ceil(columns.total),
    height,
    role: "img",
    "aria-label": `The query ${query.name} compared with ${names.length} keys; the numbers are in the table below.`,
    "font-family": FONT,
    "font-size": 14,
  },
    text(name.x + name.width, 12 + base, query.name, { "text-anchor": "end", "font-weight": 600, fill: colours.accent }),
    strip(query.vector, key.x, 12, key.width, tall, 1, queryRange),
    text(key.x + key.width + 12, 12 + base, "the query", caption),
    svg("path", { d: `M${key.x + key.width / 2} ${16 + tall}v20m-4 -5 4 5 4 -5`, fill: "none", stroke: colours.soft }),
    text(name.x + name.width, 78, "keys", { ...caption, "text-anchor": "end" }),
    numbers.map(({ x, width, name, stands }) => number(x + width, 78, name, stands ? { ...caption, fill: colours.ink, "font-weight": 700 } : caption)),
    text(weight.x, 78, "softmax", caption),
    text(value.x, 78, "values", caption),
    rows,
    svg("path", { d: `M${weight.x} ${bottom + 6}H${value.x + value.width}`, stroke: colours.soft }),
    number(value.x - 12, bottom + 22 + base, "Σ weight · value", caption),
    drawValue(steps.result, value.x, bottom + 20, value.width, tall + 6, 1, valueRange));
}

/** What the dot products are divided by: √d_k, or √(3 · d_k) where a score has three terms, or something else. */
function divisorName(divisor, d) {
  const terms = (divisor * divisor) / d;
  const isWhole = Math.abs(terms - Math.round(terms)) < 1e-3 && terms > 0.5;
  if (!isWhole) return `÷ ${fixed(divisor, 2)}`;
  return Math.round(terms) === 1 ? `÷ √${d}` : `÷ √(${Math.round(terms)}·${d})`;
}

/**
 * The numbers that become a score, in their order: a name, and one `of` each key. Where terms are added, colours show which count, on a
 * scale up to `range`. `stands` is what is not as it should be.
 */
function numbersOf({ products, divisor, contents, terms, scores }, divide, d) {
  const product = { name: "q · k", of: products };
  const divided = divide ? { name: divisorName(divisor, d), of: contents } : { name: "not divided", of: contents, stands: true };
  if (terms.length === 0) return [product, { ...divided, of: scores }];
  const range = Math.max(1e-6, ...[contents, scores, ...terms.map(({ numbers }) => numbers)].flat().filter(Number.isFinite).map(Math.abs));
  const added = [...terms.map(({ name, numbers }) => ({ name, of: numbers, range })), { name: "= score", of: scores, range }];
  return divisor === 1 ? [{ ...product, range }, ...added] : [product, { ...divided, range }, ...added];
}

/** Where the columns are, in a picture of this width. */
function layout(width, names, numbers) {
  const longest = Math.min(Math.max(...names.map((name) => textWidth(name, 15))), 150);
  const name = { x: 0, width: longest + 4 };
  const wide = numbers.map(({ name }, i) => (i === 0 ? 58 : Math.max(name === "not divided" ? 92 : 72, textWidth(name, 12) + 16)));
  const taken = wide.reduce((a, b) => a + b, 0);
  const free = Math.max(Math.max(width, 460) - name.width - taken - 88, 200);
  const [key, weight, value] = [0.32, 0.28, 0.4].map((share) => Math.min(free * share, 300));
  let x = name.width + 10;
  const column = (width, gap) => {
    const place = { x, width };
    x += width + gap;
    return place;
  };
  const columns = {
    name, key: column(key, 0), numbers: numbers.map((one, i) => ({ ...one, ...column(wide[i], i + 1 < numbers.length ? 0 : 14) })),
    weight: column(weight, 56), value: column(value, 2),
  };
  return { ...columns, total: x };
}

/** A vector as a strip of cells; `range` is the greatest number there is. */
function strip(vector, x, y, width, height, opacity, range) {
  const drawn = cells({
    rows: 1, columns: vector.length, x, y, width, height, scale: diverging, range: [-1, 1],
    value: (_, column) => vector[column] / range,
  });
  drawn.setAttribute("opacity", opacity.toFixed(3));
  const frame = svg("rect", { x, y, width, height, fill: "none", stroke: palette().line });
  return svg("g", {}, drawn, frame);
}

/** The same numbers as a table, for who cannot see the picture or wants more digits. */
export function table({ query, names, steps, divide }) {
  const numbers = numbersOf(steps, divide, query.vector.length);
  const head = ["key", ...numbers.map(({ name }) => name), "weight"];
  const cell = (x) => (x === -Infinity ? "masked" : fixed(x, 6));
  const row = (name, i) => [name, ...numbers.map(({ of }) => cell(of[i])), fixed(steps.weights[i], 6)];
  return html("details", {},
    html("summary", {}, "The numbers as a table"),
    html("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "The numbers as a table" },
      html("table", {},
        html("thead", {}, html("tr", {}, head.map((word) => html("th", { scope: "col" }, word)))),
        html("tbody", {}, names.map((name, i) => {
          const [first, ...rest] = row(name, i);
          return html("tr", {}, html("th", { scope: "row" }, first), rest.map((cell) => html("td", {}, cell)));
        })))));
}
