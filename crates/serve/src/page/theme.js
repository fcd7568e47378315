// Light and dark: as the system has it, unless somebody says otherwise.

import { isDark } from "./colour.js";
import { byId } from "./dom.js";
import { tell } from "./state.js";

/** Begins to listen to the button and the system. */
export function start() {
  const button = byId("theme");
  const name = () => {
    button.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-label", `Switch to the ${isDark() ? "light" : "dark"} theme`);
  };
  button.addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    name();
    tell("theme");
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    name();
    tell("theme");
  });
  name();
}
