// Texts to begin with: those that a model brings along, or else sentences of its language.

import * as api from "./api.js";
import { byId, html } from "./dom.js";
import { state } from "./state.js";

/** Plain sentences, such as translators of every kind are trained on. A model whose language is not known gets none. */
const SENTENCES = {
  en: ["A dog runs through the snow.", "Two children are playing in the park.", "A woman in a red coat is waiting for the train."],
  de: ["Ein Hund läuft durch den Schnee.", "Zwei Kinder spielen im Park.", "Eine Frau in einem roten Mantel wartet auf den Zug."],
  fr: ["Un chien court dans la neige.", "Deux enfants jouent dans le parc.", "Une femme en manteau rouge attend le train."],
};

/** Offers examples for the model that is chosen; `onchoose(text, target)` hears which is wanted. Returns the first, if there is one. */
export function offer(onchoose) {
  const { examples, sources, targets } = state.model.details;
  // Of many languages, one that is not that of the translation.
  const isOther = (code) => code !== byId("target").value && sources.some((source) => source.code === code);
  const code = sources.length > 1 ? Object.keys(SENTENCES).find(isOther) : sources[0]?.code;
  const known = SENTENCES[code] ?? [];
  const offered = examples.length ? examples : known.map((text) => ({ text }));
  const button = ({ text, target }) => {
    const language = targets.find(({ code }) => code === target);
    const into = language ? html("span", { class: "into" }, ` → ${language.name}`) : null;
    return html("button", { type: "button", class: "chip", onclick: () => onchoose(text, target) }, text, into);
  };
  const place = byId("examples");
  place.hidden = offered.length === 0;
  place.replaceChildren(html("span", { class: "hint" }, "Try"), ...offered.map(button));
  return offered[0];
}

/**
 * Whether a text is made of words that a model has in its vocabulary, which comes from what it was trained on: others are no examples
 * for it.
 */
export async function fits(model, text) {
  let source;
  try {
    ({ source } = await api.attention({ model: model.id, text, kinds: [] }));
  } catch (error) {
    // A small model may not even be able to read it.
    if (error.status === 400 || error.status === 413) return false;
    throw error;
  }
  const tokens = source.filter(({ word }) => word !== null).length;
  const isKnown = source.every(({ piece }) => !["[UNK]", "<unk>", "[unk]"].includes(piece));
  // A word that is not known may also be left out, or be cut into its letters.
  return isKnown && tokens >= text.match(/\p{L}+/gu).length && tokens <= 1.5 * text.match(/\p{L}+|[^\s\p{L}]/gu).length;
}
