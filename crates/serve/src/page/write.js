// The tab that writes with a language model: the reader chooses the next token, or lets the model draw.

import * as api from "./api.js";
import { bar } from "./bar.js";
import { byId, html, slider } from "./dom.js";
import { fits } from "./examples.js";
import * as link from "./link.js";
import { Live } from "./live.js";
import { percent } from "./numbers.js";
import { lookAt, lookAway, on, state } from "./state.js";
import { visible } from "./tokens.js";

/** How many of the next tokens are shown. */
const COUNT = 12;

/** A beginning for models that know its words. */
const EXAMPLE = "A dog runs through the";

let live;
const options = { temperature: 0.8, topP: 0.95, tokens: 40 };

/** Begins to write. `trouble(error)` hears what went wrong, or null when all is well. */
export function start(trouble) {
  live = new Live(showNext, trouble);
  const set = (name) => (value) => (options[name] = value);
  const digits = (count) => (x) => x.toFixed(count);
  byId("writing-options").append(
    slider({
      id: "heat", name: "Temperature", min: 0, max: 2, step: 0.1, value: options.temperature, show: digits(1), onchange: set("temperature"),
      hint: "0 always takes the most probable token. Below 1 the probable ones come more often, above 1 the others.",
    }),
    slider({
      id: "mass", name: "Top p", min: 0.05, max: 1, step: 0.05, value: options.topP, show: digits(2), onchange: set("topP"),
      hint: "Only the most probable tokens are drawn, as many as have this probability together.",
    }),
    slider({
      id: "more", name: "Tokens", min: 1, max: 200, value: options.tokens, onchange: set("tokens"),
      hint: "How many tokens the model writes at most.",
    }));
  byId("write-on").addEventListener("click", () => (byId("write").classList.contains("writes") ? live.now() : live.now(writeOn)));
  byId("draft").addEventListener("input", () => {
    byId("next-list").classList.add("stale");
    live.soon();
  });
  on("model", showModel);
}

function showModel() {
  live.stop();
  if (state.task.id !== "write") return;
  byId("next-list").replaceChildren();
  byId("draft").value = link.take("text") ?? byId("draft").value;
  live.now(async (signal) => {
    if (!byId("draft").value && (await fits(state.model, EXAMPLE)) && !signal.aborted) byId("draft").value = EXAMPLE;
    await showNext(signal);
  });
}

const write = (text) => {
  byId("draft").value += text;
  byId("draft").scrollTop = byId("draft").scrollHeight;
};

/** Shows what may follow the text, the most probable first, and the attention of the text. */
async function showNext(signal) {
  const text = byId("draft").value;
  const list = byId("next-list");
  list.setAttribute("aria-busy", "true");
  try {
    const answer = await api.next({ model: state.model.id, text, count: COUNT }, signal);
    byId("draft-hint").textContent = `${answer.tokens} of at most ${state.model.details.max_tokens} tokens.`;
    list.replaceChildren(...answer.next.map(item));
    if (text) {
      // The last token is the one that the next token follows.
      state.query = answer.tokens - 1;
      lookAt({ model: state.model.id, text });
      link.keep({ task: state.task.id, model: state.models.length > 1 ? state.model.id : null, text });
    } else {
      lookAway();
      link.forget();
    }
  } catch (error) {
    if (error.name !== "AbortError") {
      list.replaceChildren();
      lookAway();
    }
    throw error;
  } finally {
    if (!signal.aborted) {
      list.removeAttribute("aria-busy");
      list.classList.remove("stale");
    }
  }
}

function item(token) {
  const chance = Math.exp(token.logprob);
  const name = token.ends ? "(end)" : visible(token.text) || token.piece;
  const choose = () => {
    write(token.text);
    live.now();
  };
  return html("li", {}, html("button", { type: "button", class: "hypothesis", disabled: token.text === "", onclick: choose },
    html("span", { class: "text next" }, name), html("span", { class: "score" }, bar(chance), percent(chance))));
}

/** Lets the model write on, and then shows what may follow. */
async function writeOn(signal) {
  const { temperature, topP, tokens } = options;
  const request = { model: state.model.id, prompt: byId("draft").value, temperature, top_p: topP, max_tokens: tokens };
  const button = byId("write-on");
  byId("write").classList.add("writes");
  button.textContent = "Stop";
  byId("draft").setAttribute("aria-busy", "true");
  try {
    await api.complete(request, write, signal);
  } finally {
    byId("write").classList.remove("writes");
    button.textContent = "Write on";
    byId("draft").removeAttribute("aria-busy");
  }
  await showNext(signal);
}
