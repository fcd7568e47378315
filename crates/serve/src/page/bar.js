// A share of one as a bar, beside its number.

import { html } from "./dom.js";

export const bar = (share) =>
  html("span", { class: "bar", "aria-hidden": "true" }, html("span", { style: `width:${(100 * Math.min(share, 1)).toFixed(2)}%` }));
