// Matrices as coloured cells.

import { css } from "./colour.js";
import { svg } from "./dom.js";

/** How many colours a picture has at most: cells of one colour are one path, so that ten thousand cells are no burden. */
const LEVELS = 96;

/**
 * A matrix as vector graphics. `value(row, column)` is a number, or null where nothing is drawn; `scale` makes a colour of
 * it, and `range` says which numbers there may be.
 */
export function cells({ rows, columns, width, height, value, scale, range: [low, high], x = 0, y = 0 }) {
  const [w, h] = [width / columns, height / rows];
  const paths = new Map();
  for (let row = 0; row < rows; row++) {
    let column = 0;
    while (column < columns) {
      const level = levelOf(value(row, column), low, high);
      let end = column + 1;
      while (end < columns && levelOf(value(row, end), low, high) === level) end++;
      if (level !== null) {
        const path = `M${r(x + column * w)} ${r(y + row * h)}h${r((end - column) * w)}v${r(h)}h${r((column - end) * w)}z`;
        paths.set(level, (paths.get(level) ?? "") + path);
      }
      column = end;
    }
  }
  const path = ([level, d]) => svg("path", { fill: css(scale(low + ((high - low) * level) / LEVELS)), d });
  return svg("g", { "shape-rendering": "crispEdges" }, [...paths].map(path));
}

function levelOf(value, low, high) {
  if (value === null) return null;
  return Math.round((LEVELS * (Math.min(Math.max(value, low), high) - low)) / (high - low));
}

const r = (x) => Math.round(x * 100) / 100;

/** The longer side of a small picture in pixels, at most. */
const MOST = 64;

/**
 * A matrix as a small picture: a pixel for each cell, or for the greatest of several cells where there are many, so that what is
 * bright stays to be seen.
 */
export function thumbnail(canvas, rows, columns, value, scale, empty) {
  const together = Math.max(1, Math.ceil(Math.max(rows, columns) / MOST));
  [canvas.width, canvas.height] = [columns, rows].map((count) => Math.ceil(count / together));
  const context = canvas.getContext("2d");
  const image = context.createImageData(canvas.width, canvas.height);
  const greatest = (top, left) => {
    let most = null;
    for (let row = top; row < Math.min(top + together, rows); row++) {
      for (let column = left; column < Math.min(left + together, columns); column++) {
        const x = value(row, column);
        if (x !== null && (most === null || x > most)) most = x;
      }
    }
    return most;
  };
  for (let row = 0; row < canvas.height; row++) {
    for (let column = 0; column < canvas.width; column++) {
      const x = greatest(row * together, column * together);
      image.data.set([...(x === null ? empty : scale(x)), 255], 4 * (row * canvas.width + column));
    }
  }
  context.putImageData(image, 0, 0);
}
