// Texts compared by the angle between their vectors.

import * as api from "./api.js";
import { css, heat, inkOn } from "./colour.js";
import { html } from "./dom.js";
import { fixed } from "./numbers.js";

/** More texts would make a table that nobody reads. */
const MOST = 12;

export const title = "Similarity";
export const fields = [{ id: "texts", name: "Texts, one on each line", rows: 8 }];
export const hint = ({ d_model }) => `Each line becomes a vector of ${d_model} numbers. The table has the cosine of the angle between two vectors: `
  + "1 is the same direction, 0 a right angle.";
export const example = {
  texts: "A dog runs through the snow.\nA puppy is running in the snow.\nThe train to the city is late.",
};
const linesOf = ({ texts }) => texts.split("\n").map((line) => line.trim()).filter((line) => line).slice(0, MOST);
export const text = (values) => linesOf(values)[0];

export async function ask(values, { id }, signal) {
  const lines = linesOf(values);
  const { data } = await api.embeddings({ model: id, input: lines }, signal);
  const vectors = data.map(({ embedding }) => embedding);
  if (lines.length < 2) return [html("p", { class: "hint" }, `Its vector begins ${vectors[0].slice(0, 6).map((x) => fixed(x)).join(", ")}, … `
    + "Write a second line to compare it with.")];
  return [table(lines, vectors)];
}

/** The cosines between all vectors, each with its name. */
export function table(names, vectors) {
  const numbers = names.map((_, i) => html("th", { scope: "col" }, String(i + 1)));
  const row = (name, i) => html("tr", {}, html("th", { scope: "row" }, `${i + 1} ${short(name)}`), names.map((_, j) => cell(cosine(vectors[i], vectors[j]))));
  return html("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Similarity" },
    html("table", { class: "similar" }, html("thead", {}, html("tr", {}, html("td"), numbers)), html("tbody", {}, names.map(row))));
}

const short = (text) => (text.length > 28 ? `${text.slice(0, 27)}…` : text);

function cell(cosine) {
  const colour = heat(Math.max(cosine, 0) ** 2);
  return html("td", { style: `background:${css(colour)};color:${inkOn(colour)}` }, fixed(cosine, 2));
}

function cosine(a, b) {
  const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
}
