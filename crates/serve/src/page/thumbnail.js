// A map of attention as a small picture.

import { thumbnail } from "./cells.js";
import { heat, palette } from "./colour.js";
import { html } from "./dom.js";

/** A map with more cells than this in one direction for each in the other is stretched: it would be a line otherwise. */
const STRETCHED = 3;

/**
 * A canvas with a map, `{ rows, columns, weights, causal }`; nothing is on it if the weights have not come yet. Its greatest weight has the
 * strongest colour: among hundreds of tokens all weights are small.
 */
export function smallMap({ rows, columns, weights, causal }) {
  const canvas = html("canvas", { "aria-hidden": "true" });
  if (!weights) return canvas;
  const masked = palette().masked.match(/\w\w/g).map((byte) => parseInt(byte, 16));
  const greatest = weights.reduce((most, row) => row.reduce((a, b) => Math.max(a, b), most), Number.MIN_VALUE);
  const value = (row, column) => (causal && column > row ? null : Math.sqrt(weights[row][column] / greatest));
  thumbnail(canvas, rows, columns, value, heat, masked);
  if (Math.max(rows / columns, columns / rows) > STRETCHED) canvas.style.objectFit = "fill";
  return canvas;
}
