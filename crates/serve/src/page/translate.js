// The tab that translates: a text on the left, its translation on the right, line by line, while the reader types.

import * as alternatives from "./alternatives.js";
import * as api from "./api.js";
import { byId, chosen, html, slider, slideTo } from "./dom.js";
import * as examples from "./examples.js";
import { clearTranslation, markPiece, writeBest, writeDraft, writeTranslation } from "./hypotheses.js";
import * as link from "./link.js";
import { Live } from "./live.js";
import { segmentsOf } from "./segments.js";
import { change, lookAt, lookAway, on, state } from "./state.js";
import { choose as chooseTask } from "./tasks.js";

let live;
/** What was asked, and the answer: of each line null if it is empty, or its hypotheses and which of them is shown. */
let found = null;
/** The place that is shown below: a line, and a segment of it. */
let at = { line: 0, segment: 0 };
/** Whether the text is the reader's own. */
let isOwn = false;

const settings = { beam: 4, temperature: 1, topP: 1, results: 4 };

/** Begins to translate. `trouble(error)` hears what went wrong, or null when all is well. */
export function start(trouble) {
  live = new Live(translate, trouble);
  addSliders();
  byId("text").addEventListener("input", () => {
    isOwn = true;
    later();
  });
  ["source", "target"].forEach((id) => byId(id).addEventListener("change", () => {
    showLanguages();
    now();
  }));
  document.querySelectorAll("input[name=search]").forEach((input) => input.addEventListener("change", () => {
    showSettings();
    now();
  }));
  byId("swap").addEventListener("click", swap);
  byId("copy").addEventListener("click", () => link.copy(wholeText(), "copied"));
  byId("copy-link").addEventListener("click", () => {
    keepLink();
    link.copy(location.href, "copied");
  });
  on("model", showModel);
}

function addSliders() {
  const set = (name) => (value) => {
    settings[name] = value;
    showSettings();
    later();
  };
  const digits = (count) => (x) => x.toFixed(count);
  const only = (method, element) => {
    element.dataset.for = method;
    return element;
  };
  byId("search-options").append(
    only("beam", slider({
      id: "beam", name: "Beam size", min: 1, max: 8, value: settings.beam, onchange: set("beam"),
      hint: "The search keeps this many of the best beginnings at each step, and at least as many as are listed. 1 always takes the most probable token.",
    })),
    only("sample", slider({
      id: "temperature", name: "Temperature", min: 0.1, max: 2, step: 0.1, value: settings.temperature, show: digits(1),
      onchange: set("temperature"), hint: "Each token is drawn by its probability. Below 1 the probable ones come more often, above 1 the others.",
    })),
    only("sample", slider({
      id: "top-p", name: "Top p", min: 0.05, max: 1, step: 0.05, value: settings.topP, show: digits(2), onchange: set("topP"),
      hint: "Only the most probable tokens are drawn, as many as have this probability together.",
    })),
    slider({
      id: "n-best", name: "Results", min: 1, max: 8, value: settings.results, onchange: set("results"),
      hint: "How many translations of a line are listed.",
    }),
    only("sample", html("button", { type: "button", id: "again", onclick: () => live.now() }, "Draw again")));
  showSettings();
}

function showSettings() {
  const method = chosen("search");
  document.querySelectorAll("[data-for]").forEach((element) => (element.hidden = element.dataset.for !== method));
  const { beam, temperature, topP, results } = settings;
  byId("search-now").textContent = method === "beam"
    ? `beam of ${Math.max(beam, results)}` : `sampling at temperature ${temperature.toFixed(1)}, top p ${topP.toFixed(2)}`;
}

function showModel() {
  live.stop();
  clear();
  if (state.task.id !== "translate") return;
  const { sources, targets, beam } = state.model.details;
  const option = ({ code, name }) => html("option", { value: code }, name);
  byId("source").replaceChildren(html("option", { value: "" }, "Detect the language"), ...sources.map(option));
  byId("target").replaceChildren(...targets.map(option));
  // Of many languages, the reader's own is the one to begin with.
  const own = navigator.language.split("-")[0];
  if (sources.length > 1 && targets.some(({ code }) => code === own)) byId("target").value = own;
  // The page searches as every other client does, until the reader moves the slider.
  slideTo("beam", Math.min(Math.max(beam, 1), 8));
  const first = examples.offer((text, target) => {
    isOwn = false;
    show(text, target);
  });
  const asked = link.take("text");
  if (asked !== null) {
    isOwn = true;
    show(asked, link.take("to"), link.take("from"));
  } else if (isOwn) {
    show(byId("text").value);
  } else {
    show(first?.text ?? "", first?.target);
  }
}

/** Puts a text into the box and translates it. */
function show(text, target, source) {
  byId("text").value = text;
  if (target) byId("target").value = target;
  if (source) byId("source").value = source;
  showLanguages();
  live.now();
}

const later = () => {
  if (!byId("text").value.trim()) {
    live.stop();
    return clear();
  }
  byId("translation").classList.add("stale");
  live.soon();
};

const now = () => live.now();

/** Shows no translation. */
function clear() {
  found = null;
  clearTranslation();
  byId("best").hidden = true;
  alternatives.hide();
  setCopying(false);
  lookAway();
  link.forget();
}

const setCopying = (can) => ["copy", "copy-link"].forEach((id) => (byId(id).disabled = !can));

/** The language of the text, or undefined if it is to be detected. */
function source() {
  const { sources } = state.model.details;
  return sources.length === 1 ? sources[0] : sources.find(({ code }) => code === byId("source").value);
}

