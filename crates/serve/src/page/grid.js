// Every layer and head as a grid of small heat maps.

import { arrows, html } from "./dom.js";
import { placeName } from "./kinds.js";
import { smallMap } from "./thumbnail.js";

/**
 * Fills `place` with a button for each of `maps`, `{ layer, head, rows, columns, weights, causal }`, in rows of one layer. Those that
 * have not come yet have no weights. `onchoose(map)` hears which is chosen.
 */
export function grid(place, maps, look, onchoose) {
  const heads = new Set(maps.map((map) => map.head)).size;
  const buttons = maps.map((map) => {
    const isChosen = map.layer === look.layer && map.head === look.head;
    return html("button", {
      type: "button",
      class: map.weights ? "map" : "map to-come",
      "aria-label": placeName(map),
      "aria-pressed": String(isChosen),
      title: placeName(map),
      tabindex: isChosen ? 0 : -1,
      onclick: () => onchoose(map),
    }, smallMap(map));
  });
  const columnName = (head) => html("span", { class: "axis", "aria-hidden": "true" }, head === null ? "mean" : String(head + 1));
  const cells = [html("span")];
  cells.push(...maps.slice(0, heads).map((map) => columnName(map.head)));
  maps.forEach((map, i) => {
    if (i % heads === 0) cells.push(html("span", { class: "axis", "aria-hidden": "true" }, String(map.layer + 1)));
    cells.push(buttons[i]);
  });
  place.style.setProperty("--heads", heads);
  place.replaceChildren(...cells);
  place.onkeydown = (event) => arrows(event, buttons, heads);
  if (!buttons.some((button) => button.tabIndex === 0)) buttons[0].tabIndex = 0;
}
