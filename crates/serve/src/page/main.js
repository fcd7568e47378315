// The page begins here: every part is started and told whom to ask.

import * as about from "./about.js";
import * as api from "./api.js";
import * as attention from "./attention.js";
import * as dictionary from "./dictionary.js";
import { byId } from "./dom.js";
import { sentenceOf } from "./errors.js";
import * as positions from "./positions.js";
import * as reading from "./reading.js";
import * as ribbon from "./ribbon.js";
import * as schedule from "./schedule.js";
import { lookAway, on, state } from "./state.js";
import * as see from "./see.js";
import * as steps from "./steps.js";
import * as tasks from "./tasks.js";
import * as theme from "./theme.js";
import { names, visible } from "./tokens.js";
import * as translate from "./translate.js";
import * as weights from "./weights.js";
import * as whole from "./whole.js";
import * as write from "./write.js";

/** Says what went wrong, or nothing. */
function trouble(error) {
  // What was ended on purpose is no trouble.
  if (error?.name === "AbortError") return;
  const line = byId("trouble");
  line.hidden = error === null;
  line.textContent = error ? sentenceOf(error) : "";
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

/** What the attention is asked for with. */
function subject() {
  const { model, source, target, text, tokens } = state.subject;
  return tokens ? { model, source, target, text, translation_tokens: tokens.map(({ id }) => id) } : { model, text };
}

const fetchAttention = (wanted, signal) => api.attention({ ...subject(), ...wanted }, signal);
const fetchVectors = async (look) => (await api.attention({ ...subject(), kinds: [], vectors: look })).vectors;

/** What the model thinks of the next token: names and probabilities. */
async function fetchNext(row) {
  const { model, source, target, text, tokens } = state.subject;
  if (tokens) {
    const prefix_tokens = tokens.slice(0, row).map(({ id }) => id);
    const { translations: [{ hypotheses }] } = await api.translate({ model, text, source, target, prefix_tokens, alternatives: 6 });
    const next = hypotheses.map(({ tokens }) => tokens[row]).sort((a, b) => b.logprob - a.logprob);
    return names(next).map((name, i) => [name, Math.exp(next[i].logprob)]);
  }
  if (state.model.details.task !== "generate") return null;
  const { next } = await api.next({ model, text, count: 6 });
  return next.map(({ text, piece, logprob }) => [visible(text) || piece, Math.exp(logprob)]);
}

/** The hidden states of a step of the model. */
const fetchHidden = async (hidden) => (await api.attention({ ...subject(), kinds: [], hidden })).hidden;

async function loadModels() {
  try {
    trouble(null);
    // A name for each language of a model is for clients that cannot say it otherwise.
    tasks.offer((await api.models()).filter((model) => model.details));
  } catch (error) {
    trouble(error);
  }
}

theme.start();
about.start();
on("model", lookAway);
weights.start(fetchAttention);
ribbon.start();
whole.start(fetchNext, fetchHidden, trouble);
attention.start(trouble);
dictionary.start();
steps.start(fetchVectors, trouble);
positions.start();
schedule.start();
translate.start(trouble);
write.start(trouble);
reading.start(trouble);
see.start(trouble);
byId("key").addEventListener("click", askForKey);
byId("key-dialog").addEventListener("close", useKey);
loadModels();
