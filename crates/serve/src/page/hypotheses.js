// What came of a search: the translation piece by piece, and the list of the best.

import { bar } from "./bar.js";
import { arrows, byId, html } from "./dom.js";
import { fixed, percent } from "./numbers.js";
import { continues, label } from "./tokens.js";

/** Shows no translation. */
export function clearTranslation() {
  byId("translation").replaceChildren();
  byId("translation").classList.remove("stale");
  byId("translation").removeAttribute("aria-busy");
  byId("translation-text").textContent = "";
  byId("answer").hidden = true;
}

/** Writes what a search has found so far of each line; what is not settled may still change. */
export function writeDraft(lines, drafts) {
  let index = 0;
  const draft = (line) => {
    if (!line.trim()) return paragraph(html("br"));
    const { text = "…", settled = 0 } = drafts[index++] ?? {};
    const characters = [...text];
    return paragraph(characters.slice(0, settled).join(""), html("span", { class: "draft" }, characters.slice(settled).join("")));
  };
  byId("translation").classList.remove("stale");
  byId("translation").replaceChildren(...lines.map(draft));
}

const paragraph = (...children) => html("p", {}, ...children);

/**
 * Writes a translation line by line, as buttons for its tokens where its segments are known. `onchoose({ line, segment, token })`
 * hears which is chosen.
 */
export function writeTranslation(lines, language, onchoose) {
  const pieces = [];
  const write = (line, number) => {
    if (!line) return paragraph(html("br"));
    if (!line.segments) return paragraph(line.text);
    return paragraph(...line.segments.flatMap(({ tokens }, segment) => {
      const goes = continues(tokens);
      return tokens.flatMap((token, i) => {
        const place = { line: number, segment, token: i };
        const piece = pieceOf(token, goes[i], place, onchoose);
        pieces.push(piece);
        return (i > 0 || segment > 0) && !goes[i] ? [" ", piece] : [piece];
      });
    }));
  };
  const place = byId("translation");
  place.classList.remove("stale");
  place.lang = language ?? "";
  place.replaceChildren(...lines.map(write));
  place.onkeydown = (event) => arrows(event, pieces, pieces.length);
  if (pieces.length) pieces[0].tabIndex = 0;
  byId("translation-text").textContent = lines.map((line) => line?.text ?? "").join("\n");
  byId("translation-text").lang = language ?? "";
  byId("answer").hidden = false;
  writeHint(lines);
}

function pieceOf(token, goesOn, { line, segment, token: i }, onchoose) {
  const chance = percent(Math.exp(token.logprob));
  return html("button", {
    type: "button",
    class: `piece${token.word === null ? " special" : ""}${goesOn ? " goes-on" : ""}`,
    style: `--sure:${Math.exp(token.logprob).toFixed(3)}`,
    "data-place": `${line}.${segment}.${i}`,
    "aria-label": `${label(token)}, ${chance}`,
    title: `${chance} sure`,
    tabindex: -1,
    onclick: () => onchoose({ line, segment, token: i }),
  }, label(token));
}

/** Says what the marks in the translation mean. */
function writeHint(lines) {
  const tokens = lines.flatMap((line) => line?.segments ?? []).flatMap(({ tokens }) => tokens);
  const end = tokens.findLast(({ word }) => word === null);
  byId("translation-hint").replaceChildren(
    "The stronger the ", html("span", { class: "unsure" }, "line under a token"), ", the less sure the model was of it. ",
    ...(end ? [html("span", { class: "special" }, label(end)), " ends what the model writes. "] : []),
    "Choose a token to see what else could stand there.");
}

/** Marks the token whose alternatives are shown, or none. */
export function markPiece(place) {
  const chosen = place && `${place.line}.${place.segment}.${place.token}`;
  byId("translation").querySelectorAll(".piece").forEach((piece) =>
    piece.setAttribute("aria-expanded", String(piece.dataset.place === chosen)));
}

/** Writes the list of the best of a line, which has a `number` if there are several; `onchoose(rank)` hears which is to be shown. */
export function writeBest({ hypotheses, rank: chosen }, { language, number, sampled }, onchoose) {
  byId("best-title").textContent = `${hypotheses.length} ${sampled ? "samples" : "best translations"}${number ? ` of line ${number}` : ""}`;
  byId("best-hint").textContent = "The score is the log probability of all tokens, divided by a penalty for the length. "
    + "0 would be certain; the nearer to 0, the better."
    + (new Set(hypotheses.map(({ text }) => text)).size < hypotheses.length ? " A text that is there twice was written with other tokens." : "");
  const item = (hypothesis, rank) => {
    const share = bar(Math.exp(hypothesis.score));
    return html("li", {}, html("button", {
      type: "button", class: "hypothesis", "aria-pressed": String(rank === chosen), onclick: () => onchoose(rank),
    },
      html("span", { class: "text", lang: language }, hypothesis.text || "(nothing)"),
      html("span", { class: "score" }, share, html("span", { class: "out-of-sight" }, "score "), fixed(hypothesis.score, 4))));
  };
  byId("n-best-list").replaceChildren(...hypotheses.map(item));
}
