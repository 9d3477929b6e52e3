// Matrices: products, and a table whose cells are shaded by their size.

import { h } from "../dom.ts";
import { softmax } from "./arithmetic.ts";

export type Matrix = readonly (readonly number[])[];

/** Return A^T. */
export const transpose = (a: Matrix): number[][] => a[0]!.map((_, j) => a.map((row) => row[j]!));

/** Return A B. */
export const multiply = (a: Matrix, b: Matrix): number[][] =>
  a.map((row) => b[0]!.map((_, j) => row.reduce((sum, value, k) => sum + value * b[k]![j]!, 0)));

/** Return A times a number. */
export const scale = (a: Matrix, factor: number): number[][] => a.map((row) => row.map((value) => value * factor));

/** Return the softmax of each row. */
export const softmaxRows = (a: Matrix): number[][] => a.map(softmax);

/** Return the root of the sum of squares, the Frobenius norm. */
export const norm = (a: Matrix): number => Math.hypot(...a.flat());

/** Return a matrix as a table with labels of its rows and columns. */
export function drawMatrix(
  title: string,
  a: Matrix,
  rows: readonly string[] = [],
  columns: readonly string[] = [],
): HTMLElement {
  const most = Math.max(...a.flat().map(Math.abs), 1e-9);
  const cell = (value: number) => {
    const share = Math.round((45 * Math.abs(value)) / most);
    const style = `background: color-mix(in srgb, var(${value < 0 ? "--minus" : "--hue"}) ${share}%, var(--page))`;
    return h("td", { class: "number", style }, value.toFixed(2));
  };
  const head = columns.map((name) => h("th", { scope: "col", class: "number" }, name));
  return h(
    "div",
    { class: "table", tabindex: 0, role: "group", "aria-label": title },
    h(
      "table",
      {},
      h("caption", {}, title),
      columns.length > 0 && h("thead", {}, h("tr", {}, rows.length > 0 && h("td"), ...head)),
      h(
        "tbody",
        {},
        ...a.map((row, i) => h("tr", {}, rows[i] && h("th", { scope: "row" }, rows[i]), ...row.map(cell))),
      ),
    ),
  );
}
