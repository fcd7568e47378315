// What went wrong, for a person who visits the page.

/** A sentence that says what happened and what helps. */
export function sentenceOf({ status, message, field }) {
  const known = {
    0: "The server does not answer. Is it still running?",
    401: "This server needs an API key.",
    408: "The answer took too long. Try a shorter text.",
    413: long(message),
    424: "The chosen model cannot do this.",
    429: "The server is busy. Try again in a moment.",
    500: "The server failed at this request; its log says why.",
    503: "The server is busy. Try again in a moment.",
  }[status];
  return known ?? (long(message, true) || capitalised(withoutField(message, field)) || `The server refused the request (status ${status}).`);
}

/** Of a text that is too long: how long it may be, where that is told. */
function long(message, onlyIfTold = false) {
  const told = /has (\d+) (tokens|characters).*?(?:at most|maximum is|length is) (\d+)/.exec(message);
  if (told) return `The text is too long: it has ${told[1]} ${told[2]}, and at most ${told[3]} can be read. Shorten it.`;
  return onlyIfTold ? "" : "The text is too long. Shorten it.";
}

/** The server names the field of the request first, which a visitor has never seen. */
const withoutField = (message, field) => (field ? message.replace(`\`${field}\`: `, "") : message);

const capitalised = (text) => text && `${text[0].toUpperCase()}${text.slice(1)}${/[.?!]$/.test(text) ? "" : "."}`;
