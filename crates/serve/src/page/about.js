// What is said of the model that is chosen.

import { byId, html } from "./dom.js";
import { grouped } from "./numbers.js";
import { on, state } from "./state.js";

/** What a model does, in a few words. */
const DOES = {
  generate: "continues texts",
  embed: "turns texts into vectors",
  classify: "tells the class of a text",
  answer: "answers questions with words of a text",
  tag: "finds entities in texts",
  rerank: "tells how well texts fit a query",
  "fill-mask": "finds words for masks",
  "image-classification": "tells the class of a picture",
  "image-feature-extraction": "turns pictures into vectors",
  "object-detection": "finds things in pictures",
};

/** Begins to say it. */
export function start() {
  on("model", () => byId("about").replaceChildren(html("strong", {}, state.model.id), ` ${sentence(state.model.details)}`));
}

function sentence(details) {
  const { task, note } = details;
  const does = task === "translate" ? translates(details) : DOES[task] ?? "answers requests";
  return [`${does}.`, note, `${sizes(details)}.`].filter((part) => part).join(" ");
}

function translates({ sources, targets }) {
  const from = sources.length ? ` from ${either(sources)}` : "";
  const into = targets.length ? ` into ${either(targets)}` : "";
  return from || into ? `translates${from}${into}` : "writes a text for a text";
}

/** `German, French or Spanish`; of many languages, how many there are. */
function either(languages) {
  const names = languages.map(({ name }) => name);
  if (names.length > 5) return `${names.length} languages`;
  return names.length < 2 ? names.join() : `${names.slice(0, -1).join(", ")} or ${names.at(-1)}`;
}

function sizes({ encoder_layers, decoder_layers, h, d_model, parameters }) {
  const stacks = [["encoder", encoder_layers], ["decoder", decoder_layers]].filter(([, layers]) => layers);
  const layers = stacks.map(([name, layers]) => `${layers} ${name} layer${layers > 1 ? "s" : ""}`).join(" and ");
  return `${layers} with ${h} heads, d_model ${d_model}, ${rounded(parameters)} parameters`;
}

/** A number as people say it: `7.8 million`. */
function rounded(x) {
  const units = [[1e9, "billion"], [1e6, "million"]];
  const [size, unit] = units.find(([size]) => x >= size) ?? [1, ""];
  const digits = x / size < 10 ? 1 : 0;
  return unit ? `${(x / size).toFixed(digits)} ${unit}` : grouped(x);
}
