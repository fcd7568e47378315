// Switches for the heads that are drawn as lines, each in the colour and the stroke of its lines.

import { headStyle } from "./colour.js";
import { html, svg } from "./dom.js";

/** The name of a head for a switch or a legend, counted from 1. */
export const headName = (head) => (head === null ? "mean" : String(head + 1));

/** A short stroke as the lines of a head are drawn. */
export const sample = (head, width = 22) =>
  svg("svg", { width, height: 8, viewBox: `0 0 ${width} 8`, "aria-hidden": "true" },
    svg("path", { d: `M1 4H${width - 1}`, "stroke-width": 3.5, fill: "none", ...headStyle(head) }));

/** Fills `place` with a switch for each head; `onchange(lit)` hears which are on. */
export function headChips(place, heads, lit, onchange) {
  const focused = document.activeElement?.dataset?.head;
  const chip = (head) => html("button", {
    type: "button", class: "chip", "data-head": headName(head), "aria-pressed": String(lit.has(head)),
    "aria-label": head === null ? "Mean of all heads" : `Head ${head + 1}`,
    onclick: () => onchange(new Set(heads.filter((other) => (other === head) !== lit.has(other)))),
  }, sample(head), ` ${headName(head)}`);
  const every = (name, wanted) => html("button", { type: "button", class: "chip", "data-head": name, onclick: () => onchange(new Set(wanted)) }, name);
  place.replaceChildren(html("span", { class: "hint", id: "heads-title" }, "Heads"), ...heads.map(chip),
    every("all", heads.filter((head) => head !== null)), every("none", []));
  place.querySelector(`[data-head="${focused}"]`)?.focus();
}
