// Pictures as files.

import { palette } from "./colour.js";
import { html } from "./dom.js";

/** Buttons that save what `picture` returns, an `<svg>`, under a name that `name` returns. */
export function saveButtons(picture, name) {
  const button = (ending, make) =>
    html("button", {
      type: "button",
      class: "quiet",
      "aria-label": `Save this picture as ${ending.toUpperCase()}`,
      onclick: async () => download(await make(picture()), `${name()}.${ending}`),
    }, ending.toUpperCase());
  return html("div", { class: "save" }, html("span", { class: "hint" }, "Save"), button("svg", asSvg), button("png", asPng));
}

/** A picture as a file that needs nothing else. */
function asSvg(picture) {
  const copy = picture.cloneNode(true);
  copy.querySelectorAll("[data-transient]").forEach((element) => element.remove());
  const [width, height] = size(picture);
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  ["class", "style", "tabindex"].forEach((name) => copy.removeAttribute(name));
  const paper = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  Object.entries({ width, height, fill: palette().paper }).forEach(([name, value]) => paper.setAttribute(name, value));
  copy.prepend(paper);
  return new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" });
}

/** A picture as pixels, fine enough for print. */
async function asPng(picture) {
  const [width, height] = size(picture);
  const scale = Math.max(1, Math.min(3, 6000 / Math.max(width, height)));
  const url = URL.createObjectURL(asSvg(picture));
  const image = new Image();
  image.src = url;
  await image.decode();
  const canvas = html("canvas", { width: Math.round(width * scale), height: Math.round(height * scale) });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(url);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

const size = (picture) => picture.getAttribute("viewBox").split(" ").slice(2).map(Number);

function download(blob, name) {
  const url = URL.createObjectURL(blob);
  const link = html("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
