// The steps of a model in their order, with what each does.

import { grouped } from "./numbers.js";

/**
 * The stacks of a model with these `details`, in the order in which a text passes them. Each has parts, and each part steps: a `name`
 * that no other step has, a `title`, what it `says`, and the `shape` of what comes out. A step of attention has a `kind` and a `layer`,
 * and the first step of a stack its `tokens`. Steps with hidden states say which these are (`hidden`), and whose tokens (`of`).
 */
export function stacksOf(details, { source, shown }) {
  const { encoder_layers, decoder_layers } = details;
  const stacks = [];
  if (encoder_layers) {
    const shape = shapeOf(source.length, details);
    const head = decoder_layers
      ? part("Output", { name: "encoded", point: "output", title: "Hidden states", shape, says: "One vector for each source token, with what the layers found out about its neighbours. The cross attention of every layer of the decoder reads them." })
      : headOf(details);
    const parts = [...begin("source", source, details), ...layers("encoder", encoder_layers, shape, details), head];
    stacks.push({ title: "Encoder", parts: withStates(parts, "encoder", source) });
  }
  if (decoder_layers) {
    const tokens = encoder_layers ? shown : source;
    const shape = shapeOf(tokens.length, details);
    const side = encoder_layers ? "decoder" : "causal";
    const parts = [...begin(encoder_layers ? "target" : "text", tokens, details), ...layers(side, decoder_layers, shape, details), next(details)];
    stacks.push({ title: "Decoder", parts: withStates(parts, "decoder", tokens) });
  }
  return stacks;
}

/** Steps that know their `point` of a stack, with what their hidden states are asked for with. */
const withStates = (parts, stack, of) => parts.map((part) => ({ ...part, steps: part.steps.map((step) =>
  (step.point ? { ...step, of, hidden: { stack, point: step.point, layer: step.layer ?? 0 } } : step)) }));

const part = (title, ...steps) => ({ title, steps });
const tokensOf = (count) => `${count} token${count === 1 ? "" : "s"}`;
const shapeOf = (tokens, { d_model }) => (d_model ? `${tokens} × ${d_model}` : tokensOf(tokens));

function begin(side, tokens, details) {
  const { d_model, vocabulary } = details;
  const isTarget = side === "target";
  return [
    part("Input", {
      name: `${side}-tokens`, tokens, title: isTarget ? "Tokens so far" : "Tokens", shape: tokensOf(tokens.length),
      says: (isTarget
        ? "The decoder writes one token after the other. It reads what it has written so far, behind a start token."
        : "The tokenizer cuts the text into tokens: words, or pieces of words.")
        + (vocabulary ? ` The vocabulary has ${grouped(vocabulary)} of them; the number of each token is below.` : " The number of each token is below.")
        + " Grey ones are no text: they begin or end a text, or name a language.",
    }, {
      name: `${side}-embedding`, point: "embedding", title: "Embedding", shape: shapeOf(tokens.length, details),
      says: `Each token becomes a vector${d_model ? ` of ${d_model} numbers` : ""}, which was learned. Attention does not see the order of tokens; `
        + "so the model adds a vector for the position, or tells distances to its attention.",
      to: { address: "#positions", name: "How sines and cosines tell positions" },
    }),
  ];
}

/** What the attention of each stack is called, and what it does. */
const SELF = {
  encoder: ["Self-attention", "Each token collects from all source tokens what it needs, by the weights of each head. The result is added to the vector of the token, and normalised."],
  decoder: ["Masked self-attention", "Each place collects from the tokens that were written before it. Later tokens are masked: they are not known yet."],
  causal: ["Masked self-attention", "Each token collects from itself and from the tokens before it. Later tokens are masked: they are not known yet."],
};

function layers(kind, count, shape, { d_model, d_ff }) {
  const [title, says] = SELF[kind];
  return Array.from({ length: count }, (_, layer) => {
    const long = (what) => `Layer ${layer + 1} of ${count}: ${what}`;
    const attention = { name: `${kind}-${layer}`, point: "attention", kind, layer, title, long: long(title.toLowerCase()), shape, says };
    const cross = {
      name: `cross-${layer}`, point: "cross", kind: "cross", layer, title: "Cross attention", long: long("cross attention"), shape,
      says: "Each place of the target collects from the source: queries come from the decoder, keys and values from the output of the encoder.",
    };
    const forward = {
      name: `${kind}-${layer}-forward`, point: "feed_forward", layer, title: "Feed forward", long: long("feed forward"), shape,
      says: (d_ff ? `Each vector alone becomes ${grouped(d_ff)} numbers, passes an activation function, and becomes ${d_model} numbers again. `
        : "Each vector alone passes two linear maps with an activation function between them. ")
        + "The result is added to the vector, and normalised.",
    };
    return part(`Layer ${layer + 1}`, attention, ...(kind === "decoder" ? [cross] : []), forward);
  });
}

const next = ({ vocabulary }) => part("Output",
  {
    name: "logits", point: "output", title: "Linear", shape: vocabulary ? `${grouped(vocabulary)} logits` : "logits",
    says: "The last vector is compared with a vector for each token of the vocabulary. The dot products are the logits.",
  }, {
    name: "next", title: "Softmax", shape: "the next token", isNext: true,
    says: "The softmax turns the logits into probabilities that sum to 1. The search takes or draws the next token from them; then the decoder begins again, with one token more.",
  });

/** What stands above an encoder, by its task, if that is known. */
function headOf({ task }) {
  const heads = {
    "fill-mask": ["Softmax", "The vector of the mask is compared with each token of the vocabulary; the softmax turns that into probabilities."],
    classify: ["Classes", "The vector of the first token becomes a number for each class; the softmax turns the numbers into probabilities."],
    answer: ["Begin and end", "The vector of each token becomes two numbers: how well the answer begins there, and how well it ends there."],
    tag: ["Labels", "The vector of each token becomes a number for each label; the softmax turns the numbers into probabilities."],
    rerank: ["Score", "The vector of the first token becomes one number: how well the text fits the query."],
  };
  const pooling = ["Pooling", "The vectors of all tokens become one vector for the text: their mean, or that of the first token."];
  const unknown = ["Hidden states", "One vector for each token. A head above them does the task: it fills masks, tells classes or labels, or makes one vector of all."];
  const [title, says] = heads[task] ?? (task ? pooling : unknown);
  return part("Output", { name: "head", point: "output", title, says });
}
