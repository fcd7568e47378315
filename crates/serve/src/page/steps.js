// A head of the model, step by step, with its real numbers.

import { attend } from "./arithmetic.js";
import * as dictionary from "./dictionary.js";
import { busyWith, byId, chosen, html, onresize } from "./dom.js";
import { axesOf, KINDS, kindsOf } from "./kinds.js";
import { fixed } from "./numbers.js";
import { saveButtons } from "./save.js";
import { stages, table } from "./stages.js";
import { change, on, state } from "./state.js";
import { sentencesOf, termsOf } from "./terms.js";
import { label } from "./tokens.js";
import { mapOf } from "./weights.js";

let fetchVectors;
let trouble;
/** The vectors that were fetched last, and of which head they are. */
let fetched = { key: null, answer: null };

/** Begins to show a head. `fetch(look)` gets the queries, keys and values of one head, or null where they are not known. */
export function start(fetch, ontrouble) {
  [fetchVectors, trouble] = [fetch, ontrouble];
  const place = byId("head");
  const select = (id, name, onchange) => html("label", {}, `${name} `, html("select", { id, onchange }));
  const look = (field, read) => ({ target }) => change("look", { ...lookedAt(), [field]: read(target.value) });
  place.append(
    html("p", { class: "empty" }, "Write a text above to see its queries, keys and values here."),
    html("div", { class: "filled", hidden: true },
      html("div", { class: "options" },
        select("head-kind", "Attention", look("kind", String)),
        select("head-layer", "Layer", look("layer", Number)), select("head-head", "Head", look("head", Number)),
        select("head-query", "Query", () => change("query", Number(byId("head-query").value)))),
      html("div", { id: "head-picture", class: "scroll tall", tabindex: 0, role: "group", "aria-label": "The head, step by step" }),
      html("p", { id: "head-peak", class: "hint", role: "status" }),
      html("p", { id: "head-terms", class: "hint" }),
      saveButtons(() => place.querySelector("svg"), () => "attention-step-by-step"),
      html("div", { id: "head-table" })));
  document.querySelectorAll("input[name=scene]").forEach((input) => input.addEventListener("change", turn));
  byId("divide").addEventListener("change", draw);
  onresize(byId("head-picture"), draw);
  ["subject", "look", "theme"].forEach((topic) => on(topic, draw));
  // Whoever chooses a query in a picture wants to see it.
  on("query", () => {
    document.querySelector("input[name=scene][value=head]").checked = true;
    turn();
  });
}

function turn() {
  const isHead = chosen("scene") === "head";
  byId("colours").hidden = isHead;
  byId("head").hidden = !isHead;
  if (isHead) draw();
  else dictionary.show();
}

/** The head that is looked at. The mean of all heads has no queries of its own: the first head stands for it. */
const lookedAt = () => ({ ...state.look, head: state.look.head ?? 0 });

/** What tells whether something else is looked at than before. */
const keyOf = (look) => JSON.stringify([look, state.subject.number]);

function draw() {
  const place = byId("head");
  place.querySelector(".empty").hidden = state.subject !== null;
  place.querySelector(".filled").hidden = state.subject === null;
  if (state.subject && !place.hidden) busyWith(byId("head-picture"), redraw);
}

async function redraw() {
  const look = lookedAt();
  const key = keyOf(look);
  try {
    const { answer } = await mapOf(look);
    const axes = axesOf(look.kind, answer);
    if (fetched.key !== key) fetched = { key, answer: fetchVectors(look) };
    const vectors = await fetched.answer;
    // Whoever has chosen something else in the meantime gets that, and not this before it.
    if (key === keyOf(lookedAt())) show(look, axes, vectors);
  } catch (error) {
    fetched = { key: null, answer: null };
    trouble(error);
  }
}

function show(look, axes, vectors) {
  const names = axes.columns.tokens.map(label);
  const row = Math.min(state.query, axes.rows.tokens.length - 1);
  fillSelects(look, axes, row);
  byId("head-table").hidden = !vectors;
  if (!vectors) {
    ["head-peak", "head-terms"].forEach((id) => (byId(id).textContent = ""));
    return byId("head-picture").replaceChildren(html("p", { class: "empty" }, "This page has no vectors of this head: it would be too large."));
  }
  const divide = byId("divide").checked;
  const { queries, keys, values, causal, scale } = vectors;
  const visible = causal ? row + 1 : keys.length;
  const query = { name: label(axes.rows.tokens[row]), vector: queries[row] };
  const attended = (divide) =>
    attend({ query: query.vector, keys, values, divisor: divide ? 1 / scale : 1, terms: termsOf(vectors, row, divide), visible });
  const steps = attended(divide);
  const scene = { query, names, keys, values, visible, steps, divide };
  byId("head-picture").replaceChildren(stages({ ...scene, width: byId("head-picture").clientWidth }));
  byId("head-table").replaceChildren(table(scene));
  const greatest = (weights) => fixed(Math.max(...weights), 3);
  byId("head-peak").textContent = scale === 1
    ? "This model does not divide the dot products."
    : `The largest weight is ${greatest(steps.weights)}; ${divide ? "without" : "with"} the division it is ${greatest(attended(!divide).weights)}.`;
  byId("head-terms").textContent = sentencesOf(vectors);
}

function fillSelects(look, axes, row) {
  const { encoder_layers, decoder_layers, h, decoder_h } = state.model.details;
  const count = (n, chosen) => Array.from({ length: n }, (_, i) => html("option", { value: i, selected: i === chosen }, String(i + 1)));
  byId("head-kind").replaceChildren(...kindsOf(state.model.details).map((value) =>
    html("option", { value, selected: value === look.kind }, KINDS[value].short)));
  byId("head-layer").replaceChildren(...count(look.kind === "encoder" ? encoder_layers : decoder_layers, look.layer));
  byId("head-head").replaceChildren(...count(look.kind === "encoder" ? h : decoder_h ?? h, look.head));
  byId("head-query").replaceChildren(...axes.rows.tokens.map((token, i) =>
    html("option", { value: i, selected: i === row }, `${i + 1}: ${label(token)}`)));
}
