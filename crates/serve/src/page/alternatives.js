// What else could stand in one place of a translation.

import { bar } from "./bar.js";
import { byId, html } from "./dom.js";
import { percent } from "./numbers.js";
import { marksOf, names } from "./tokens.js";

/** Shows ways to go on from a place, each to its end, the most probable next piece first; `onchoose(hypothesis)` hears which
 * is wanted. */
export function show(found, place, language, onchoose, onclose) {
  const hypotheses = found.toSorted((a, b) => b.tokens[place].logprob - a.tokens[place].logprob);
  const before = hypotheses[0]?.tokens.slice(0, place).filter((token) => token.word !== null).length;
  const next = names(hypotheses.map(({ tokens }) => tokens[place]));
  const item = (hypothesis, i) => {
    const token = hypothesis.tokens[place];
    return html("li", {}, html("button", { type: "button", class: "hypothesis", onclick: () => onchoose(hypothesis) },
      html("span", { class: "next", lang: language }, next[i]),
      html("span", { class: "text", lang: language }, hypothesis.text || "(empty)"),
      html("span", { class: "score" },
        bar(Math.exp(token.logprob)), percent(Math.exp(token.logprob)))));
  };
  byId("alternatives").replaceChildren(
    html("div", { class: "row" },
      html("h2", { id: "alternatives-title", class: "small" }, before ? "Alternatives from here on" : "Alternatives from the beginning"),
      html("button", { type: "button", class: "quiet", onclick: onclose }, "Close")),
    html("p", { class: "hint" }, `What could stand in this place, and how the text would then end.${marksOf(next)}`),
    html("ol", { class: "best", "aria-labelledby": "alternatives-title" }, hypotheses.map(item)));
  byId("alternatives").hidden = false;
}

/** Shows that they are being looked for. */
export function wait() {
  byId("alternatives").replaceChildren(html("p", { class: "hint" }, "Searching for alternatives …"));
  byId("alternatives").hidden = false;
}

/** Shows none. */
export const hide = () => (byId("alternatives").hidden = true);
