// The learning rate of the paper as a curve.

import { learningRate } from "./arithmetic.js";
import { palette } from "./colour.js";
import { byId, html, onresize, slider, svg } from "./dom.js";
import { grouped, scientific, ticks } from "./numbers.js";
import { saveButtons } from "./save.js";
import { on } from "./state.js";
import { FONT } from "./tokens.js";

const shown = { d: 512, warmup: 4000 };
const PAPER = { d: 512, warmup: 4000 };
const WIDTHS = [64, 128, 256, 512, 1024, 2048];
const STEPS = 40_000;
/** The step that is pointed at. */
let at = 10_000;

/** Begins to show the schedule. */
export function start() {
  const place = byId("schedule-body");
  place.append(
    html("div", { class: "options" },
      slider({
        id: "schedule-d", name: "d_model", min: 0, max: WIDTHS.length - 1, value: WIDTHS.indexOf(shown.d),
        show: (i) => String(WIDTHS[i]), onchange: (i) => set("d", WIDTHS[i]),
      }),
      slider({
        id: "schedule-warmup", name: "warm-up", min: 200, max: 16_000, step: 200, value: shown.warmup,
        show: (x) => `${grouped(x)} steps`, onchange: (x) => set("warmup", x),
      })),
    html("div", {},
      html("div", { id: "schedule-picture", class: "scroll" }),
      html("p", { id: "schedule-read-out", class: "read-out", role: "status" })),
    saveButtons(() => place.querySelector("svg"), () => `learning-rate-${shown.d}-${shown.warmup}`));
  on("theme", draw);
  onresize(byId("schedule-picture"), draw);
  draw();
}

function set(name, value) {
  shown[name] = value;
  draw();
}

function draw() {
  const { d, warmup } = shown;
  const colours = palette();
  const room = byId("schedule-picture").clientWidth;
  const narrow = room < 600;
  const [left, top, w, h] = [66, 18, Math.min(Math.max(room - 86, 220), 830), narrow ? 230 : 300];
  const total = [left + w + 20, top + h + 44];
  const peak = learningRate(warmup, d, warmup);
  const most = 1.12 * Math.max(peak, learningRate(PAPER.warmup, PAPER.d, PAPER.warmup));
  const x = (step) => left + (step / STEPS) * w;
  const y = (rate) => top + h - (rate / most) * h;
  const curve = (d, warmup) => {
    // The corner must be a point of the curve.
    const steps = [...Array.from({ length: 401 }, (_, i) => (i * STEPS) / 400), warmup].sort((a, b) => a - b);
    return steps.map((step) => `${x(step).toFixed(1)},${y(learningRate(step, d, warmup)).toFixed(1)}`).join(" ");
  };
  const caption = { "font-size": 12, fill: colours.soft };
  const stepTicks = [0, 10_000, 20_000, 30_000, 40_000];
  const rateTicks = ticks(most, 4);
  const isPapers = d === PAPER.d && warmup === PAPER.warmup;
  const marks = svg("g", { "data-transient": "" });
  const beside = x(warmup) > left + w - 200 ? -10 : 10;
  const picture = svg("svg", {
    viewBox: `0 0 ${total.join(" ")}`, style: `max-width:${total[0]}px`, class: "picture", "font-family": FONT,
    role: "application", "aria-roledescription": "curve", tabindex: 0,
    "aria-label": `The learning rate over ${grouped(STEPS)} steps; its peak is ${scientific(peak)} `
      + `at step ${grouped(warmup)}. Left and right move.`,
  },
    rateTicks.map((rate) => svg("path", { d: `M${left} ${y(rate)}h${w}`, stroke: colours.line })),
    svg("g", { ...caption, "text-anchor": "end" }, rateTicks.map((rate) =>
      svg("text", { x: left - 8, y: y(rate) + 4 }, rate === 0 ? "0" : rate.toExponential(0).replace("-", "−")))),
    svg("g", { ...caption, "text-anchor": "middle" }, stepTicks.map((step) => svg("text", { x: x(step), y: top + h + 18 }, grouped(step)))),
    svg("text", { ...caption, "font-style": "italic", x: left + w / 2, y: top + h + 38, "text-anchor": "middle" }, "step"),
    isPapers ? null : svg("polyline", {
      points: curve(PAPER.d, PAPER.warmup), fill: "none", stroke: colours.soft, "stroke-width": 1.5,
      "stroke-dasharray": "5 5", opacity: 0.7,
    }),
    svg("path", { d: `M${x(warmup)} ${y(peak)}V${top + h}`, stroke: colours.accent, "stroke-dasharray": "2 4" }),
    svg("polyline", { points: curve(d, warmup), fill: "none", stroke: colours.accent, "stroke-width": 2.5, "stroke-linejoin": "round" }),
    svg("circle", { cx: x(warmup), cy: y(peak), r: 4, fill: colours.accent }),
    svg("text", { x: x(warmup) + beside, y: y(peak) - 6, "font-size": 13, fill: colours.ink, "text-anchor": beside > 0 ? "start" : "end" },
      `${scientific(peak)} at step ${grouped(warmup)}`),
    isPapers ? null : svg("text", {
      ...caption, x: left + w, y: y(learningRate(STEPS, PAPER.d, PAPER.warmup)) - 8, "text-anchor": "end",
    }, "dashed: the paper’s base model"),
    marks);
  const look = (step) => {
    at = Math.min(Math.max(step, 0), STEPS);
    const rate = learningRate(at, d, warmup);
    marks.replaceChildren(
      svg("path", { d: `M${x(at)} ${top}v${h}`, stroke: colours.soft, "stroke-width": 1 }),
      svg("circle", { cx: x(at), cy: y(rate), r: 4.5, fill: colours.paper, stroke: colours.accent, "stroke-width": 2 }));
    byId("schedule-read-out").textContent = `step ${grouped(at)}: ${scientific(rate)}`;
  };
  picture.addEventListener("pointermove", (event) => {
    const box = picture.getBoundingClientRect();
    const place = ((event.clientX - box.left) * total[0]) / box.width - left;
    look(Math.round((place / w) * STEPS));
  });
  picture.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -200, ArrowRight: 200 }[event.key];
    if (!step) return;
    event.preventDefault();
    look(at + step);
  });
  byId("schedule-picture").replaceChildren(picture);
  look(at);
}
