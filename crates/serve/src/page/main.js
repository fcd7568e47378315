// The page begins here: every part is started and told whom to ask.

import * as api from "./api.js";
import * as attention from "./attention.js";
import * as dictionary from "./dictionary.js";
import { byId, html } from "./dom.js";
import * as positions from "./positions.js";
import * as read from "./read.js";
import * as schedule from "./schedule.js";
import { change, on, state } from "./state.js";
import * as steps from "./steps.js";
import * as theme from "./theme.js";
import * as translate from "./translate.js";
import * as write from "./write.js";

/** Says what went wrong, or nothing. */
function trouble(error) {
  const line = byId("trouble");
  line.hidden = error === null;
  line.textContent = error?.message ?? "";
  if (error?.status === 401) askForKey();
}

function askForKey() {
  byId("key").hidden = false;
  if (!byId("key-dialog").open) byId("key-dialog").showModal();
}

function useKey() {
  if (byId("key-dialog").returnValue !== "use") return;
  api.useKey(byId("key-text").value);
  loadModels();
}

/** What the translation or the text that is looked at is asked for with. */
function subject() {
  const { model, target, text, parts, hypothesis } = state.translation;
  if (!hypothesis) return { model, text };
  // Of a text in several parts, the first line is looked at, as the model translates it.
  if (parts > 1) return { model, target, text: text.trim().split("\n")[0] };
  return { model, target, text, translation_tokens: hypothesis.tokens.map((token) => token.id) };
}

const fetchAttention = (kind) => api.attention({ ...subject(), kinds: [kind] });
const fetchVectors = async (look) => (await api.attention({ ...subject(), kinds: [], vectors: look })).vectors;

/** The part of the page for a model: where people type. */
const PARTS = { translate: "translate", generate: "write" };
const partOf = ({ details: { task } }) => PARTS[task] ?? "read";

/** Shows the part for the model that is chosen. What was looked at belongs to another model. */
function showPart() {
  const part = partOf(state.model);
  for (const id of ["translate", "write", "read"]) {
    byId(id).hidden = id !== part;
    document.querySelector(`nav a[href="#${id}"]`).hidden = id !== part;
  }
  document.querySelector(".skip").setAttribute("href", `#${part}`);
  const first = part === "translate" ? "Translate a sentence first" : "Show the attention of a text first";
  document.querySelector("#attention .empty").textContent = `${first}: it is shown here.`;
  document.querySelector("#head .empty").textContent = `${first}: its queries, keys and values are shown here.`;
  if (state.translation) change("translation", null);
}

async function loadModels() {
  try {
    trouble(null);
    // A name for each language of a model is for clients that cannot say it otherwise.
    const all = (await api.models()).filter((model) => model.details);
    const first = all.find(({ details }) => details.task === "translate") ?? all[0];
    byId("model").replaceChildren(...all.map(({ id }) => html("option", { value: id, selected: id === first.id }, id)));
    document.querySelector(".model").hidden = all.length < 2;
    state.models = all;
    change("model", first);
  } catch (error) {
    trouble(error);
  }
}

theme.start();
translate.start(trouble);
write.start(trouble);
read.start();
attention.start(fetchAttention, trouble);
dictionary.start();
steps.start(fetchVectors, trouble);
positions.start();
schedule.start();
byId("key").addEventListener("click", askForKey);
byId("key-dialog").addEventListener("close", useKey);
on("model", showPart);
byId("model").addEventListener("change", () => change("model", state.models.find(({ id }) => id === byId("model").value)));
loadModels();
