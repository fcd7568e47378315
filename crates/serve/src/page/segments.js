// What the model reads at once: a line, or each sentence of it.

const MARK = "▁";

/** The segments of the translation of a line: of each the source, and the tokens that were written. Null if they cannot be told apart. */
export function segmentsOf({ text, parts, source, hypotheses, rank }) {
  const { tokens } = hypotheses[rank];
  if (parts === 1) return [{ text, tokens }];
  const [sources, targets] = [cut(source), cut(tokens)];
  const isPlain = source.some(({ piece }) => piece.startsWith(MARK));
  if (!isPlain || sources.length !== parts || targets.length !== parts) return null;
  return targets.map((tokens, i) => ({ text: textOf(sources[i]), tokens }));
}

/** Cuts tokens behind each token that ends a sentence: the last of them is one. */
function cut(tokens) {
  const segments = [[]];
  for (const token of tokens) {
    segments.at(-1).push(token);
    if (token.id === tokens.at(-1).id) segments.push([]);
  }
  segments.pop();
  return segments;
}

/** The text of tokens of SentencePiece. */
const textOf = (tokens) =>
  tokens.filter(({ word }) => word !== null).map(({ piece }) => piece).join("").replaceAll(MARK, " ").trim();
