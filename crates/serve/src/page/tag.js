// The entities of a text, marked in the text.

import * as api from "./api.js";
import { html } from "./dom.js";
import { percent } from "./numbers.js";

export const title = "Entities";
export const fields = [{ id: "text", name: "Text", rows: 6 }];
export const hint = () => "The words that the model has labels for are marked while you type.";
export const example = { text: "Ada Lovelace was born in London and lived there." };
export const text = ({ text }) => text;

export async function ask({ text }, { id }, signal) {
  const { tagged: [{ entities }] } = await api.tag({ model: id, text }, signal);
  const characters = [...text];
  const parts = [];
  let place = 0;
  for (const { entity_group, score, start, end } of entities) {
    parts.push(characters.slice(place, start).join(""));
    parts.push(html("mark", { class: "entity", title: `${percent(score)} sure` },
      characters.slice(start, end).join(""), html("span", { class: "entity-label" }, ` ${entity_group} ${percent(score)}`)));
    place = end;
  }
  parts.push(characters.slice(place).join(""));
  return [html("p", { class: "tagged" }, ...parts), ...(entities.length ? [] : [html("p", { class: "hint" }, "No entities were found.")])];
}
