// The class of a text.

import * as api from "./api.js";
import { scores } from "./scores.js";

export const title = "Classes";
export const fields = [{ id: "text", name: "Text", rows: 6 }];
export const hint = ({ labels }) => `The model tells ${labels.length} classes apart. The probabilities follow while you type.`;
export const text = ({ text }) => text;

export async function ask({ text }, { id }, signal) {
  const found = await api.predict({ model: id, inputs: text }, signal);
  return [scores(found.map(({ label, score }) => [label, score]))];
}
