// One attention, large: queries as rows, keys as columns, the tokens on the axes.

import { cells } from "./cells.js";
import { heat, palette } from "./colour.js";
import { svg } from "./dom.js";
import { continues, FONT, label, textWidth } from "./tokens.js";

/**
 * A heat map. `matrix.weights[row][column]`, of which `matrix.causal` ones behind the diagonal are masked; `axes` has the
 * tokens of both and what they are called. `onlook(row, column)` hears what is pointed at, `onchoose(row)` what is clicked.
 */
export function heatmap({ matrix, axes, title, onlook, onchoose }) {
  const { rows, columns, weights, causal } = matrix;
  const colours = palette();
  const cell = Math.max(9, Math.min(42, 640 / Math.max(rows, columns)));
  const size = Math.min(15, cell * 0.95);
  const width = (tokens) => Math.max(...tokens.map((token) => textWidth(label(token), size)), 20);
  const slanted = columns <= 24;
  const left = width(axes.rows.tokens) + 30;
  const above = (slanted ? width(axes.columns.tokens) * 0.72 : width(axes.columns.tokens)) + size + 26;
  const overhang = slanted ? width(axes.columns.tokens.slice(-1)) * 0.72 + 8 : 6;
  const [w, h] = [columns * cell, rows * cell];
  const legendWidth = Math.min(Math.max(w, 150), 260);
  // The legend may be wider than what it explains.
  const total = [left + Math.max(w + overhang, legendWidth + (causal ? 90 : 10)), above + h + 50];

  const masked = (row, column) => causal && column > row;
  const value = (row, column) => (masked(row, column) ? null : Math.sqrt(weights[row][column]));
  const cross = svg("g", { "data-transient": "", fill: "none", stroke: colours.accent, "stroke-width": 2 });
  const picture = svg("svg", {
    viewBox: `0 0 ${total.map(Math.ceil).join(" ")}`,
    style: `max-width:${Math.ceil(total[0])}px;min-width:${columns > 30 ? Math.ceil(total[0]) : 0}px`,
    class: "picture",
    role: "application",
    "aria-roledescription": "heat map",
    "aria-label": `${title}: ${rows} rows, ${columns} columns. Arrow keys move, Enter follows a row step by step.`,
    tabindex: 0,
    "font-family": FONT,
  },
    svg("title", {}, title),
    causal ? mask({ rows, columns, left, above, cell, colours }) : null,
    cells({ rows, columns, width: w, height: h, x: left, y: above, value, scale: heat, range: [0, 1] }),
    svg("rect", { x: left, y: above, width: w, height: h, fill: "none", stroke: colours.line }),
    rowLabels(axes.rows.tokens, { left, above, cell, size, colours }),
    columnLabels(axes.columns.tokens, { left, above, cell, size, slanted, colours }),
    axisTitles(axes, { left, above, w, h, colours }),
    legend({ x: left, y: above + h + 18, width: legendWidth, colours, causal }),
    cross);

  let at = null;
  const look = (place) => {
    at = place;
    cross.replaceChildren();
    if (place) {
      const [row, column] = place;
      cross.append(
        svg("rect", { x: left, y: above + row * cell, width: w, height: cell, "stroke-opacity": 0.35 }),
        svg("rect", { x: left + column * cell, y: above, width: cell, height: h, "stroke-opacity": 0.35 }),
        svg("rect", { x: left + column * cell, y: above + row * cell, width: cell, height: cell }));
      onlook(row, column, masked(row, column));
    }
  };
  const under = (event) => {
    const box = picture.getBoundingClientRect();
    const scale = total[0] / box.width;
    const column = Math.floor(((event.clientX - box.left) * scale - left) / cell);
    const row = Math.floor(((event.clientY - box.top) * scale - above) / cell);
    return row >= 0 && row < rows && column >= 0 && column < columns ? [row, column] : null;
  };
  picture.addEventListener("pointermove", (event) => look(under(event) ?? at));
  picture.addEventListener("click", (event) => {
    const place = under(event);
    if (place) {
      look(place);
      onchoose(place[0]);
    }
  });
  picture.addEventListener("keydown", (event) => {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (step) {
      event.preventDefault();
      const [row, column] = at ? [at[0] + step[0], at[1] + step[1]] : [0, 0];
      look([Math.min(Math.max(row, 0), rows - 1), Math.min(Math.max(column, 0), columns - 1)]);
    } else if (event.key === "Enter" && at) {
      onchoose(at[0]);
    }
  });
  return picture;
}

