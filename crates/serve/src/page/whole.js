// The whole model, from the tokens through every layer to the next token: each step can be chosen.

import { arrows, busyWith, byId, html, onresize } from "./dom.js";
import { hiddenStates } from "./hidden.js";
import { axesOf, kindsOf } from "./kinds.js";
import { scores } from "./scores.js";
import { change, on, state } from "./state.js";
import { stacksOf } from "./stacks.js";
import { smallMap } from "./thumbnail.js";
import { label, marksOf } from "./tokens.js";
import * as weights from "./weights.js";

let fetchNext;
let fetchHidden;
let trouble;
/** The step that is chosen, by its name. */
let chosen = null;
/** The hidden states of the text that were fetched, by step. */
let states = new Map();

/**
 * Begins to show the whole model. `next(row)` gets what the model thinks of the next token, as names and probabilities, or null
 * where that is not known; `hidden(step)` gets the hidden states of a step.
 */
export function start(next, hidden, ontrouble) {
  [fetchNext, fetchHidden, trouble] = [next, hidden, ontrouble];
  byId("whole-token").addEventListener("change", () => change("query", Number(byId("whole-token").value)));
  on("model", () => (chosen = null));
  on("subject", () => (states = new Map()));
  ["subject", "query", "theme"].forEach((topic) => on(topic, draw));
  onresize(byId("whole-step"), draw);
}

function draw() {
  document.querySelector("#whole .empty").hidden = state.subject !== null;
  document.querySelector("#whole .filled").hidden = state.subject === null;
  return state.subject && busyWith(byId("stacks"), redraw);
}

async function redraw() {
  const { subject } = state;
  try {
    const kinds = kindsOf(state.model.details);
    const answers = {};
    for (const kind of kinds) answers[kind] = (await weights.mapOf(weights.nearest({ kind, layer: Infinity, head: null }))).answer;
    if (subject !== state.subject) return;
    offerTokens(kinds, answers);
    const { source, shown } = answers[kinds[0]];
    // What was written behind the chosen token is not there yet.
    const stacks = stacksOf(state.model.details, { source, shown: shown.slice(0, state.query + 1) });
    const steps = stacks.flatMap(({ parts }) => parts.flatMap(({ steps }) => steps));
    chosen = steps.find(({ name }) => name === chosen)?.name ?? steps.at(-1).name;
    byId("stacks").style.setProperty("--stacks", stacks.length);
    byId("stacks").classList.toggle("single", stacks.length === 1);
    byId("stacks").replaceChildren(...stacks.map(stackElement));
    const buttons = [...byId("stacks").querySelectorAll("button")];
    byId("stacks").onkeydown = (event) => arrows(event, buttons, 1);
    await tell(steps.find(({ name }) => name === chosen), answers);
  } catch (error) {
    if (subject === state.subject) trouble(error);
  }
}

/** The tokens whose way can be followed: those that were written, or those of the text. */
function offerTokens(kinds, answers) {
  const kind = kinds.at(-1);
  const { tokens } = axesOf(kind, answers[kind]).rows;
  // A text that became shorter may not have the token that was chosen.
  const row = (state.query = Math.min(state.query, tokens.length - 1));
  byId("whole-token").replaceChildren(...tokens.map((token, i) => html("option", { value: i, selected: i === row }, `${i + 1}: ${label(token)}`)));
  byId("whole-token-name").textContent = kind === "cross" ? "The next token to write" : "The token to follow";
}

function stackElement({ title, parts }) {
  return html("section", { class: "stack", "aria-label": title },
    html("h3", {}, title),
    html("ol", {}, parts.map(({ title, steps }) => html("li", { class: "part" },
      html("span", { class: "part-name" }, title), html("div", { class: "part-steps" }, steps.map(button))))));
}

function button(step) {
  const isChosen = step.name === chosen;
  return html("button", {
    type: "button", class: "step", "aria-pressed": String(isChosen), tabindex: isChosen ? 0 : -1, "data-step": step.name,
    onclick: () => choose(step),
  }, step.kind ? small(step) : null, html("span", {}, step.title), step.shape ? html("small", {}, step.shape) : null);
}

/** The mean of all heads of a layer as a small picture. */
function small({ kind, layer }) {
  return smallMap(weights.mapsOf(kind).find((map) => map.layer === layer && map.head === null) ?? {});
}

async function choose(step) {
  chosen = step.name;
  // The sections below show the same layer.
  if (step.kind) change("look", { kind: step.kind, layer: step.layer, head: null });
  await draw();
  byId("stacks").querySelector("[aria-pressed=true]").focus({ preventScroll: true });
}

/** Says what a step does, with the numbers of this text. */
async function tell(step, answers) {
  const { subject } = state;
  const lines = [html("h3", {}, step.long ?? step.title), html("p", {}, step.says)];
  if (step.tokens) lines.push(tokenList(step.tokens));
  if (step.kind) lines.push(await attendsTo(step, answers[step.kind]), links());
  if (step.isNext) lines.push(await nextTokens());
  if (step.hidden) lines.push(await statesOf(step));
  if (step.to && document.querySelector(step.to.address)) lines.push(html("p", {}, html("a", { href: step.to.address }, step.to.name)));
  // Another step may have been chosen meanwhile.
  if (subject === state.subject && step.name === chosen) byId("whole-step").replaceChildren(...lines.filter((line) => line));
}

/** The hidden states of a step; of a decoder, those of the tokens that are there already. */
async function statesOf({ hidden, of }) {
  const key = JSON.stringify(hidden);
  if (!states.has(key)) states.set(key, fetchHidden(hidden));
  const own = states;
  const found = await states.get(key).catch((error) => {
    own.delete(key);
    throw error;
  });
  if (!found) return null;
  const isFollowed = hidden.stack === "decoder" || !state.model.details.decoder_layers;
  const followed = isFollowed ? Math.min(state.query, of.length - 1) : null;
  const { paddingLeft, paddingRight } = getComputedStyle(byId("whole-step"));
  const room = byId("whole-step").clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight);
  return hiddenStates(found, of, followed, room);
}

const tokenList = (tokens) => html("ol", { class: "tokens" }, tokens.map((token) =>
  html("li", { class: token.word === null ? "special" : null }, label(token), html("small", {}, ` ${token.id}`))));

const links = () => html("p", {},
  html("a", { href: "#attention" }, "Every head of this layer"), " · ", html("a", { href: "#steps" }, "One head step by step"));

/** To which tokens a token attends most, in the mean of all heads. */
async function attendsTo({ kind, layer }, answer) {
  const { map } = await weights.mapOf({ kind, layer, head: null });
  const { rows, columns } = axesOf(kind, answer);
  const row = Math.min(state.query, map.rows - 1);
  const best = map.weights[row].map((weight, i) => [label(columns.tokens[i]), weight]).sort((a, b) => b[1] - a[1]).slice(0, 5);
  return html("div", {}, html("p", { class: "hint" }, `“${label(rows.tokens[row])}” attends most to, in the mean of all heads:`), scores(best));
}

async function nextTokens() {
  const found = await fetchNext(state.query);
  if (!found) return null;
  const place = kindsOf(state.model.details).at(-1) === "causal" ? "behind the text" : "in this place";
  const what = found.length > 1 ? `The most probable tokens ${place}:` : `The token ${place}:`;
  return html("div", {}, html("p", { class: "hint" }, what + marksOf(found.map(([name]) => name))), scores(found));
}
