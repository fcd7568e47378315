// One attention as lines between tokens, as in the figures of the paper: the stronger the line, the greater the weight.

import { headColour, palette } from "./colour.js";
import { svg } from "./dom.js";
import { label, continues, FONT, textWidth } from "./tokens.js";

/** Weights below this are not drawn: nobody could see them. */
const LEAST = 0.03;

/**
 * Who looks stands on the left, what is looked at on the right. `heads` has a matrix for each head to be drawn, with its
 * number. `onlook(row)` hears which query is pointed at.
 */
export function lines({ heads, axes, title, onlook, onchoose }) {
  const colours = palette();
  const [left, right] = [axes.rows.tokens, axes.columns.tokens];
  const count = Math.max(left.length, right.length);
  const pitch = count > 40 ? 17 : 26;
  const size = count > 40 ? 12 : 15;
  const width = (tokens) => Math.max(...tokens.map((token) => textWidth(label(token), size)));
  const [x1, gap] = [Math.max(width(left), textWidth(axes.rows.title, 12)) + 18, 300];
  const x2 = x1 + gap;
  const total = [x2 + Math.max(width(right), textWidth(axes.columns.title, 12)) + 18, 34 + count * pitch + 8];
  const y = (tokens, i) => 34 + ((count - tokens.length) / 2 + i + 0.5) * pitch;

  const all = heads.flatMap(({ head, matrix }) => strokes(matrix).map((stroke) => ({ ...stroke, head })));
  const drawn = all.map(({ row, column, weight, head }) => {
    const [a, b] = [y(left, row), y(right, column)];
    const d = `M${x1} ${a}C${x1 + gap * 0.4} ${a} ${x2 - gap * 0.4} ${b} ${x2} ${b}`;
    const colour = heads.length > 1 ? headColour(head) : colours.accent;
    const opacity = Math.min(1, weight / Math.sqrt(heads.length) + 0.03);
    return svg("path", { d, stroke: colour, "stroke-width": 1 + 4 * weight, "stroke-opacity": opacity.toFixed(3) });
  });
  const words = (tokens, x, anchor) => {
    const goes = continues(tokens);
    const shade = (token, i) => (goes[i] || token.word === null ? colours.soft : colours.ink);
    return tokens.map((token, i) =>
      svg("text", { x, y: y(tokens, i) + size * 0.35, "text-anchor": anchor, fill: shade(token, i) }, label(token)));
  };
  const [sources, targets] = [words(left, x1 - 8, "end"), words(right, x2 + 8, "start")];
  const heading = { "font-size": 12, "font-style": "italic", fill: colours.soft };
  const picture = svg("svg", {
    viewBox: `0 0 ${total.map(Math.ceil).join(" ")}`,
    style: `max-width:${Math.ceil(total[0] * 1.25)}px`,
    class: "picture",
    role: "application",
    "aria-roledescription": "line drawing",
    "aria-label": `${title} as lines. Up and down choose a token on the left, Enter follows it step by step.`,
    tabindex: 0,
    "font-family": FONT,
    "font-size": size,
  },
    svg("title", {}, title),
    svg("text", { ...heading, x: x1 - 8, y: 14, "text-anchor": "end" }, axes.rows.title),
    svg("text", { ...heading, x: x2 + 8, y: 14 }, axes.columns.title),
    heads.length > 1 ? legend(heads, x1, gap, colours) : null,
    svg("g", { fill: "none", "stroke-linecap": "round" }, drawn), sources, targets);

  let at = null;
  const look = (row) => {
    at = row;
    all.forEach((stroke, i) => (drawn[i].style.display = row === null || stroke.row === row ? "" : "none"));
    sources.forEach((text, i) => (text.style.fontWeight = i === row ? "700" : ""));
    if (row !== null) onlook(row);
  };
  const under = (event) => {
    const box = picture.getBoundingClientRect();
    const place = ((event.clientY - box.top) * total[1]) / box.height;
    const x = ((event.clientX - box.left) * total[0]) / box.width;
    const row = Math.round((place - y(left, 0)) / pitch);
    return x < x1 + gap / 2 && row >= 0 && row < left.length ? row : null;
  };
  picture.addEventListener("pointermove", (event) => look(under(event)));
  picture.addEventListener("pointerleave", () => look(null));
  picture.addEventListener("blur", () => look(null));
  picture.addEventListener("click", (event) => under(event) !== null && onchoose(under(event)));
  picture.addEventListener("keydown", (event) => {
    const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (step) {
      event.preventDefault();
      look(at === null ? 0 : Math.min(Math.max(at + step, 0), left.length - 1));
    } else if (event.key === "Enter" && at !== null) {
      onchoose(at);
    }
  });
  return picture;
}

/** Which colour is which head. */
function legend(heads, x, gap, colours) {
  const pitch = Math.min(26, gap / heads.length);
  const start = x + (gap - pitch * heads.length) / 2;
  return svg("g", { "font-size": 11, fill: colours.soft, "text-anchor": "middle" }, heads.map(({ head }, i) => [
    svg("rect", { x: start + i * pitch + 2, y: 3, width: pitch - 4, height: 6, rx: 2, fill: headColour(head) }),
    svg("text", { x: start + (i + 0.5) * pitch, y: 22 }, String(head + 1)),
  ]).flat());
}

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
