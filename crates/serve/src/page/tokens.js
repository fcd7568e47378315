// Tokens as people read them.

/** The marks that say in a piece that a word begins or goes on. */
const MARKS = /^(▁|Ġ|##)/;

/** The text of a token for an axis or a button. Tokens that are no text keep their own name. */
export function label(token) {
  if (token.word === null) return token.piece;
  return token.piece.replace(MARKS, "") || "␣";
}

/** The names of tokens in a list. Those of the same text are told apart: of them one has a space before it. */
export function names(tokens) {
  const labels = tokens.map(label);
  const isAlone = (name) => labels.indexOf(name) === labels.lastIndexOf(name);
  return labels.map((name, i) => (isAlone(name) ? name : tokens[i].piece.replace(/^[▁Ġ]/, "␣")));
}

/** What the marks in some names mean, or nothing if there are none. */
export const marksOf = (names) => (names.some((name) => name.startsWith("␣")) ? " ␣ is a space." : "");

/** The text of a token with spaces and line breaks that can be seen. */
export const visible = (text) => text.replaceAll(" ", "␣").replaceAll("\n", "↵").replaceAll("\t", "⇥");

/** Whether each token goes on with the word of the one before it. */
export const continues = (tokens) =>
  tokens.map((token, i) => i > 0 && token.word !== null && token.word === tokens[i - 1].word);

/** A text that is no wider than `most` pixels, with an ellipsis where it was cut. */
export function shortened(text, most, size) {
  if (textWidth(text, size) <= most) return text;
  const characters = [...text];
  let end = characters.length - 1;
  while (end > 1 && textWidth(`${characters.slice(0, end).join("")}…`, size) > most) end--;
  return `${characters.slice(0, end).join("")}…`;
}

/** How wide a text is in a picture. */
export function textWidth(text, size) {
  const context = (textWidth.canvas ??= document.createElement("canvas")).getContext("2d");
  context.font = `${size}px ${FONT}`;
  return context.measureText(text).width;
}

/** The type of pictures. */
export const FONT = "system-ui, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', sans-serif";
