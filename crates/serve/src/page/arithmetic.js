// The numbers of attention, as the formula has them.

/** The dot product of two vectors. */
const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);

/** eˣ / Σ eˣ; what is masked has the score -∞ and the weight 0. */
function softmax(scores) {
  const greatest = Math.max(...scores);
  const powers = scores.map((score) => Math.exp(score - greatest));
  const sum = powers.reduce((a, b) => a + b, 0);
  return powers.map((power) => power / sum);
}

/** Σ weight · vector. */
const weightedSum = (weights, vectors) =>
  vectors[0].map((_, i) => weights.reduce((sum, weight, j) => sum + weight * vectors[j][i], 0));

/**
 * One query against all keys: every step on the way. Dot products are divided by `divisor`, which gives `contents`; each of `terms`,
 * a name and a number for each key, is added to them. Keys from `visible` on are masked.
 */
export function attend({ query, keys, values, divisor, terms = [], visible = keys.length }) {
  const products = keys.map((key) => dot(query, key));
  const contents = products.map((product) => product / divisor);
  const score = (content, key) => terms.reduce((sum, { numbers }) => sum + numbers[key], content);
  const scores = contents.map((content, key) => (key < visible ? score(content, key) : -Infinity));
  const weights = softmax(scores);
  return { products, divisor, contents, terms, scores, weights, result: weightedSum(weights, values) };
}

/** PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos of the same; as `halves`, all sines come first. */
export function positionalEncoding(position, dimension, d, halves) {
  const half = Math.ceil(d / 2);
  const [pair, cosine] = halves ? [dimension % half, dimension >= half] : [dimension >> 1, dimension % 2 === 1];
  const angle = position / Math.pow(10000, (2 * pair) / d);
  return cosine ? Math.cos(angle) : Math.sin(angle);
}

/** d^-0.5 · min(step^-0.5, step · warmup^-1.5) */
export const learningRate = (step, d, warmup) =>
  step <= 0 ? 0 : Math.pow(d, -0.5) * Math.min(Math.pow(step, -0.5), step * Math.pow(warmup, -1.5));
