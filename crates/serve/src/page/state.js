// What the parts of the page share, and how they hear of changes.

/** What every part may read. */
export const state = {
  /** The models of the server; the one that is chosen, and the task that it is chosen for. */
  models: [],
  model: null,
  task: null,
  /**
   * The text whose attention is shown: `{ model, text }`. Of a translation also `{ source, target, tokens }`: the languages, and
   * the tokens that were written. Null if there is none.
   */
  subject: null,
  /** Which attention is shown: `{ kind, layer, head }`, head null for the mean. */
  look: { kind: "cross", layer: 0, head: null },
  /** The query that is followed step by step: a row of that attention. */
  query: 0,
};

const listeners = new Map();

/** Calls `listener` whenever `topic` has changed: a name in `state`, or `theme`. */
export function on(topic, listener) {
  listeners.set(topic, [...(listeners.get(topic) ?? []), listener]);
}

/** Changes something and tells the listeners. */
export function change(topic, value) {
  state[topic] = value;
  tell(topic);
}

let looked = 0;

/** Shows the attention of a text. Each text that is looked at gets a number of its own. */
export const lookAt = (subject) => change("subject", { ...subject, number: ++looked });

/** Shows the attention of no text: what was shown belongs to another text. */
export const lookAway = () => state.subject && change("subject", null);

/** Tells the listeners. */
export const tell = (topic) => (listeners.get(topic) ?? []).forEach((listener) => listener());
