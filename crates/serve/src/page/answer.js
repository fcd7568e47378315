// Words of a text that answer a question.

import * as api from "./api.js";
import { html } from "./dom.js";
import { scores } from "./scores.js";

const COUNT = 5;

export const title = "Answers";
export const fields = [{ id: "question", name: "Question", rows: 2 }, { id: "text", name: "Text", rows: 6 }];
export const hint = () => "The model finds the words of the text that answer the question best. Its best answer is marked in the text.";
export const example = { question: "Where is the dog running?", text: "A dog runs through the snow." };
export const text = ({ text }) => text;

export async function ask({ question, text }, { id }, signal) {
  const found = await api.answer({ model: id, inputs: { question, context: text }, parameters: { top_k: COUNT } }, signal);
  const answers = Array.isArray(found) ? found : [found];
  if (answers.length === 0) return [html("p", { class: "hint" }, "The text has no answer.")];
  const characters = [...text];
  const [{ start, end }] = answers;
  const marked = html("mark", { class: "entity" }, characters.slice(start, end).join(""));
  return [
    html("p", { class: "tagged" }, characters.slice(0, start).join(""), marked, characters.slice(end).join("")),
    scores(answers.map(({ answer, score }) => [answer, score])),
  ];
}
