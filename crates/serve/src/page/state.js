// What the parts of the page share, and how they hear of changes.

/** What everybody may read. */
export const state = {
  /** The models of the server, and the one that is chosen. */
  models: [],
  model: null,
  /** What is looked at: a translation, `{ model, target, text, source, hypothesis, parts }`, or a text, `{ model, text }`. */
  translation: null,
  /** Which attention is looked at: `{ kind, layer, head }`, head null for the mean. */
  look: { kind: "cross", layer: 0, head: null },
  /** The query that is followed step by step: a row of that attention. */
  query: 0,
};

const listeners = new Map();

/** Calls `listener` whenever `topic` has changed: a name in `state`, or `theme`. */
export function on(topic, listener) {
  listeners.set(topic, [...(listeners.get(topic) ?? []), listener]);
}

/** Changes something and tells who listens. */
export function change(topic, value) {
  state[topic] = value;
  tell(topic);
}

let looked = 0;

/** Looks at a translation or a text; its number is that of no other. */
export const lookAt = (subject) => change("translation", { ...subject, number: ++looked });

/** Tells who listens. */
export const tell = (topic) => (listeners.get(topic) ?? []).forEach((listener) => listener());
