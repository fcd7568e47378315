// The tab of models that read pictures: the picture on the left, the answer on the right, and below them where each head looks.

import * as api from "./api.js";
import * as boxes from "./boxes.js";
import { byId, html } from "./dom.js";
import * as gaze from "./gaze.js";
import * as link from "./link.js";
import { Live } from "./live.js";
import { fixed } from "./numbers.js";
import { scores } from "./scores.js";
import { table } from "./similar.js";
import { lookAway, on, state } from "./state.js";

/** The classes that are shown. */
const BEST = 8;

/** The pictures that are compared: the last ones. */
const COMPARED = 8;

/** For each task what its answer is called, and `show(picture, signal)`, which gets it as elements. */
const ANSWERS = {
  "image-classification": { title: "Classes", show: showClasses },
  "object-detection": { title: "What is where", show: showBoxes },
  "image-feature-extraction": { title: "Similarity", show: showVectors },
};

/** The file of the picture that is shown, and its address in this page. */
let picture = null;
/** The vectors of the last pictures, with their names, of the model that is chosen. */
let vectors = [];

/** Begins to see. `trouble(error)` hears what went wrong, or null when all is well. */
export function start(trouble) {
  byId("reading").before(panel());
  const live = new Live(see, trouble);
  gaze.start(byId("see-gaze"), byId("see-overlay"), trouble);
  const take = (files) => {
    const file = [...(files ?? [])].find(({ type }) => type.startsWith("image/"));
    if (!file || state.task?.id !== "see") return;
    if (picture) URL.revokeObjectURL(picture.address);
    picture = { file, address: URL.createObjectURL(file) };
    live.now();
  };
  const place = byId("see-drop");
  const drag = (event) => {
    event.preventDefault();
    place.classList.toggle("dropping", event.type === "dragover");
    if (event.type === "drop") take(event.dataTransfer.files);
  };
  ["dragover", "dragleave", "drop"].forEach((type) => place.addEventListener(type, drag));
  byId("see-file").addEventListener("change", (event) => take(event.target.files));
  addEventListener("paste", (event) => take(event.clipboardData?.files));
  on("model", () => {
    live.stop();
    document.body.classList.toggle("sees", state.task.id === "see");
    if (state.task.id !== "see") return;
    lookAway();
    link.forget();
    vectors = [];
    byId("see-title").textContent = ANSWERS[state.model.details.task].title;
    live.now();
  });
}

function panel() {
  return html("div", { id: "see", role: "tabpanel", "aria-labelledby": "tab-see", hidden: true },
    html("div", { class: "panes" },
      html("div", { class: "pane", id: "see-drop" },
        html("div", { class: "pane-top" }, html("label", { for: "see-file" }, "Picture")),
        html("div", { class: "result" },
          html("p", { class: "empty", id: "see-empty" }, "Drop a picture here, paste one, or choose a file."),
          html("figure", { class: "seen", id: "see-figure", hidden: true },
            html("img", { id: "see-image", alt: "" }), html("div", { id: "see-overlay" }))),
        html("div", { class: "pane-bottom" },
          html("input", { type: "file", id: "see-file", accept: "image/png,image/jpeg,image/webp", "aria-describedby": "see-hint" }),
          html("p", { class: "hint", id: "see-hint" }, "PNG, JPEG or WebP. The picture goes to this server and to nobody else."))),
      html("div", { class: "pane" },
        html("div", { class: "pane-top" }, html("span", { id: "see-title" })),
        html("div", { id: "see-result", class: "result", role: "group", "aria-labelledby": "see-title", "aria-live": "polite" }),
        html("div", { class: "pane-bottom" }))),
    html("div", { id: "see-gaze", hidden: true }));
}

/** Asks what is to be known of the picture, and shows it. */
async function see(signal) {
  const result = byId("see-result");
  byId("see-overlay").replaceChildren();
  result.replaceChildren();
  gaze.hide();
  if (!picture) return;
  show(picture.address, picture.file.name);
  result.setAttribute("aria-busy", "true");
  try {
    const elements = await ANSWERS[state.model.details.task].show(picture, signal);
    if (signal.aborted) return;
    result.replaceChildren(...elements);
    if (!state.model.details.routes.includes("/v1/attention")) return;
    const seen = await gaze.show(picture.file, signal);
    if (seen) show(seen, `${picture.file.name}, as the model sees it`);
  } finally {
    if (!signal.aborted) result.removeAttribute("aria-busy");
  }
}

function show(address, name) {
  byId("see-empty").hidden = true;
  byId("see-figure").hidden = false;
  byId("see-image").src = address;
  byId("see-image").alt = name;
}

async function showClasses({ file }, signal) {
  const { data: [{ scores: found }] } = await api.classifyPicture(api.form({ model: state.model.id, top_k: BEST, image: file }), signal);
  return [scores(found.map(({ label, score }) => [label, score]))];
}

async function showBoxes({ file, address }, signal) {
  // All that it may have found: the reader decides how certain it must be.
  const things = await api.detect(api.form({ model: state.model.id, threshold: 0, image: file }), signal);
  const image = new Image();
  image.src = address;
  await image.decode();
  return boxes.show(byId("see-overlay"), [image.naturalWidth, image.naturalHeight], things);
}

async function showVectors({ file }, signal) {
  const { data: [{ embedding }] } = await api.embeddings(api.form({ model: state.model.id, image: file }), signal);
  vectors = [...vectors, { name: file.name, numbers: embedding }].slice(-COMPARED);
  const first = html("p", { class: "hint" }, `The picture becomes a vector of ${embedding.length} numbers: `
    + `${embedding.slice(0, 4).map((x) => fixed(x)).join(", ")}, … `
    + (vectors.length < 2 ? "Drop a second picture to compare it with." : "The table has the cosine of the angle between two vectors."));
  return vectors.length < 2 ? [first] : [first, table(vectors.map(({ name }) => name), vectors.map(({ numbers }) => numbers))];
}
