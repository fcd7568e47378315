// A short text for a long one.

import * as api from "./api.js";
import { html } from "./dom.js";

export const title = "Summary";
export const fields = [{ id: "text", name: "Text", rows: 9 }];
export const hint = () => "The summary follows while you type.";
/** What the model reads is not the text alone, so that its attention would be another's. */
export const text = () => null;

export async function ask({ text }, { id }, signal) {
  const [{ summary_text, parts }] = await api.summarize({ model: id, inputs: text }, signal);
  const hint = parts > 1 ? `The text is longer than the model can read: it was summarized in ${parts} parts.` : null;
  return [html("p", { class: "tagged" }, summary_text), ...(hint ? [html("p", { class: "hint" }, hint)] : [])];
}
