// A head's weights as lines between two columns of tokens; the opacity of a line is its weight.

import { across } from "../curve.ts";
import { type Matrix, strongest } from "../matrix.ts";
import type { Renderer } from "../renderer.ts";
import type { Cell } from "../state.ts";
import type { Theme } from "../theme.ts";
import { fitText, showWeight } from "./common.ts";

export interface LinesLayout {
  /** First row and column shown, and how many. */
  rows: [number, number];
  columns: [number, number];
  pitch: number;
  left: number;
  right: number;
  width: number;
  height: number;
}

const TOP = 10;
const WINDOW = 60;

/** Choose the places. Past 60 tokens only a window around the active row is drawn. */
export function layoutLines(matrix: Matrix, available: number, active: Cell | null): LinesLayout {
  const window = (count: number, center: number): [number, number] =>
    count <= WINDOW ? [0, count] : [Math.max(0, Math.min(count - WINDOW, Math.round(center) - WINDOW / 2)), WINDOW];
  const row = active?.row ?? 0;
  const columnCenter = active?.column ?? (row * matrix.columns.length) / Math.max(1, matrix.rows.length);
  const rows = window(matrix.rows.length, row);
  const columns = window(matrix.columns.length, columnCenter);
  const width = Math.min(available, 640);
  const side = Math.min(130, width * 0.3);
  const pitch = available < 600 ? 22 : 24;
  const height = TOP * 2 + Math.max(rows[1], columns[1]) * pitch;
  return { rows, columns, pitch, left: side, right: width - side - 44, width, height };
}

export function drawLines(
  renderer: Renderer,
  matrix: Matrix,
  layout: LinesLayout,
  theme: Theme,
  active: Cell | null,
): void {
  const { rows, columns } = layout;
  for (let row = rows[0]; row < rows[0] + rows[1]; row++) {
    if (active && row !== active.row) continue;
    for (let column = columns[0]; column < columns[0] + columns[1]; column++) {
      const weight = matrix.value(row, column);
      if (weight < (active ? 0.002 : 0.04)) continue; // fainter lines only make a haze
      const data = across([layout.left, rowY(layout, row)], [layout.right, columnY(layout, column)]);
      renderer.path(data, {
        stroke: active ? theme.accent : theme.hue,
        width: 0.5 + 3.5 * weight,
        opacity: Math.min(1, 0.08 + weight),
      });
    }
  }
  for (let row = rows[0]; row < rows[0] + rows[1]; row++) {
    const label = fitText(matrix.rows[row].label, 13, theme.font, layout.left - 12);
    const fill = !active ? theme.ink : row === active.row ? theme.accent : theme.muted;
    renderer.text(layout.left - 8, rowY(layout, row), label, { fill, anchor: "end" });
  }
  const marked = new Map(active ? strongest(matrix, active.row, 5).map((item) => [item.column, item.weight]) : []);
  for (let column = columns[0]; column < columns[0] + columns[1]; column++) {
    const label = fitText(matrix.columns[column].label, 13, theme.font, layout.left - 12);
    const weight = marked.get(column);
    const isMarked = weight !== undefined && weight >= 0.01;
    const fill = active && !isMarked ? theme.muted : theme.ink;
    const y = columnY(layout, column);
    renderer.text(layout.right + 8, y, label, { fill });
    if (isMarked)
      renderer.text(layout.width - 4, y, showWeight(weight), { fill: theme.accent, size: 12, anchor: "end" });
  }
}

/** The row whose label or the column whose label is at a point. */
export function locateInLines(matrix: Matrix, layout: LinesLayout, y: number): Cell | null {
  const row = Math.floor((y - TOP) / layout.pitch) + layout.rows[0];
  return row >= 0 && row < matrix.rows.length && y >= TOP ? { row, column: null } : null;
}

function rowY(layout: LinesLayout, row: number): number {
  return TOP + (row - layout.rows[0] + 0.5) * layout.pitch;
}

function columnY(layout: LinesLayout, column: number): number {
  return TOP + (column - layout.columns[0] + 0.5) * layout.pitch;
}
