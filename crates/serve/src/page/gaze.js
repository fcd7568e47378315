// Where each head looks in a picture: a patch is chosen, or the class token, and a layer.

import * as api from "./api.js";
import { palette } from "./colour.js";
import { busyWith, byId, html, slider, svg } from "./dom.js";
import { percent } from "./numbers.js";
import { state } from "./state.js";

/** The brightness of what a head does not see. */
const DARK = 0.15;

/** The pixels of the shorter side of a picture that is drawn, at least. */
const SHARP = 224;

let place;
let overlay;
let trouble;
/** The file that is looked into; the picture as the model sees it; its rows and columns of patches; what looks; the layer. */
let file = null;
let image = null;
let grid = null;
let patch = null;
let layer = 0;
/** Ends what is under way when something else is looked at. */
let underWay = new AbortController();

/** Begins. `element` is where the heads are drawn, `over` lies over the picture, `told(error)` hears what went wrong. */
export function start(element, over, told) {
  [place, overlay, trouble] = [element, over, told];
  overlay.addEventListener("keydown", move);
}

/** Shows no picture. */
export function hide() {
  underWay.abort();
  [file, image] = [null, null];
  place.hidden = true;
}

/** Shows where the heads look in a picture, from the class token at first. Returns the picture as the model sees it: a data URL. */
export async function show(picture, signal) {
  [file, patch, layer] = [picture, null, state.model.details.encoder_layers - 1];
  const answer = await api.attention(ask({ return_image: true }), signal);
  const seen = new Image();
  seen.src = answer.image;
  await seen.decode();
  if (signal.aborted) return null;
  [image, grid] = [seen, answer.grid];
  place.hidden = false;
  place.replaceChildren(...controls());
  drawPatches();
  drawHeads(answer.attention);
  return answer.image;
}

const ask = (more = {}) => api.form({
  model: state.model.id, image: file, layers: JSON.stringify([layer]), ...(patch && { patch: JSON.stringify(patch) }), ...more,
});

function controls() {
  const layers = state.model.details.encoder_layers;
  const layerOf = slider({ id: "gaze-layer", name: "Layer", min: 1, max: layers, value: layer + 1, onchange: (chosen) => {
    layer = chosen - 1;
    look();
  } });
  return [
    html("h2", { class: "small", id: "gaze-title" }, "Where each head looks"),
    html("p", { class: "hint" }, "The model cuts the picture into patches, and each patch is a token. Choose a patch of the picture above, with the "
      + "mouse or the arrow keys, to see what it attends to: the brighter, the greater the weight. The class token stands for the whole picture."),
    html("div", { class: "options" }, layerOf,
      html("button", { type: "button", id: "gaze-class", class: "chip", "aria-pressed": "true", onclick: () => choose(null) }, "Class token")),
    html("p", { class: "chosen", id: "gaze-chosen", role: "status" }),
    html("div", { id: "gaze-heads", class: "gazes", role: "group", "aria-labelledby": "gaze-title" }),
  ];
}

/** Lets a patch look, or the class token. */
function choose(chosen) {
  patch = chosen;
  byId("gaze-class").setAttribute("aria-pressed", String(!patch));
  drawPatches();
  look();
}

/** Asks where the heads look now. */
async function look() {
  underWay.abort();
  const { signal } = (underWay = new AbortController());
  await busyWith(byId("gaze-heads"), async () => {
    try {
      trouble(null);
      const { attention } = await api.attention(ask(), signal);
      if (!signal.aborted) drawHeads(attention);
    } catch (error) {
      trouble(error);
    }
  });
}

/** The grid of patches over the picture, with the patch that looks. */
function drawPatches() {
  const [rows, columns] = grid;
  const isFocused = overlay.contains(document.activeElement);
  const lines = [
    ...Array.from({ length: columns + 1 }, (_, x) => `M${x} 0V${rows}`), ...Array.from({ length: rows + 1 }, (_, y) => `M0 ${y}H${columns}`),
  ];
  const picture = svg("svg", {
    viewBox: `0 0 ${columns} ${rows}`, preserveAspectRatio: "none", tabindex: 0, role: "group", "aria-label": "Patches: the arrow keys choose one",
    class: "patches", onclick: ({ offsetX, offsetY, currentTarget: { clientWidth, clientHeight } }) => choose([
      Math.min(Math.floor((offsetY / clientHeight) * rows), rows - 1), Math.min(Math.floor((offsetX / clientWidth) * columns), columns - 1),
    ]),
  }, svg("path", { d: lines.join(""), class: "patch-lines" }),
  patch && svg("rect", { x: patch[1], y: patch[0], width: 1, height: 1, class: "patch", stroke: palette().accent }));
  overlay.replaceChildren(picture);
  if (isFocused) picture.focus();
}

/** Moves from patch to patch with the arrow keys, and to the class token with Escape. */
function move(event) {
  const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  if (!image || !(event.key in moves || event.key === "Escape")) return;
  event.preventDefault();
  if (event.key === "Escape") return choose(null);
  const middle = grid.map((count) => Math.floor(count / 2));
  const next = patch ? patch.map((at, i) => Math.min(Math.max(at + moves[event.key][i], 0), grid[i] - 1)) : middle;
  choose(next);
}

/** The picture once for each head, bright where the head looks; the mean of all heads first. */
function drawHeads(gazes) {
  const looks = patch ? `The patch in row ${patch[0] + 1}, column ${patch[1] + 1}` : "The class token";
  byId("gaze-chosen").textContent = `${looks}, layer ${layer + 1}.`;
  const mean = gazes.filter(({ head }) => head === null);
  const heads = gazes.filter(({ head }) => head !== null);
  byId("gaze-heads").replaceChildren(...[...mean, ...heads].map(({ head, before, weights }) => {
    const name = head === null ? "mean of all heads" : `head ${head + 1}`;
    const elsewhere = before.reduce((sum, weight) => sum + weight, 0);
    return html("figure", { title: `${percent(elsewhere)} of its weight is on tokens that are no patches` },
      lit(weights, `${name}: brightest where it looks`), html("figcaption", {}, name));
  }));
}

/** The picture, as bright as the weights of its patches say; the greatest leaves it as it is. */
function lit(weights, label) {
  const scale = Math.max(1, Math.ceil(SHARP / Math.min(image.naturalWidth, image.naturalHeight)));
  const [width, height] = [image.naturalWidth * scale, image.naturalHeight * scale];
  const canvas = html("canvas", { width, height, role: "img", "aria-label": label });
  const pen = canvas.getContext("2d");
  pen.imageSmoothingEnabled = false;
  pen.drawImage(image, 0, 0, width, height);
  const most = Math.max(...weights.flat(), Number.MIN_VALUE);
  const [across, down] = [width / grid[1], height / grid[0]];
  weights.forEach((row, y) => row.forEach((weight, x) => {
    pen.fillStyle = `rgb(0 0 0 / ${(1 - DARK) * (1 - weight / most)})`;
    const [left, top] = [Math.round(x * across), Math.round(y * down)];
    pen.fillRect(left, top, Math.round((x + 1) * across) - left, Math.round((y + 1) * down) - top);
  }));
  return canvas;
}
