// Pictures as files.

import { palette } from "./colour.js";
import { html, svg } from "./dom.js";
import { FONT, textWidth } from "./tokens.js";

/** Buttons that save what `picture` returns, an `<svg>`, under a name that `name` returns. */
export function saveButtons(picture, name) {
  const button = (ending, make) =>
    html("button", {
      type: "button",
      class: "quiet",
      "aria-label": `Save this picture as ${ending.toUpperCase()}`,
      onclick: async () => download(await make(whole(picture())), `${name()}.${ending}`),
    }, ending.toUpperCase());
  return html("div", { class: "save" }, html("span", { class: "hint" }, "Save"), button("svg", asSvg), button("png", asPng));
}

/** The height of a title. */
const TITLE = 30;

/** A picture that needs nothing else: its title above it, if it has one, and the colour of paper behind it. */
function whole(picture) {
  const [width, height] = picture.getAttribute("viewBox").split(" ").slice(2).map(Number);
  const copy = picture.cloneNode(true);
  copy.querySelectorAll("[data-transient]").forEach((element) => element.remove());
  const title = copy.querySelector("title")?.textContent;
  const total = title ? [Math.max(width, Math.ceil(textWidth(title, 15) * 1.1) + 16), height + TITLE] : [width, height];
  const style = { x: 8, y: 20, "font-size": 15, "font-weight": 600, fill: palette().ink };
  return svg("svg", {
    xmlns: "http://www.w3.org/2000/svg", width: total[0], height: total[1], viewBox: `0 0 ${total.join(" ")}`,
    "font-family": FONT, "font-size": copy.getAttribute("font-size"),
  },
    svg("rect", { width: total[0], height: total[1], fill: palette().paper }),
    title ? svg("text", style, title) : null,
    svg("g", { transform: `translate(0 ${title ? TITLE : 0})` }, ...copy.childNodes));
}

const asSvg = (picture) => new Blob([new XMLSerializer().serializeToString(picture)], { type: "image/svg+xml" });

/** A picture as pixels, fine enough for print. */
async function asPng(picture) {
  const [width, height] = ["width", "height"].map((name) => Number(picture.getAttribute(name)));
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

function download(blob, name) {
  const url = URL.createObjectURL(blob);
  const link = html("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
