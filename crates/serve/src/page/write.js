// The part of the page that writes with a language model: the reader chooses the next token, or lets the model draw.

import * as api from "./api.js";
import { byId, html, slider } from "./dom.js";
import { percent } from "./numbers.js";
import { lookAt, on, state } from "./state.js";

/** How long the reader must pause before the next tokens are asked for. */
const PAUSE = 250;
/** How many of them are shown. */
const COUNT = 12;

let trouble;
/** Ends what is under way when something else is asked for. */
let underWay = null;
let pause = null;
const options = { temperature: 0.8, topP: 0.95, tokens: 40 };

/** Begins to write. `ontrouble(error)` hears what went wrong, or null when all is well. */
export function start(ontrouble) {
  trouble = ontrouble;
  const set = (name) => (value) => (options[name] = value);
  const digits = (count) => (x) => x.toFixed(count);
  byId("writing-options").prepend(
    slider({ id: "heat", name: "Temperature", min: 0, max: 2, step: 0.1, value: options.temperature, show: digits(1), onchange: set("temperature") }),
    slider({ id: "mass", name: "Top p", min: 0.05, max: 1, step: 0.05, value: options.topP, show: digits(2), onchange: set("topP") }),
    slider({ id: "more", name: "Tokens", min: 1, max: 200, value: options.tokens, onchange: set("tokens") }));
  byId("writing").addEventListener("submit", (event) => {
    event.preventDefault();
    if (byId("write").classList.contains("writes")) stop();
    else writeOn();
  });
  byId("draft").addEventListener("input", () => {
    stop();
    clearTimeout(pause);
    pause = setTimeout(showNext, PAUSE);
  });
  byId("write-look").addEventListener("click", look);
  on("model", () => state.model.details.task === "generate" && showNext());
}

function stop() {
  underWay?.abort();
  underWay = null;
}

/** Runs `work` with a signal that ends it when something else is asked for. */
async function instead(work) {
  stop();
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

const write = (text) => {
  byId("draft").value += text;
  byId("draft").scrollTop = byId("draft").scrollHeight;
};

/** Shows what may follow the text, the most probable first. */
const showNext = () => instead(async (signal) => {
  const list = byId("next-list");
  list.setAttribute("aria-busy", "true");
  try {
    const answer = await api.next({ model: state.model.id, text: byId("draft").value, count: COUNT }, signal);
    const { max_tokens } = state.model.details;
    byId("draft-hint").textContent = `${answer.tokens} of ${max_tokens} tokens.`;
    list.replaceChildren(...answer.next.map(item));
  } catch (error) {
    if (error.name !== "AbortError") list.replaceChildren();
    throw error;
  } finally {
    if (!signal.aborted) list.removeAttribute("aria-busy");
  }
});

function item(token) {
  const chance = Math.exp(token.logprob);
  const name = token.ends ? "(end)" : visible(token.text) || token.piece;
  const choose = () => {
    write(token.text);
    showNext();
  };
  return html("li", {}, html("button", { type: "button", class: "hypothesis", disabled: token.text === "", onclick: choose },
    html("span", { class: "text next" }, name),
    html("span", { class: "score" },
      html("span", { class: "bar", "aria-hidden": "true" }, html("span", { style: `width:${100 * chance}%` })),
      percent(chance))));
}

/** The text of a token with spaces and line breaks that can be seen. */
const visible = (text) => text.replaceAll(" ", "␣").replaceAll("\n", "↵").replaceAll("\t", "⇥");

/** Lets the model write on. */
const writeOn = () => instead(async (signal) => {
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
}).then(showNext);

/** Shows the attention of the text. */
function look() {
  const text = byId("draft").value;
  if (!text) return byId("draft").focus();
  lookAt({ model: state.model.id, text });
  byId("attention").scrollIntoView();
}
