// Boxes around the things in a picture, and the list of them.

import { bar } from "./bar.js";
import { palette } from "./colour.js";
import { html, slider, svg } from "./dom.js";
import { percent } from "./numbers.js";

/** How certain a thing must be to be shown at first. */
const CERTAIN = 0.5;

/** The line around a box, in parts of the longer side of the picture. */
const LINE = 0.006;

/**
 * Draws `things` over a picture of this width and height, and returns the list of them as elements. Each has a `label`, a `score` and
 * a `bbox` in pixels: left, top, width and height.
 */
export function show(overlay, [width, height], things) {
  const list = html("ol", { class: "best" });
  const best = things.toSorted((a, b) => b.score - a.score);
  const colourOf = colours(best);
  const draw = (threshold) => {
    const shown = best.filter(({ score }) => score >= threshold);
    const line = LINE * Math.max(width, height);
    const boxes = shown.map(({ label, bbox: [x, y, w, h] }) =>
      svg("rect", { x, y, width: w, height: h, fill: "none", stroke: colourOf(label), "stroke-width": line }));
    overlay.replaceChildren(svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${shown.length} boxes` }, boxes));
    list.replaceChildren(...(shown.length ? shown.map((thing, i) => entry(thing, colourOf(thing.label), boxes, i))
      : [html("li", { class: "hint" }, "There is nothing that the model is so certain of.")]));
  };
  draw(CERTAIN);
  const certain = slider({
    id: "boxes-certain", name: "At least", min: 0, max: 1, step: 0.05, value: CERTAIN, show: percent, onchange: draw,
  });
  return [html("div", { class: "options" }, certain), list];
}

/** A thing of the list; its box stands out while it is pointed at. */
function entry({ label, score, bbox: [x, y, w, h] }, colour, boxes, i) {
  const point = (isPointed) => () =>
    boxes.forEach((box, j) => box.setAttribute("opacity", isPointed && j !== i ? 0.15 : 1));
  const place = `${Math.round(w)} × ${Math.round(h)} pixels at ${Math.round(x)}, ${Math.round(y)}`;
  return html("li", { class: "scored", tabindex: 0, onmouseenter: point(true), onmouseleave: point(false), onfocus: point(true), onblur: point(false) },
    html("span", { class: "swatch", style: `background:${colour}`, "aria-hidden": "true" }),
    html("span", { class: "text next", title: place }, label), html("span", { class: "score" }, bar(score), percent(score)));
}

/** Gives each label a colour of its own, as far as there are colours. */
function colours(things) {
  const { heads } = palette();
  const labels = [...new Set(things.map(({ label }) => label))];
  return (label) => heads[labels.indexOf(label) % heads.length];
}
