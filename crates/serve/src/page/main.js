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

/** What the models of a server without a translation model do, and where to ask them. */
function others(models) {
  const DOES = { embed: "makes embeddings", classify: "classifies texts", tag: "tags words", generate: "continues prompts" };
  const one = ({ id, details }) =>
    `${id} ${DOES[details.task]}: ${details.routes.map((route) => `POST ${route}`).join(", ")}.`;
  return ["This server has no translation model, so there is nothing to translate here.", ...models.map(one)].join(" ");
}

async function loadModels() {
  try {
    trouble(null);
    // A name for each language of a model is for clients that cannot say it otherwise.
    const all = (await api.models()).filter((model) => model.details);
    const models = all.filter(({ details }) => details.task === "translate");
    const hasTranslator = models.length > 0;
    [byId("question"), byId("examples")].forEach((element) => (element.hidden = !hasTranslator));
    byId("no-translator").hidden = hasTranslator;
    byId("no-translator").textContent = hasTranslator ? "" : others(all);
    if (!hasTranslator) {
      document.querySelectorAll(".empty").forEach((hint) => (hint.textContent = "Only translations are shown here, and there is no model for them."));
    }
    byId("model").replaceChildren(...models.map(({ id }) => html("option", { value: id }, id)));
    document.querySelector(".model").hidden = models.length < 2;
    state.models = models;
    if (hasTranslator) change("model", models[0]);
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
