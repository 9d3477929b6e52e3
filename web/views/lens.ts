// A magnifier for maps whose cells are too small to read: the tokens around the active cell, with labels.

import type { Matrix } from "../matrix.ts";
import { CanvasRenderer } from "../renderer.ts";
import type { Cell } from "../state.ts";
import type { Theme } from "../theme.ts";
import { fitText } from "./common.ts";

const CELLS = 13;
const CELL = 17;
const LABEL = 84;
export const lensSize = LABEL + CELLS * CELL + 4;

export function drawLens(canvas: HTMLCanvasElement, matrix: Matrix, cell: Cell, theme: Theme): void {
  const renderer = new CanvasRenderer(canvas, lensSize, lensSize, theme.font);
  const start = (center: number, count: number) =>
    Math.max(0, Math.min(count - CELLS, Math.round(center) - (CELLS >> 1)));
  const top = start(cell.row, matrix.rows.length);
  const left = start(cell.column ?? 0, matrix.columns.length);
  const [rows, columns] = [Math.min(CELLS, matrix.rows.length), Math.min(CELLS, matrix.columns.length)];
  for (let i = 0; i < rows; i++) {
    const y = LABEL + i * CELL;
    for (let j = 0; j < columns; j++) {
      const code = matrix.codes[(top + i) * matrix.columns.length + left + j];
      if (code > 0) renderer.rect(LABEL + j * CELL, y, CELL, CELL, { fill: theme.ramp[code] });
    }
    const fill = top + i === cell.row ? theme.accent : theme.muted;
    const label = fitText(matrix.rows[top + i].label, 12, theme.font, LABEL - 8);
    renderer.text(LABEL - 5, y + CELL / 2, label, { fill, size: 12, anchor: "end" });
  }
  for (let j = 0; j < columns; j++) {
    const fill = left + j === cell.column ? theme.accent : theme.muted;
    const label = fitText(matrix.columns[left + j].label, 12, theme.font, LABEL - 8);
    renderer.text(LABEL + (j + 0.5) * CELL, LABEL - 5, label, { fill, size: 12, angle: -90 });
  }
  renderer.rect(LABEL - 0.5, LABEL - 0.5, columns * CELL + 1, rows * CELL + 1, { stroke: theme.rule });
  if (cell.column !== null)
    renderer.rect(LABEL + (cell.column - left) * CELL, LABEL + (cell.row - top) * CELL, CELL, CELL, {
      stroke: theme.accent,
      width: 2,
    });
}
