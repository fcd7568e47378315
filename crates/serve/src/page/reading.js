// The tabs of models that read texts: what is asked on the left, the answer on the right, while the reader types.

import { byId, html } from "./dom.js";
import * as answer from "./answer.js";
import * as classify from "./classify.js";
import { fits } from "./examples.js";
import * as fill from "./fill.js";
import * as link from "./link.js";
import { Live } from "./live.js";
import * as rank from "./rank.js";
import * as similar from "./similar.js";
import { lookAt, lookAway, on, state } from "./state.js";
import * as summarize from "./summarize.js";
import * as tag from "./tag.js";

/**
 * Each tab says which `fields` a reader fills, each with an id, a name and a number of rows; `hint(details)` says how; `title` is what
 * the answer is called; `ask(values, model, signal)` gets it as elements. `text(values)` is the text whose attention is shown, or
 * null, and `example` are values for models that know their words.
 */
const TABS = { summarize, answer, fill, classify, tag, similar, rank };

/** Begins to read. `trouble(error)` hears what went wrong, or null when all is well. */
export function start(trouble) {
  for (const [id, tab] of Object.entries(TABS)) {
    byId("reading").append(panel(id, tab));
    const live = new Live((signal) => read(id, tab, signal), trouble);
    const result = byId(`${id}-result`);
    fieldsOf(id, tab).forEach((field) => field.addEventListener("input", () => {
      result.classList.add("stale");
      live.soon();
    }));
    byId(`${id}-link`).addEventListener("click", () => link.copy(location.href, `${id}-copied`));
    on("model", () => {
      live.stop();
      if (state.task.id === id) show(id, tab, live);
    });
  }
}

const fieldsOf = (id, { fields }) => fields.map((field) => byId(`${id}-${field.id}`));

function panel(id, { fields, title }) {
  const area = ({ id: name, name: label, rows }) => [
    html("div", { class: "pane-top" }, html("label", { for: `${id}-${name}` }, label)),
    html("textarea", { id: `${id}-${name}`, rows, maxlength: 5000, spellcheck: "false", "aria-describedby": `${id}-hint` }),
  ];
  return html("div", { id, role: "tabpanel", "aria-labelledby": `tab-${id}`, hidden: true },
    html("div", { class: "panes" },
      html("div", { class: "pane" }, fields.flatMap(area),
        html("div", { class: "pane-bottom" }, html("p", { class: "hint", id: `${id}-hint` }))),
      html("div", { class: "pane" },
        html("div", { class: "pane-top" }, html("span", { id: `${id}-title` }, title)),
        html("div", { id: `${id}-result`, class: "result", role: "group", "aria-labelledby": `${id}-title`, "aria-live": "polite" }),
        html("div", { class: "pane-bottom" },
          html("button", { type: "button", class: "quiet", id: `${id}-link`, disabled: true }, "Copy link"),
          html("span", { class: "hint", id: `${id}-copied`, role: "status" })))));
}

/** Shows the tab for the model that is chosen. */
function show(id, tab, live) {
  byId(`${id}-hint`).textContent = tab.hint(state.model.details);
  byId(`${id}-result`).replaceChildren();
  lookAway();
  tab.fields.forEach((field) => {
    const asked = link.take(field.id);
    if (asked !== null) byId(`${id}-${field.id}`).value = asked;
  });
  const isEmpty = fieldsOf(id, tab).every(({ value }) => !value);
  live.now((signal) => (isEmpty && tab.example ? showExample(id, tab, signal) : read(id, tab, signal)));
}

async function showExample(id, tab, signal) {
  const isFitting = await fits(state.model, tab.text(tab.example));
  if (!isFitting || signal.aborted) return;
  Object.entries(tab.example).forEach(([name, value]) => (byId(`${id}-${name}`).value = value));
  await read(id, tab, signal);
}

async function read(id, tab, signal) {
  const values = Object.fromEntries(tab.fields.map((field) => [field.id, byId(`${id}-${field.id}`).value]));
  const result = byId(`${id}-result`);
  const isWhole = Object.values(values).every((value) => value.trim());
  byId(`${id}-link`).disabled = !isWhole;
  result.classList.remove("stale");
  if (!isWhole) {
    result.replaceChildren();
    lookAway();
    return link.forget();
  }
  result.setAttribute("aria-busy", "true");
  try {
    const elements = await tab.ask(values, state.model, signal);
    if (signal.aborted) return;
    result.replaceChildren(...elements);
    const text = tab.text(values);
    if (text) lookAt({ model: state.model.id, text });
    else lookAway();
    link.keep({ task: id, model: state.models.length > 1 ? state.model.id : null, ...values });
  } catch (error) {
    if (error.name !== "AbortError") {
      result.replaceChildren();
      lookAway();
    }
    throw error;
  } finally {
    if (!signal.aborted) result.removeAttribute("aria-busy");
  }
}
