// The part of the page that translates.

import * as alternatives from "./alternatives.js";
import * as api from "./api.js";
import { byId, chosen, html } from "./dom.js";
import * as examples from "./examples.js";
import { markPiece, writeBest, writeDraft, writeTranslation } from "./hypotheses.js";
import { lookAt, on, state } from "./state.js";

let trouble;
/** Ends what is under way when something else is asked for. */
let underWay = null;
/** What was asked, and the hypotheses there are for it. */
let asked = null;
let found = [];

/** Begins to translate. `ontrouble(error)` hears what went wrong, or null when all is well. */
export function start(ontrouble) {
  trouble = ontrouble;
  byId("question").addEventListener("submit", (event) => {
    event.preventDefault();
    translate();
  });
  byId("text").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      translate();
    }
  });
  document.querySelectorAll("input[name=search]").forEach((input) => input.addEventListener("change", showOptions));
  Object.keys(VALUES).forEach((id) => byId(id).addEventListener("input", () => showValue(id)));
  on("model", showModel);
}

/** How the values of the sliders are written. */
const VALUES = { beam: String, temperature: (x) => x.toFixed(1), "top-p": (x) => x.toFixed(2), "n-best": String };

const showValue = (id) => (byId(`${id}-value`).textContent = VALUES[id](Number(byId(id).value)));

function set(id, value) {
  byId(id).value = value;
  showValue(id);
}

function showOptions() {
  document.querySelectorAll("[data-for]").forEach((element) => (element.hidden = element.dataset.for !== chosen("search")));
}

function showModel() {
  underWay?.abort();
  byId("answer").hidden = true;
  if (state.model.details.task !== "translate") return;
  const { targets, beam } = state.model.details;
  byId("target").replaceChildren(...targets.map(({ code, name }) => html("option", { value: code }, name)));
  byId("target-field").hidden = targets.length < 2;
  // The page searches as every other client does, until the reader moves the slider.
  set("beam", Math.min(Math.max(beam, 1), Number(byId("beam").max)));
  examples.offer((text, target) => {
    byId("text").value = text;
    if (target) byId("target").value = target;
    translate();
  });
}

/** The question as the form has it. */
function question() {
  const number = (id) => Number(byId(id).value);
  const search = chosen("search") === "beam"
    // A list of the best needs a beam of as many.
    ? { beam: Math.max(number("beam"), number("n-best")) }
    : { sampling: { temperature: number("temperature"), top_p: number("top-p"), seed: Math.floor(Math.random() * 2 ** 31) } };
  const target = byId("target").value || undefined;
  return { model: state.model.id, text: byId("text").value, target, n_best: number("n-best"), ...search };
}

/** Runs `work` with a signal that ends it when something else is asked for. */
async function instead(work) {
  underWay?.abort();
  const own = (underWay = new AbortController());
  trouble(null);
  try {
    await work(own.signal);
  } catch (error) {
    if (error.name !== "AbortError") trouble(error);
  } finally {
    if (underWay === own) underWay = null;
  }
}

const translate = () => instead(async (signal) => {
  if (!byId("text").value.trim() || !state.model) return byId("text").focus();
  asked = question();
  alternatives.hide();
  byId("answer").hidden = false;
  byId("answer").classList.add("busy");
  writeDraft({ text: "…", settled: 0 });
  byId("n-best-list").replaceChildren();
  try {
    const answer = await api.stream(asked, (draft) => draft.index === 0 && writeDraft(draft), signal);
    const [translation] = answer.translations;
    found = translation.hypotheses;
    asked.parts = translation.parts;
    byId("best-title").textContent = asked.sampling ? "Samples" : "Best translations";
    choose(0);
  } catch (error) {
    if (error.name !== "AbortError") {
      byId("answer").hidden = true;
      byId("translation").removeAttribute("aria-busy");
    }
    throw error;
  } finally {
    if (!signal.aborted) byId("answer").classList.remove("busy");
  }
});

/** Looks at one of the hypotheses. */
function choose(rank) {
  const { text, target, model, parts } = asked;
  alternatives.hide();
  writeTranslation(found[rank], target, showAlternatives);
  writeBest(found, rank, target, choose);
  // Only what the model read at once can be looked into and gone on with.
  byId("translation-hint").hidden = parts > 1;
  lookAt({ model, target, text, parts, hypothesis: found[rank] });
}

const showAlternatives = (place) => instead(async (signal) => {
  const { text, target, model, parts, beam } = asked;
  if (parts > 1) return;
  markPiece(place);
  alternatives.wait();
  const { hypothesis } = state.translation;
  const prefix_tokens = hypothesis.tokens.slice(0, place).map((token) => token.id);
  const answer = await api.translate({ model, text, target, prefix_tokens, beam, alternatives: 6 }, signal);
  const close = () => {
    alternatives.hide();
    markPiece(null);
    byId("translation").querySelectorAll(".piece")[place]?.focus();
  };
  const take = (hypothesis) => {
    if (!found.includes(hypothesis)) found = [hypothesis, ...found.filter((other) => other.text !== hypothesis.text)];
    choose(found.indexOf(hypothesis));
    byId("translation").querySelectorAll(".piece")[place]?.focus();
  };
  // The piece that is there already stands for the translation as it is.
  const isThere = (other) => other.tokens[place].id === hypothesis.tokens[place].id;
  const others = answer.translations[0].hypotheses.map((other) => (isThere(other) ? hypothesis : other));
  alternatives.show(others, place, target, take, close);
});
