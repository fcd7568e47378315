// The page begins here: every part is started and told whom to ask.

import * as api from "./api.js";
import * as attention from "./attention.js";
import * as dictionary from "./dictionary.js";
import { byId, html } from "./dom.js";
import * as positions from "./positions.js";
import * as schedule from "./schedule.js";
import { change, state } from "./state.js";
import * as steps from "./steps.js";
import * as theme from "./theme.js";
import * as translate from "./translate.js";

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

/** What the translation that is looked at is asked for with. */
function translated() {
  const { model, target, text, parts, hypothesis } = state.translation;
  // Of a text in several parts, the first line is looked at, as the model translates it.
  if (parts > 1) return { model, target, text: text.trim().split("\n")[0] };
  return { model, target, text, translation_tokens: hypothesis.tokens.map((token) => token.id) };
}

const fetchAttention = (kind) => api.attention({ ...translated(), kinds: [kind] });
const fetchVectors = async (look) => (await api.attention({ ...translated(), kinds: [], vectors: look })).vectors;

async function loadModels() {
  try {
    trouble(null);
    // A name for each language of a model is for clients that cannot say it otherwise.
    const models = (await api.models()).filter((model) => model.details);
    byId("model").replaceChildren(...models.map(({ id }) => html("option", { value: id }, id)));
    document.querySelector(".model").hidden = models.length < 2;
    state.models = models;
    change("model", models[0]);
  } catch (error) {
    trouble(error);
  }
}

theme.start();
translate.start(trouble);
attention.start(fetchAttention, trouble);
dictionary.start();
steps.start(fetchVectors, trouble);
positions.start();
schedule.start();
byId("key").addEventListener("click", askForKey);
byId("key-dialog").addEventListener("close", useKey);
byId("model").addEventListener("change", () => change("model", state.models.find(({ id }) => id === byId("model").value)));
loadModels();
