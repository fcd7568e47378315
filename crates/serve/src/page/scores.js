// A list of names with their probabilities as bars.

import { bar } from "./bar.js";
import { html } from "./dom.js";
import { percent } from "./numbers.js";

/** `entries` are names and probabilities, the most probable first. */
export const scores = (entries) => html("ol", { class: "best" }, entries.map(([name, share]) =>
  html("li", { class: "scored" },
    html("span", { class: "text next" }, name), html("span", { class: "score" }, bar(share), percent(share)))));