/** What a step cannot see yet. */
function mask({ rows, columns, left, above, cell, colours }) {
  let path = "";
  for (let row = 0; row < Math.min(rows, columns - 1); row++) {
    path += `M${left + (row + 1) * cell} ${above + row * cell}h${(columns - row - 1) * cell}v${cell}H${left + (row + 1) * cell}z`;
  }
  return svg("g", {}, hatching("masked", colours), svg("path", { d: path, fill: "url(#masked)" }));
}

function hatching(id, colours) {
  return svg("pattern", { id, width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
    svg("rect", { width: 6, height: 6, fill: colours.masked }),
    svg("path", { d: "M0 0V6", stroke: colours.soft, "stroke-width": 1, "stroke-opacity": 0.55 }));
}

function rowLabels(tokens, { left, above, cell, size, colours }) {
  const goes = continues(tokens);
  return svg("g", { "font-size": size, "text-anchor": "end" }, tokens.map((token, row) =>
    svg("text", { x: left - 7, y: above + (row + 0.5) * cell + size * 0.35, fill: shade(token, goes[row], colours) }, label(token))));
}

function columnLabels(tokens, { left, above, cell, size, slanted, colours }) {
  const goes = continues(tokens);
  return svg("g", { "font-size": size }, tokens.map((token, column) => {
    const x = left + (column + 0.5) * cell + (slanted ? 0 : size * 0.35);
    const turn = `translate(${x} ${above - 7}) rotate(${slanted ? -45 : -90})`;
    return svg("text", { transform: turn, fill: shade(token, goes[column], colours) }, label(token));
  }));
}

/** Tokens that go on with a word, and those that are no text, stand back a little. */
const shade = (token, goesOn, colours) => (goesOn || token.word === null ? colours.soft : colours.ink);

function axisTitles(axes, { left, above, w, h, colours }) {
  const style = { "font-size": 12, fill: colours.soft, "font-style": "italic" };
  return svg("g", style,
    svg("text", { x: left + w / 2, y: 13, "text-anchor": "middle" }, axes.columns.title),
    svg("text", { transform: `translate(12 ${above + h / 2}) rotate(-90)`, "text-anchor": "middle" }, axes.rows.title));
}

/** What the colours mean. Small weights are shown larger than they are: a colour is the root of its weight. */
function legend({ x, y, width, colours, causal }) {
  const steps = 60;
  const value = (_, column) => (column + 0.5) / steps;
  const tick = (weight) => {
    const at = x + width * Math.sqrt(weight);
    return [svg("path", { d: `M${at} ${y + 8}v4`, stroke: colours.soft }), svg("text", { x: at, y: y + 24 }, String(weight))];
  };
  const hatched = causal
    ? [svg("rect", { x: x + width + 22, y: y - 2, width: 14, height: 12, fill: "url(#masked)" }),
       svg("text", { x: x + width + 41, y: y + 8, "text-anchor": "start" }, "masked")]
    : [];
  return svg("g", { "font-size": 11, fill: colours.soft, "text-anchor": "middle" },
    cells({ rows: 1, columns: steps, width, height: 8, x, y, value, scale: heat, range: [0, 1] }),
    [0, 0.05, 0.25, 0.5, 1].flatMap(tick), hatched);
}
