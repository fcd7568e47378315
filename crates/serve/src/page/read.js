// The part of the page that reads a text with an encoder, to show its attention.

import { byId } from "./dom.js";
import { lookAt, on, state } from "./state.js";

/** What encoders do, in a few words. */
const DOES = { embed: "makes embeddings", classify: "classifies texts", tag: "tags words", rerank: "ranks texts for a query", "fill-mask": "fills masks" };

/** Begins to read. */
export function start() {
  byId("reading").addEventListener("submit", (event) => {
    event.preventDefault();
    look();
  });
  byId("passage").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      look();
    }
  });
  on("model", () => {
    const { id, details } = state.model;
    if (!(details.task in DOES)) return;
    const routes = details.routes.map((route) => `POST ${route}`).join(", ");
    byId("does").textContent = `${id} ${DOES[details.task]}: ${routes}. Here you see what it attends to in a text.`;
  });
}

function look() {
  const text = byId("passage").value.trim();
  if (!text) return byId("passage").focus();
  lookAt({ model: state.model.id, text });
}
