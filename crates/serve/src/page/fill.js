// Words for the masks of a text.

import * as api from "./api.js";
import { html } from "./dom.js";
import { scores } from "./scores.js";
import { state } from "./state.js";

/** What a reader may type for a mask, whatever the model calls it. */
const BLANK = /_{3,}/g;

const COUNT = 8;

export const title = "Words for the masks";
export const fields = [{ id: "text", name: "Text with a mask", rows: 6 }];
export const hint = ({ mask }) => `Write ${mask ?? "[MASK]"} or ___ where a word is missing. Several masks are filled each for itself.`;
export const example = { text: "The dog is playing in the ___." };
export const text = ({ text }) => text.replaceAll(BLANK, state.model.details.mask ?? "[MASK]");

export async function ask(values, { id }, signal) {
  const inputs = text(values);
  if (!inputs.includes(state.model.details.mask ?? "[MASK]")) return [html("p", { class: "hint" }, "There is no mask in the text yet.")];
  const found = await api.fillMask({ model: id, inputs, parameters: { top_k: COUNT } }, signal);
  const masks = Array.isArray(found[0]) ? found : [found];
  const list = (words) => scores(words.map(({ token_str, score }) => [token_str, score]));
  return masks.flatMap((words, i) => (masks.length > 1 ? [html("h2", { class: "small" }, `Mask ${i + 1}`), list(words)] : [list(words)]));
}
