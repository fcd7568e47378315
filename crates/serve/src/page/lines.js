// Attention as lines between tokens, as in the figures of the paper: the stronger the line, the greater the weight.

import { headStyle, palette } from "./colour.js";
import { svg } from "./dom.js";
import { headName } from "./heads.js";
import { label, continues, FONT, shortened, textWidth } from "./tokens.js";

/** Weights below this are not drawn: nobody could see them. */
const LEAST = 0.03;

/** The size of letters, in pixels. */
const SIZE = 14;

/** The height of the legend, and of a row of it. */
const ROW = 20;

/**
 * Queries stand on the left, keys on the right. `heads` has a matrix for each head to be drawn, with its number, null for the mean.
 * The picture is `width` pixels wide, or as wide as it wants to be if `width` is null. `onlook(row)` hears which query is pointed at,
 * `onchoose(row)` which is clicked.
 */
export function lines({ heads, axes, title, width, onlook, onchoose }) {
  const colours = palette();
  const [left, right] = [axes.rows.tokens, axes.columns.tokens];
  const count = Math.max(left.length, right.length);
  const pitch = count > 40 ? 18 : 25;
  const most = width === null ? 220 : Math.max(70, width * 0.3);
  const text = (token) => shortened(label(token), most, SIZE);
  const widest = (tokens, heading) =>
    Math.ceil(Math.max(...tokens.map((token) => textWidth(text(token), SIZE)), Math.min(textWidth(heading, 12), most))) + 14;
  const x1 = widest(left, axes.rows.title);
  const behind = widest(right, axes.columns.title);
  const gap = Math.min(Math.max((width ?? Infinity) - x1 - behind, 110), 320);
  const x2 = x1 + gap;
  const perRow = Math.max(1, Math.floor((x2 + behind - 8) / 76));
  // On the page, the switches of the heads are the legend.
  const legendRows = width === null ? Math.ceil(heads.length / perRow) : 0;
  const top = 26 + legendRows * ROW;
  const total = [x2 + behind, top + count * pitch + 8];
  const y = (tokens, i) => top + ((count - tokens.length) / 2 + i + 0.5) * pitch;

  const thick = heads.length > 1 ? 2.4 : 5;
  // Each head has its own place beside the others, so that none is hidden.
  const beside = (i) => (i - (heads.length - 1) / 2) * Math.min(thick, (pitch * 0.7) / heads.length);
  const all = heads.flatMap(({ head, matrix }, i) => strokes(matrix).map((stroke) => ({ ...stroke, head, aside: beside(i) })));
  const drawn = all.map(({ row, column, weight, head, aside }) => {
    const [a, b] = [y(left, row) + aside, y(right, column) + aside];
    const d = `M${x1} ${a}C${x1 + gap * 0.4} ${a} ${x2 - gap * 0.4} ${b} ${x2} ${b}`;
    const opacity = Math.min(1, weight + 0.1).toFixed(3);
    return svg("path", { d, ...headStyle(head), "stroke-width": (0.6 + thick * weight).toFixed(2), "stroke-opacity": opacity });
  });
  const words = (tokens, x, anchor) => {
    const goes = continues(tokens);
    const shade = (token, i) => (goes[i] || token.word === null ? colours.soft : colours.ink);
    return tokens.map((token, i) =>
      svg("text", { x, y: y(tokens, i) + SIZE * 0.35, "text-anchor": anchor, fill: shade(token, i) }, text(token)));
  };
  const [sources, targets] = [words(left, x1 - 8, "end"), words(right, x2 + 8, "start")];
  const heading = { "font-size": 12, "font-style": "italic", fill: colours.soft };
  const picture = svg("svg", {
    viewBox: `0 0 ${total.join(" ")}`,
    width: total[0],
    height: total[1],
    role: "application",
    "aria-roledescription": "line drawing",
    "aria-label": `${title} as lines. Up and down choose a token on the left, Enter follows it step by step.`,
    tabindex: 0,
    "font-family": FONT,
    "font-size": SIZE,
  },
    svg("title", {}, title),
    legendRows ? legend(heads, perRow, colours) : null,
    svg("text", { ...heading, x: x1 - 8, y: top - 8, "text-anchor": "end" }, shortened(axes.rows.title, most, 12)),
    svg("text", { ...heading, x: x2 + 8, y: top - 8 }, shortened(axes.columns.title, most, 12)),
    svg("g", { class: "strokes", fill: "none", "stroke-linecap": "round" }, drawn), sources, targets);

  let at = null;
  const look = (row) => {
    at = row;
    all.forEach((stroke, i) => (drawn[i].style.display = row === null || stroke.row === row ? "" : "none"));
    sources.forEach((text, i) => (text.style.fontWeight = i === row ? "700" : ""));
    if (row !== null) onlook(row);
  };
  const under = (event) => {
    const box = picture.getBoundingClientRect();
    const row = Math.round((event.clientY - box.top - y(left, 0)) / pitch);
    return event.clientX - box.left < x1 + gap / 2 && row >= 0 && row < left.length ? row : null;
  };
  picture.addEventListener("pointermove", (event) => look(under(event)));
  picture.addEventListener("pointerleave", () => look(null));
  picture.addEventListener("blur", () => look(null));
  picture.addEventListener("click", (event) => {
    look(under(event));
    if (at !== null) onchoose(at);
  });
  picture.addEventListener("keydown", (event) => {
    const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (step) {
      event.preventDefault();
      look(at === null ? 0 : Math.min(Math.max(at + step, 0), left.length - 1));
      sources[at].scrollIntoView({ block: "nearest" });
    } else if (event.key === "Enter" && at !== null) {
      onchoose(at);
    }
  });
  return picture;
}

/** Which stroke is which head. */
const legend = (heads, perRow, colours) => svg("g", { "font-size": 12, fill: colours.soft }, heads.flatMap(({ head }, i) => {
  const [x, y] = [8 + (i % perRow) * 76, 12 + Math.floor(i / perRow) * ROW];
  return [
    svg("path", { d: `M${x} ${y - 4}h18`, "stroke-width": 3.5, fill: "none", ...headStyle(head) }),
    svg("text", { x: x + 23, y }, head === null ? "mean" : `head ${headName(head)}`),
  ];
}));

/** The weights of a matrix that can be seen. */
function strokes({ rows, columns, weights }) {
  const found = [];
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      if (weights[row][column] >= LEAST) found.push({ row, column, weight: weights[row][column] });
    }
  }
  return found;
}
