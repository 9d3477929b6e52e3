// The position encodings of src/regard/nn/positions.py, computed from their settings.

import type { Positions } from "../document.ts";

export interface Grid {
  rows: number;
  columns: number;
  values: Float64Array;
}

export interface Curve {
  label: string;
  points: [number, number][];
}

/** Vectors of sines and cosines: PE[p, 2 i] = sin(p / base^(2 i / width)), PE[p, 2 i + 1] = cos of the same. */
export function sinusoidal(item: Positions, count: number): Grid {
  const [width, base] = [item.width!, item.base!];
  const values = new Float64Array(count * width);
  for (let position = 0; position < count; position++)
    for (let pair = 0; pair < width / 2; pair++) {
      const angle = position / base ** ((2 * pair) / width);
      const [sine, cosine] = item.interleaved ? [2 * pair, 2 * pair + 1] : [pair, pair + width / 2];
      values[position * width + sine] = Math.sin(angle);
      values[position * width + cosine] = Math.cos(angle);
    }
  return { rows: count, columns: width, values };
}

/** Cosines of rotary angles (positions, pairs). */
export function angles(item: Positions, count: number): Grid {
  const pairs = item.key_dim! / 2;
  const values = new Float64Array(count * pairs);
  for (let position = 0; position < count; position++)
    for (let pair = 0; pair < pairs; pair++)
      values[position * pairs + pair] = Math.cos(position * item.base! ** (-pair / pairs));
  return { rows: count, columns: pairs, values };
}

/** Mean of cos(distance x frequency) over the pairs: the score of two equal vectors, turned. */
export function relativeCurves(item: Positions, count: number): [number, number][] {
  const grid = angles(item, count);
  return Array.from({ length: count }, (_, distance) => {
    let sum = 0;
    for (let pair = 0; pair < grid.columns; pair++) sum += grid.values[distance * grid.columns + pair];
    return [distance, sum / grid.columns];
  });
}

/** The dot products of all rows. */
export function dotProducts({ rows, columns, values }: Grid): Grid {
  const products = new Float64Array(rows * rows);
  for (let i = 0; i < rows; i++)
    for (let j = 0; j < rows; j++) {
      let sum = 0;
      for (let k = 0; k < columns; k++) sum += values[i * columns + k] * values[j * columns + k];
      products[i * rows + j] = sum;
    }
  return { rows, columns: rows, values: products };
}

/** Tokens after which each pair of dimensions repeats. */
export function wavelengths(base: number, width: number): [number, number][] {
  return Array.from({ length: width / 2 }, (_, pair) => [pair, 2 * Math.PI * base ** ((2 * pair) / width)]);
}
