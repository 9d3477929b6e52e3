// Statistics, thumbnail and interest of a head, as src/regard/look/statistics.py computes them.

import { type Statistic, encodeSqrt } from "../document.ts";

const THUMBNAIL_SIZE = 48; // rows and columns, at most

/** The map of a head and what its rows and columns are. */
export interface HeadMap {
  weights: Float32Array; // (rows, columns)
  rows: number;
  columns: number;
  /** Whether each column is text, not a special token. */
  isText: boolean[];
  /** Rows and columns are the same tokens. */
  isSelf: boolean;
  /** The first row can only attend to itself, so it does not count. */
  skipsFirstRow: boolean;
}

export interface HeadSummary {
  statistics: Record<Statistic, number | null>;
  /** How much the head attends to particular tokens that are not too near. */
  interest: number;
  thumbnail: Uint8Array;
}

export function summarizeHead(map: HeadMap): HeadSummary {
  const { weights, rows, columns, isText, isSelf } = map;
  const start = map.skipsFirstRow ? 1 : 0;
  let [entropy, distance, previous, first, strongest] = [0, 0, 0, 0, 0];
  const attended = new Set<number>();
  for (let row = start; row < rows; row++) {
    let [best, bestColumn] = [0, 0];
    for (let column = 0; column < columns; column++) {
      const weight = weights[row * columns + column];
      entropy -= weight * Math.log(Math.max(weight, 1e-30));
      distance += weight * Math.abs(row - column);
      if (column === row - 1) previous += weight;
      if (column === 0) first += weight;
      const isIgnored = !isText[column] || (isSelf && (column === 0 || Math.abs(row - column) <= 1));
      if (!isIgnored && weight > best) [best, bestColumn] = [weight, column];
    }
    strongest += best;
    attended.add(bestColumn);
  }
  const count = Math.max(1, rows - start);
  const spread = isSelf ? 1 : attended.size / Math.min(rows, columns);
  return {
    statistics: {
      entropy: entropy / count,
      distance: isSelf ? distance / count : null,
      previous: isSelf ? previous / Math.max(1, rows - 1) : null,
      first: first / count,
    },
    interest: (strongest / count) * spread,
    thumbnail: shrink(map),
  };
}

/** Size of the thumbnail of a map. */
export const thumbnailSize = (count: number) => Math.min(count, THUMBNAIL_SIZE);

/** The codes of a map, shrunk to the maxima of its parts: averages would make sparse maps blank. */
function shrink({ weights, rows, columns }: HeadMap): Uint8Array {
  const [height, width] = [thumbnailSize(rows), thumbnailSize(columns)];
  const codes = new Uint8Array(height * width);
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++) {
      let largest = 0;
      for (let row = Math.floor((y * rows) / height); row < Math.floor(((y + 1) * rows) / height); row++)
        for (let column = Math.floor((x * columns) / width); column < Math.floor(((x + 1) * columns) / width); column++)
          largest = Math.max(largest, weights[row * columns + column]);
      codes[y * width + x] = encodeSqrt(largest);
    }
  return codes;
}
