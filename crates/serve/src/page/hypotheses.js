// What came of a search: the translation piece by piece, and the list of the best.

import { arrows, byId, html } from "./dom.js";
import { fixed, percent } from "./numbers.js";
import { continues, label } from "./tokens.js";

/** Writes what a search has found so far; what is not settled may still change. */
export function writeDraft({ text, settled }) {
  const characters = [...text];
  byId("translation").setAttribute("aria-busy", "true");
  byId("translation").replaceChildren(
    characters.slice(0, settled).join(""),
    html("span", { class: "draft" }, characters.slice(settled).join("")));
}

/** Writes a translation as buttons, one for each piece; `onchoose(place)` hears which is chosen. */
export function writeTranslation(hypothesis, language, onchoose) {
  const goes = continues(hypothesis.tokens);
  const pieces = hypothesis.tokens.map((token, i) => {
    const chance = percent(Math.exp(token.logprob));
    return html("button", {
      type: "button",
      class: `piece${token.word === null ? " special" : ""}${goes[i] ? " goes-on" : ""}`,
      style: `--sure:${Math.exp(token.logprob).toFixed(3)}`,
      "aria-label": `${label(token)}, ${chance}`,
      title: chance,
      tabindex: i === 0 ? 0 : -1,
      onclick: () => onchoose(i),
    }, label(token));
  });
  const line = byId("translation");
  line.removeAttribute("aria-busy");
  line.lang = language ?? "";
  line.classList.toggle("long", pieces.length > 40);
  line.replaceChildren(...pieces.flatMap((piece, i) => (i > 0 && !goes[i] ? [" ", piece] : [piece])));
  line.onkeydown = (event) => arrows(event, pieces, pieces.length);
}

/** Marks the piece whose alternatives are shown, or none. */
export function markPiece(place) {
  byId("translation").querySelectorAll(".piece").forEach((piece, i) =>
    piece.setAttribute("aria-expanded", String(i === place)));
}

/** Writes the list of the best; `onchoose(rank)` hears which is to be looked at. */
export function writeBest(hypotheses, chosen, language, onchoose) {
  const item = (hypothesis, rank) => {
    const part = html("span", { style: `width:${100 * Math.exp(hypothesis.score)}%` });
    const bar = html("span", { class: "bar", "aria-hidden": "true" }, part);
    return html("li", {}, html("button", {
      type: "button", class: "hypothesis", "aria-pressed": String(rank === chosen), onclick: () => onchoose(rank),
    },
      html("span", { class: "text", lang: language }, hypothesis.text || "(nothing)"),
      html("span", { class: "score" }, bar, html("span", { class: "out-of-sight" }, "score "), fixed(hypothesis.score, 4))));
  };
  byId("n-best-list").replaceChildren(...hypotheses.map(item));
}
