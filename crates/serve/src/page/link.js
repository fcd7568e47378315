// The address of what is shown: it can be kept, sent, and opened again. It stands behind the `#`, which no browser sends to a server.

import { byId } from "./dom.js";

const MARK = "#try?";

/** What the address asked for when the page was opened. */
const asked = new URLSearchParams(location.hash.startsWith(MARK) ? location.hash.slice(MARK.length) : "");

/** A field that the address asks for, or null; once, for later on the reader decides. */
export function take(name) {
  const value = asked.get(name);
  asked.delete(name);
  return value;
}

/** What is shown, and which attention of it, if the reader has chosen one. */
let kept = null;
let look = null;

function write() {
  const fields = Object.entries({ ...kept, look }).filter(([, value]) => value);
  history.replaceState(null, "", MARK + new URLSearchParams(fields));
}

/** Writes what is shown into the address. Fields that are empty are left out. */
export function keep(fields) {
  kept = fields;
  write();
}

/** Writes into the address which attention is shown. */
export function keepLook(text) {
  look = text;
  if (kept) write();
}

/** Takes the address back: nothing is shown. */
export function forget() {
  kept = null;
  if (location.hash.startsWith(MARK)) history.replaceState(null, "", location.pathname + location.search);
}

/** Copies a text, and says so for a moment in the element `told`. */
export async function copy(text, told) {
  const line = byId(told);
  line.textContent = (await toClipboard(text)) ? "Copied." : "The browser does not allow copying.";
  setTimeout(() => (line.textContent = ""), 2500);
}

async function toClipboard(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Only pages of this computer, and those with TLS, have that clipboard; the old way works everywhere.
    return copyOldWay(text);
  }
}

function copyOldWay(text) {
  const focused = document.activeElement;
  const field = document.createElement("textarea");
  field.value = text;
  field.setAttribute("aria-hidden", "true");
  field.className = "out-of-sight";
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  focused?.focus();
  return done;
}