const target = () => state.model.details.targets.find(({ code }) => code === byId("target").value);

function showLanguages() {
  const { sources, targets } = state.model.details;
  byId("source-name").textContent = sources.length === 1 ? sources[0].name : "Text";
  byId("source-field").hidden = sources.length < 2;
  byId("target-name").textContent = target()?.name ?? "What the model writes";
  byId("target-name").hidden = targets.length > 1;
  byId("target-field").hidden = targets.length < 2;
  byId("text").lang = source()?.code ?? "";
  byId("swap").hidden = !reverse();
}

/** The model and the language that translate back, if there are any. */
function reverse() {
  const [from, into] = [source(), target()];
  if (!from || !into) return null;
  const has = (languages, code) => languages.some((language) => language.code === code);
  const isBack = ({ details }) => details.task === "translate" && has(details.sources, into.code) && has(details.targets, from.code);
  const model = [state.model, ...state.models].find(isBack);
  return model && { model, source: into.code, target: from.code };
}

function swap() {
  const back = reverse();
  const text = found ? wholeText() : byId("text").value;
  isOwn = true;
  if (back.model !== state.model) {
    byId("text").value = text;
    chooseTask(state.task, back.model);
  }
  show(text, back.target, back.source);
  byId("text").focus();
}

/** The question as the form has it, without the texts. */
function question() {
  const search = chosen("search") === "beam"
    // A list of the best needs a beam of as many.
    ? { beam: Math.max(settings.beam, settings.results) }
    : { sampling: { temperature: settings.temperature, top_p: settings.topP, seed: Math.floor(Math.random() * 2 ** 31) } };
  const from = state.model.details.sources.length > 1 ? source()?.code : undefined;
  return { model: state.model.id, source: from, target: byId("target").value || undefined, n_best: settings.results, ...search };
}

async function translate(signal) {
  const lines = byId("text").value.split("\n");
  const texts = lines.filter((line) => line.trim());
  if (!texts.length || !state.model) return clear();
  const request = question();
  alternatives.hide();
  byId("translation").setAttribute("aria-busy", "true");
  const drafts = [];
  const write = (draft) => {
    drafts[draft.index] = draft;
    writeDraft(lines, drafts);
  };
  try {
    const { translations } = await api.stream({ ...request, text: texts }, write, signal);
    found = { request, lines: lines.map((text) => (text.trim() ? { text, rank: 0, ...translations.shift() } : null)) };
    byId("translation").removeAttribute("aria-busy");
    lookAtSegment({ line: found.lines.findIndex((line) => line), segment: 0 });
    setCopying(true);
    keepLink();
  } catch (error) {
    if (error.name !== "AbortError") {
      byId("translation").removeAttribute("aria-busy");
      clear();
    }
    throw error;
  }
}

const keepLink = () => link.keep({
  task: state.task.id, model: state.models.length > 1 ? state.model.id : null, from: found.request.source, to: found.request.target, text: byId("text").value,
});

const hypothesisOf = (line) => line.hypotheses[line.rank];

/** The whole translation, line by line. */
const wholeText = () => found.lines.map((line) => (line ? hypothesisOf(line).text : "")).join("\n");

/** Shows the translation, and below it what is known of one segment of it. */
function lookAtSegment(place) {
  at = place;
  const { model, source, target } = found.request;
  writeTranslation(found.lines.map((line) => line && { ...hypothesisOf(line), segments: segmentsOf(line) }), target, choosePiece);
  const line = found.lines[at.line];
  const several = found.lines.filter((line) => line).length > 1;
  byId("best").hidden = false;
  writeBest(line, { language: target, number: several ? at.line + 1 : null, sampled: Boolean(found.request.sampling) }, chooseRank);
  const segment = segmentsOf(line)?.[at.segment];
  if (segment) lookAt({ model, source, target, text: segment.text, tokens: segment.tokens });
  else lookAway();
}

function chooseRank(rank) {
  alternatives.hide();
  found.lines[at.line].rank = rank;
  lookAtSegment({ line: at.line, segment: 0 });
}

/** Follows a token of the translation, and shows what else could stand there. */
const choosePiece = (place) => live.now(async (signal) => {
  if (place.line !== at.line || place.segment !== at.segment) lookAtSegment(place);
  change("query", place.token);
  markPiece(place);
  const line = found.lines[place.line];
  // A way to go on is known of what the model reads at once.
  if (line.parts > 1) return;
  const { request: { model, source, target, beam } } = found;
  const hypothesis = hypothesisOf(line);
  alternatives.wait();
  const prefix_tokens = hypothesis.tokens.slice(0, place.token).map((token) => token.id);
  const answer = await api.translate({ model, text: line.text, source, target, prefix_tokens, beam, alternatives: 6 }, signal);
  const back = () => {
    alternatives.hide();
    markPiece(null);
    byId("translation").querySelector(`[data-place="${place.line}.${place.segment}.${place.token}"]`)?.focus();
  };
  const take = (hypothesis) => {
    if (!line.hypotheses.includes(hypothesis)) {
      line.hypotheses = [hypothesis, ...line.hypotheses.filter((other) => other.text !== hypothesis.text)];
    }
    chooseRank(line.hypotheses.indexOf(hypothesis));
    back();
  };
  // The token that is there already stands for the translation as it is.
  const isThere = (other) => other.tokens[place.token].id === hypothesis.tokens[place.token].id;
  const others = answer.translations[0].hypotheses.map((other) => (isThere(other) ? hypothesis : other));
  alternatives.show(others, place.token, target, take, back);
});
