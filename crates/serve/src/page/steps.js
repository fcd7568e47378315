// A head of the model, step by step, with its real numbers.

import { attend } from "./arithmetic.js";
import { attentionOf, axesOf, kindsOf } from "./attention.js";
import * as dictionary from "./dictionary.js";
import { busyWith, byId, chosen, html } from "./dom.js";
import { fixed } from "./numbers.js";
import { saveButtons } from "./save.js";
import { stages, table } from "./stages.js";
import { change, on, state } from "./state.js";
import { label } from "./tokens.js";

let fetchVectors;
let trouble;
/** The vectors that were fetched last, and of which head they are. */
let fetched = { key: null, answer: null };

/** Begins to show a head. `fetch(look)` gets the queries, keys and values of one head. */
export function start(fetch, ontrouble) {
  [fetchVectors, trouble] = [fetch, ontrouble];
  const place = byId("head");
  const select = (id, name, onchange) => html("label", {}, `${name} `, html("select", { id, onchange }));
  const look = (field, read) => ({ target }) => change("look", { ...lookedAt(), [field]: read(target.value) });
  place.append(
    html("p", { class: "empty" }, "Translate a sentence first to see its queries, keys and values here."),
    html("div", { class: "filled", hidden: true },
      html("div", { class: "options" },
        select("head-kind", "Attention", look("kind", String)),
        select("head-layer", "Layer", look("layer", Number)), select("head-head", "Head", look("head", Number)),
        select("head-query", "Query", () => change("query", Number(byId("head-query").value)))),
      html("div", { id: "head-picture", class: "scroll" }),
      html("p", { id: "head-peak", class: "hint", role: "status" }),
      saveButtons(() => place.querySelector("svg"), () => "attention-step-by-step"),
      html("div", { id: "head-table" })));
  document.querySelectorAll("input[name=scene]").forEach((input) => input.addEventListener("change", turn));
  byId("divide").addEventListener("change", draw);
  addEventListener("resize", draw);
  ["translation", "look", "theme"].forEach((topic) => on(topic, draw));
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
const keyOf = (look) => JSON.stringify([look, state.translation.number]);

function draw() {
  const place = byId("head");
  place.querySelector(".empty").hidden = state.translation !== null;
  place.querySelector(".filled").hidden = state.translation === null;
  if (state.translation && !place.hidden) busyWith(byId("head-picture"), redraw);
}

async function redraw() {
  const look = lookedAt();
  const key = keyOf(look);
  try {
    const axes = axesOf(look.kind, await attentionOf(look.kind));
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
  const divide = byId("divide").checked;
  const { queries, keys, values, causal } = vectors;
  const visible = causal ? row + 1 : keys.length;
  const query = { name: label(axes.rows.tokens[row]), vector: queries[row] };
  const steps = attend({ query: query.vector, keys, values, divide, visible });
  const scene = { query, names, keys, values, visible, steps, divide };
  byId("head-picture").replaceChildren(stages({ ...scene, width: byId("head-picture").clientWidth }));
  byId("head-table").replaceChildren(table(scene));
  const other = attend({ query: query.vector, keys, values, divide: !divide, visible });
  const greatest = (weights) => fixed(Math.max(...weights), 3);
  byId("head-peak").textContent = `The largest weight is ${greatest(steps.weights)}; `
    + `${divide ? "without" : "with"} the division by √${query.vector.length} it is ${greatest(other.weights)}.`;
}

function fillSelects(look, axes, row) {
  const { task, encoder_layers, decoder_layers, h } = state.model.details;
  const count = (n, chosen) => Array.from({ length: n }, (_, i) => html("option", { value: i, selected: i === chosen }, String(i + 1)));
  const names = { encoder: "encoder self", decoder: "decoder self", cross: "cross", causal: "causal self" };
  byId("head-kind").replaceChildren(...kindsOf(task).map((value) =>
    html("option", { value, selected: value === look.kind }, names[value])));
  byId("head-layer").replaceChildren(...count(look.kind === "encoder" ? encoder_layers : decoder_layers, look.layer));
  byId("head-head").replaceChildren(...count(h, look.head));
  byId("head-query").replaceChildren(...axes.rows.tokens.map((token, i) =>
    html("option", { value: i, selected: i === row }, `${i + 1}: ${label(token)}`)));
}
