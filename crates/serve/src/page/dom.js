// Elements, made in one line each.

const SVG = "http://www.w3.org/2000/svg";

/** The element with this id. */
export const byId = (id) => document.getElementById(id);

/** An element of HTML. Attributes that begin with `on` are listeners; those that are false or null are left out. */
export const html = (name, attributes = {}, ...children) => fill(document.createElement(name), attributes, children);

/** An element of SVG. */
export const svg = (name, attributes = {}, ...children) =>
  fill(document.createElementNS(SVG, name), attributes, children);

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** What each element that is being filled waits for. */
const awaited = new WeakMap();

/** Does the work that fills an element. It is busy until the work that was begun last is done, so that a reader can wait for it. */
export async function busyWith(element, work) {
  const own = {};
  awaited.set(element, own);
  element.setAttribute("aria-busy", "true");
  try {
    await work();
  } finally {
    if (awaited.get(element) === own) element.removeAttribute("aria-busy");
  }
}

/** The value of the radio button that is chosen in a group. */
export const chosen = (name) => document.querySelector(`input[name="${name}"]:checked`).value;

/** Calls `listener` when the page gives an element another width. */
export function onresize(element, listener) {
  let width = element.clientWidth;
  addEventListener("resize", () => {
    if (element.clientWidth !== width) listener();
    width = element.clientWidth;
  });
}

/** A slider with its name and its value. `show` writes the value, `hint` says what it does. */
export function slider({ id, name, min, max, step = 1, value, show = String, hint, onchange }) {
  const output = html("output", { id: `${id}-value`, for: id }, show(value));
  const input = html("input", { type: "range", id, min, max, step, value, "aria-describedby": hint ? `${id}-hint` : null });
  const tell = () => {
    output.textContent = show(Number(input.value));
    input.setAttribute("aria-valuetext", output.textContent);
  };
  input.addEventListener("input", () => {
    tell();
    onchange(Number(input.value));
  });
  tell();
  return html("div", { class: "slider" },
    html("div", { class: "slider-top" }, html("label", { for: id }, name), output),
    input,
    hint ? html("p", { class: "hint", id: `${id}-hint` }, hint) : null);
}

/** Moves a slider as a hand would. */
export function slideTo(id, value) {
  byId(id).value = value;
  byId(id).dispatchEvent(new Event("input"));
}

/** Moves the focus among buttons that stand in rows of `columns` with the arrow keys; only one of them is on the tab's way. */
export function arrows(event, buttons, columns) {
  const moves = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns };
  const at = buttons.indexOf(document.activeElement);
  const ends = { Home: 0, End: buttons.length - 1 };
  const next = event.key in ends ? ends[event.key] : at + moves[event.key];
  if (at < 0 || !(next in buttons)) return;
  event.preventDefault();
  buttons.forEach((button) => (button.tabIndex = -1));
  buttons[next].tabIndex = 0;
  buttons[next].focus();
}
