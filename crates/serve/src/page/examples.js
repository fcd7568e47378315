// Something to click for who does not know what to type.

import { byId, html } from "./dom.js";
import { state } from "./state.js";

/** For models that bring no examples of their own, by the language of the source. */
const SENTENCES = {
  en: [
    "A dog runs through the snow.",
    "The animal didn't cross the street because it was too tired.",
    "Two children are playing chess in the park.",
  ],
  de: [
    "Ein Hund läuft durch den Schnee.",
    "Das Tier überquerte die Straße nicht, weil es zu müde war.",
    "Zwei Kinder spielen im Park Schach.",
  ],
  fr: [
    "Un chien court dans la neige.",
    "L'animal n'a pas traversé la rue parce qu'il était trop fatigué.",
    "Deux enfants jouent aux échecs dans le parc.",
  ],
};

/** Offers examples for the model that is chosen; `onchoose(text, target)` hears which is wanted. */
export function offer(onchoose) {
  const { examples, sources } = state.model.details;
  const own = examples.map(({ text, target }) => [text, target]);
  const known = (SENTENCES[sources[0]?.code] ?? SENTENCES.en).map((text) => [text, null]);
  const button = ([text, target]) => {
    const into = target ? html("span", { class: "into" }, ` → ${target}`) : null;
    return html("button", { type: "button", class: "chip", onclick: () => onchoose(text, target) }, text, into);
  };
  byId("examples").replaceChildren(html("span", { class: "hint" }, "For example"), ...(own.length ? own : known).map(button));
}
