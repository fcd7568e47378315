// The kinds of attention, for people.

/** What each kind is, and what stands on its axes. */
export const KINDS = {
  encoder: {
    name: "encoder self-attention",
    short: "encoder self",
    hint: "Each source token (a row) attends to all source tokens (columns).",
    rows: "source (queries)", columns: "source (keys)",
  },
  decoder: {
    name: "decoder self-attention",
    short: "decoder self",
    hint: "To predict a target token (a row), the decoder attends to the tokens before it (columns). Later tokens are masked.",
    rows: "target (queries)", columns: "target so far (keys)",
  },
  cross: {
    name: "cross attention",
    short: "cross",
    hint: "To predict a target token (a row), the decoder attends to the source tokens (columns).",
    rows: "target (queries)", columns: "source (keys)",
  },
  causal: {
    name: "causal self-attention",
    short: "causal self",
    hint: "Each token (a row) attends to itself and to the tokens before it (columns). Later tokens are masked.",
    rows: "text (queries)", columns: "text so far (keys)",
  },
};

/** The kinds of attention that a model has; the last is the one to begin with. */
export function kindsOf({ kinds, task, encoder_layers, decoder_layers }) {
  if (kinds) return kinds;
  if (encoder_layers && decoder_layers) return ["encoder", "decoder", "cross"];
  return task === "generate" || !encoder_layers ? ["causal"] : ["encoder"];
}

/** What a decoder is shown before it has written anything, whatever its own name is. */
const START = { piece: "(start)", word: null };

/** The tokens on both axes of a kind of attention. */
export function axesOf(kind, answer) {
  const tokens = {
    encoder: [answer.source, answer.source],
    decoder: [answer.target, [START, ...answer.shown.slice(1)]],
    cross: [answer.target, answer.source],
    causal: [answer.source, answer.source],
  }[kind];
  const { rows, columns } = KINDS[kind];
  return { rows: { tokens: tokens[0], title: rows }, columns: { tokens: tokens[1], title: columns } };
}

/** The name of a layer and head, counted from 1 as people do; without a head, of the mean. */
export const placeName = ({ layer, head }) => `layer ${layer + 1}, ${head === null ? "mean of all heads" : `head ${head + 1}`}`;
