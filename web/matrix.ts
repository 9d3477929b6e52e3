// The attention of one head as the page shows it: tokens or words, with or without special tokens.

import { type Group, type LookDocument, SQUARES, type Token, encodeSqrt } from "./document.ts";
import type { Pixels } from "./renderer.ts";
import { continuesWord, joinTokens, sequenceLabels } from "./tokens.ts";

/** A row or column: one token, or all tokens of a word. */
export interface Unit {
  label: string;
  special: boolean;
  /** Positions among the rows or columns of the full map. */
  members: number[];
}

export interface Matrix {
  rows: Unit[];
  columns: Unit[];
  /** Square-root codes (rows, columns). */
  codes: Uint8Array;
  value(row: number, column: number): number;
  /** Weight of a row on columns that are not shown. */
  hidden(row: number): number;
  /** Replace the values of a row, which come from 8-bit codes, by exact weights: one list per member of the row. */
  refine(row: number, weights: number[][]): void;
  isExact(row: number): boolean;
}

/** Return the tokens of a group's rows and columns. */
export function groupTokens(doc: LookDocument, group: Group): { rows: Token[]; columns: Token[] } {
  const rows = doc.sequences[group.rows] ?? [];
  const columns = doc.sequences[group.columns] ?? [];
  return {
    rows: rows.slice(group.row_start, group.row_start + group.row_count),
    columns: columns.slice(0, group.column_count),
  };
}

/** Group tokens into units. */
export function makeUnits(tokens: Token[], words: boolean, specials: boolean): Unit[] {
  const labels = sequenceLabels(tokens);
  const units: Unit[] = [];
  tokens.forEach((token, i) => {
    const special = token.role === "special";
    if (special && !specials) return;
    if (words && continuesWord(tokens, i) && units.length > 0) {
      const unit = units[units.length - 1];
      unit.members.push(i);
      unit.label = joinTokens(
        unit.members.map((member) => tokens[member]),
        16,
      );
    } else units.push({ label: labels[i], special, members: [i] });
  });
  return units;
}

/** Build the shown matrix from a full map of codes. A word's column is the sum of its tokens, its row their mean. */
export function makeMatrix(codes: Uint8Array, columnCount: number, rows: Unit[], columns: Unit[]): Matrix {
  const direct = [...rows, ...columns].every((unit) => unit.members.length === 1);
  const shown = new Uint8Array(rows.length * columns.length);
  if (direct) {
    const whole = columns.length === columnCount;
    rows.forEach((row, r) => {
      const start = row.members[0] * columnCount;
      if (whole) shown.set(codes.subarray(start, start + columnCount), r * columnCount);
      else columns.forEach((column, c) => (shown[r * columns.length + c] = codes[start + column.members[0]]));
    });
  }
  const values = direct ? null : new Float32Array(shown.length);
  if (values)
    rows.forEach((row, r) =>
      columns.forEach((column, c) => {
        let sum = 0;
        for (const i of row.members) for (const j of column.members) sum += SQUARES[codes[i * columnCount + j]];
        values[r * columns.length + c] = sum / row.members.length;
        shown[r * columns.length + c] = encodeSqrt(sum / row.members.length);
      }),
    );
  const exact = new Map<number, { values: number[]; hidden: number }>();
  const value = (row: number, column: number) => {
    const at = row * columns.length + column;
    return exact.get(row)?.values[column] ?? (values ? values[at] : SQUARES[shown[at]]);
  };
  const hidden = (row: number) => {
    if (exact.has(row)) return exact.get(row)!.hidden;
    let [all, seen] = [0, 0];
    for (const i of rows[row].members) for (let j = 0; j < columnCount; j++) all += SQUARES[codes[i * columnCount + j]];
    for (let c = 0; c < columns.length; c++) seen += value(row, c);
    return Math.max(0, all / rows[row].members.length - seen);
  };
  const refine = (row: number, weights: number[][]) => {
    const mean = (column: number) => weights.reduce((sum, list) => sum + list[column], 0) / weights.length;
    const refined = columns.map((column) => column.members.reduce((sum, member) => sum + mean(member), 0));
    const sum = weights.flat().reduce((total, weight) => total + weight, 0) / weights.length;
    exact.set(row, { values: refined, hidden: sum - refined.reduce((total, weight) => total + weight, 0) });
  };
  return { rows, columns, codes: shown, value, hidden, refine, isExact: (row) => exact.has(row) };
}

/** The columns with the largest weights of a row, at most `count`, largest first. */
export function strongest(matrix: Matrix, row: number, count: number): { column: number; weight: number }[] {
  const best: { column: number; weight: number }[] = [];
  for (let column = 0; column < matrix.columns.length; column++) {
    const weight = matrix.value(row, column);
    if (best.length === count && weight <= best[count - 1].weight) continue;
    best.push({ column, weight });
    best.sort((a, b) => b.weight - a.weight);
    if (best.length > count) best.pop();
  }
  return best;
}

/**
 * Color a grid of codes. It shrinks to at most maxWidth x maxHeight by maximum: a mean would wash out single strong
 * weights. `stretched` scales each row to its largest code.
 */
export function colorCodes(
  codes: Uint8Array,
  rows: number,
  columns: number,
  colors: Uint32Array,
  maxWidth = Infinity,
  maxHeight = Infinity,
  stretched = false,
): Pixels {
  const width = Math.min(columns, Math.max(1, Math.floor(maxWidth)));
  const height = Math.min(rows, Math.max(1, Math.floor(maxHeight)));
  const data = new Uint32Array(width * height);
  const cells = new Uint8Array(width);
  const target = Uint32Array.from({ length: columns }, (_, column) => Math.floor((column * width) / columns));
  for (let y = 0; y < height; y++) {
    const [start, end] = [Math.floor((y * rows) / height), Math.max(Math.floor(((y + 1) * rows) / height), 1)];
    cells.fill(0);
    let top = 1;
    for (let row = start; row < Math.max(end, start + 1); row++) {
      const offset = row * columns;
      for (let column = 0; column < columns; column++) {
        const code = codes[offset + column];
        if (code > cells[target[column]]) cells[target[column]] = code;
        if (code > top) top = code;
      }
    }
    const factor = stretched ? 255 / top : 1;
    for (let x = 0; x < width; x++) data[y * width + x] = colors[Math.round(cells[x] * factor)];
  }
  return { width, height, data };
}
