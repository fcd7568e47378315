// One attention, large: queries as rows, keys as columns, the tokens on the axes.

import { cells } from "./cells.js";
import { heat, palette } from "./colour.js";
import { svg } from "./dom.js";
import { continues, FONT, label, shortened, textWidth } from "./tokens.js";

/** The size of letters, in pixels: what can be read on a phone. */
const SIZE = 13;

/**
 * A heat map. `matrix.weights[row][column]`, of which `matrix.causal` ones behind the diagonal are masked; `axes` has the
 * tokens of both and what they are called. It is `width` pixels wide, with as many of the tokens as there is room for; or, if
 * `width` is null, as large as all tokens need. `onlook(row, column)` hears what is pointed at, `onchoose(row)` what is clicked.
 */
export function heatmap({ matrix, axes, title, width, onlook, onchoose }) {
  const { rows, columns, weights, causal } = matrix;
  const colours = palette();
  const plan = layout(matrix, axes, width);
  const { left, above, cell, w, h, total } = plan;
  const masked = (row, column) => causal && column > row;
  const value = (row, column) => (masked(row, column) ? null : Math.sqrt(weights[row][column]));
  const cross = svg("g", { "data-transient": "" });
  const picture = svg("svg", {
    viewBox: `0 0 ${total.join(" ")}`,
    width: total[0],
    height: total[1],
    role: "application",
    "aria-roledescription": "heat map",
    "aria-label": `${title}: ${rows} rows, ${columns} columns. Arrow keys move, Enter follows a row step by step.`,
    tabindex: 0,
    "font-family": FONT,
    "font-size": SIZE,
  },
    svg("title", {}, title),
    causal ? mask({ rows, columns, left, above, cell, colours }) : null,
    cells({ rows, columns, width: w, height: h, x: left, y: above, value, scale: heat, range: [0, 1] }),
    svg("rect", { x: left, y: above, width: w, height: h, fill: "none", stroke: colours.line }),
    labels(axes.rows.tokens, plan, colours, rowLabel),
    labels(axes.columns.tokens, plan, colours, columnLabel),
    axisTitles(axes, plan, colours),
    legend({ x: left, y: above + h + 18, width: plan.legend, colours, causal }),
    cross);

  let at = null;
  const look = (place) => {
    at = place;
    cross.replaceChildren();
    if (!place) return;
    const [row, column] = place;
    const frame = (x, y, width, height, opacity) =>
      svg("rect", { x, y, width, height, fill: "none", stroke: colours.accent, "stroke-width": 2, "stroke-opacity": opacity });
    cross.append(
      frame(left, above + row * cell, w, cell, 0.35),
      frame(left + column * cell, above, cell, h, 0.35),
      frame(left + column * cell, above + row * cell, cell, cell, 1),
      // Not every token has its label: those that are pointed at do.
      ...(plan.every > 1 ? pointedAt(axes, place, plan, colours) : []));
    onlook(row, column, masked(row, column));
  };
  const under = (event) => {
    const box = picture.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left - left) / cell);
    const row = Math.floor((event.clientY - box.top - above) / cell);
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

/** Where everything is. On a screen the cells become small before the picture becomes wider than its place. */
function layout({ rows, columns, causal }, axes, available) {
  const room = available === null ? Infinity : Math.max(available, 240);
  const most = Math.min(160, room * 0.3);
  const text = (token) => shortened(label(token), most, SIZE);
  const widest = (tokens) => Math.max(...tokens.map((token) => textWidth(text(token), SIZE)), 20);
  const left = Math.ceil(widest(axes.rows.tokens)) + 32;
  const fit = (room - left - 8) / columns;
  const across = widest(axes.columns.tokens);
  const high = Math.max(300, innerHeight * 0.8 - across - 110) / rows;
  const cell = available === null ? Math.max(15, Math.min(42, 640 / Math.max(rows, columns))) : Math.max(2, Math.min(42, fit, high));
  // Upright letters need a cell of their own height; slanted ones stick out at the end.
  const slanted = columns <= 24 && cell > 20 && fit > cell + 4;
  const above = Math.ceil(slanted ? across * 0.72 : across) + SIZE + 26;
  const overhang = slanted ? Math.ceil(widest(axes.columns.tokens.slice(-1)) * 0.72) + 10 : 8;
  const [w, h] = [columns * cell, rows * cell];
  const legend = Math.min(Math.max(w, 150), 260);
  // The legend may be wider than the cells that it explains.
  const wide = Math.max(w + overhang, legend + (causal ? 100 : 14));
  return {
    left, above, cell, w, h, slanted, legend, text,
    every: Math.max(1, Math.ceil((SIZE * 1.1) / cell)),
    total: [Math.ceil(left + wide), Math.ceil(above + h + 50)],
  };
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

/** The labels of an axis, as many as there is room for. */
function labels(tokens, plan, colours, draw) {
  const goes = continues(tokens);
  const drawn = tokens.map((token, i) => (i % plan.every === 0 ? draw(token, i, plan, shade(token, goes[i], colours)) : null));
  return svg("g", {}, drawn);
}

const rowLabel = (token, row, { left, above, cell, text }, fill) =>
  svg("text", { x: left - 7, y: above + (row + 0.5) * cell + SIZE * 0.35, "text-anchor": "end", fill }, text(token));

function columnLabel(token, column, { left, above, cell, slanted, text }, fill) {
  const x = left + (column + 0.5) * cell + (slanted ? 0 : SIZE * 0.35);
  return svg("text", { transform: `translate(${x} ${above - 7}) rotate(${slanted ? -45 : -90})`, fill }, text(token));
}

/** The labels of a row and a column, in front of the others. */
function pointedAt(axes, [row, column], plan, colours) {
  const { left, above, cell } = plan;
  const behind = (x, y, width, height) => svg("rect", { x, y, width, height, fill: colours.paper });
  return [
    behind(20, above + (row + 0.5) * cell - SIZE * 0.7, left - 26, SIZE * 1.4),
    behind(left + (column + 0.5) * cell - SIZE * 0.7, 18, SIZE * 1.4, above - 24),
    svg("g", { "font-weight": 700 },
      rowLabel(axes.rows.tokens[row], row, plan, colours.ink), columnLabel(axes.columns.tokens[column], column, plan, colours.ink)),
  ];
}

/** Tokens that go on with a word, and those that are no text, stand back a little. */
const shade = (token, goesOn, colours) => (goesOn || token.word === null ? colours.soft : colours.ink);

function axisTitles(axes, { left, above, w, h }, colours) {
  const style = { "font-size": 12, fill: colours.soft, "font-style": "italic" };
  const narrow = w < textWidth(axes.columns.title, 12);
  return svg("g", style,
    svg("text", narrow ? { x: left, y: 13 } : { x: left + w / 2, y: 13, "text-anchor": "middle" }, axes.columns.title),
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
