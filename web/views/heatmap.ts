// A head's weights as a table of colors: pure functions of the matrix, the active cell and a renderer.

import { type Matrix, type Unit, colorCodes } from "../matrix.ts";
import type { Renderer } from "../renderer.ts";
import type { Cell } from "../state.ts";
import { type Theme, inkOn } from "../theme.ts";
import { fitText, showWeight, textWidth } from "./common.ts";

export interface HeatmapLayout {
  cell: number;
  left: number;
  top: number;
  width: number;
  height: number;
  /** Whether rows and columns carry labels. */
  labeled: boolean;
  /** Whether the labels of columns stand upright: all of them fit, else all are slanted. */
  level: boolean;
  size: number;
}

type Labels = Pick<Matrix, "rows" | "columns">;

const ANGLE = -53;
const [SIN, COS] = [Math.sin((53 * Math.PI) / 180), Math.cos((53 * Math.PI) / 180)];
const LABEL_LIMIT = 140;

/** A label at the edge of a map: many patches stand there, so they are only numbered. */
const edgeLabel = ({ label }: Unit) => label.replace(/^patch (?=\d+,\d+$)/, "");

/** Choose the size of cells for a width and a height. Up to 96 columns the map scrolls rather than lose its labels. */
export function layoutHeatmap(matrix: Labels, available: number, theme: Theme, height = 640): HeatmapLayout {
  const [rows, columns] = [matrix.rows.length, matrix.columns.length];
  if (Math.max(rows, columns) > 96) {
    // Cells below a pixel are fine: they shrink by maximum.
    const cell = Math.min(6, (available - 14) / columns, Math.max(height, 900) / rows);
    return {
      cell,
      left: 12,
      top: 12,
      width: columns * cell + 14,
      height: rows * cell + 14,
      labeled: false,
      level: false,
      size: 0,
    };
  }
  const size = available < 600 ? 12 : 13;
  const widest = (labels: string[]) =>
    Math.min(LABEL_LIMIT, Math.max(12, ...labels.map((label) => textWidth(label, size, theme.font))));
  const left = widest(matrix.rows.map(edgeLabel)) + 10;
  const slanted = widest(matrix.columns.map(edgeLabel));
  // How far the slanted labels reach beyond the last column: the cells before it are at least 16 pixels wide.
  const reach = matrix.columns
    .slice(-6)
    .map((unit, i, last) => widest([edgeLabel(unit)]) * COS - (last.length - 1 - i) * 16);
  const right = Math.max(0, ...reach) + 6;
  const room = (available - left - right) / Math.max(columns, 1);
  const largest = Math.min(Math.max(columns, rows) <= 6 ? 120 : 96, (height - slanted * SIN - 24) / rows);
  const cell = Math.max(available < 600 ? 18 : 16, Math.floor(Math.min(largest, room)));
  const level = slanted <= cell - 4; // short labels stand upright
  const top = level ? 24 : slanted * SIN + 16;
  return {
    cell,
    left,
    top,
    width: left + columns * cell + right,
    height: top + rows * cell + 4,
    labeled: true,
    level,
    size,
  };
}

/** Draw the map with its labels. */
export function drawHeatmap(
  renderer: Renderer,
  matrix: Matrix,
  layout: HeatmapLayout,
  theme: Theme,
  options: { stretched?: boolean; numbers?: boolean; pixelRatio?: number } = {},
): void {
  const { cell, left, top } = layout;
  const [rows, columns] = [matrix.rows.length, matrix.columns.length];
  const [width, height] = [columns * cell, rows * cell];
  const pixels = colorCodes(
    matrix.codes,
    rows,
    columns,
    theme.pixels,
    width * (options.pixelRatio ?? 1),
    height * (options.pixelRatio ?? 1),
    options.stretched,
  );
  renderer.pixels(left, top, width, height, pixels);
  renderer.rect(left - 0.5, top - 0.5, width + 1, height + 1, { stroke: theme.rule });
  drawLabels(renderer, matrix, layout, theme, null);
  if (options.numbers) matrix.rows.forEach((_, row) => drawNumbers(renderer, matrix, layout, theme, row, options));
}

/** Print the weights of a row in its cells, if they have room. */
function drawNumbers(
  renderer: Renderer,
  matrix: Matrix,
  layout: HeatmapLayout,
  theme: Theme,
  row: number,
  { stretched }: { stretched?: boolean } = {},
): void {
  const { cell, left, top } = layout;
  if (!layout.labeled || cell < 26) return;
  const codes = matrix.codes.subarray(row * matrix.columns.length, (row + 1) * matrix.columns.length);
  const factor = stretched ? 255 / Math.max(1, ...codes) : 1;
  matrix.columns.forEach((_, column) => {
    const weight = matrix.value(row, column);
    if (weight < 0.005) return;
    const fill = inkOn(theme.ramp[Math.round(codes[column] * factor)]);
    const text = weight.toFixed(2).replace(/^0/, "");
    const size = cell > 50 ? 14 : 11;
    renderer.text(left + (column + 0.5) * cell, top + (row + 0.5) * cell, text, { fill, size, anchor: "middle" });
  });
}

/** Draw the labels of rows and columns, those of the active cell in the accent color. */
export function drawLabels(
  renderer: Renderer,
  matrix: Labels,
  layout: HeatmapLayout,
  theme: Theme,
  active: Cell | null,
): void {
  if (!layout.labeled) return;
  const color = (isActive: boolean) => (isActive ? theme.accent : theme.muted);
  matrix.rows.forEach((_, row) => drawRowLabel(renderer, matrix, layout, theme, row, color(row === active?.row)));
  matrix.columns.forEach((_, column) =>
    drawColumnLabel(renderer, matrix, layout, theme, column, color(column === active?.column)),
  );
}

/** Draw what marks the active row or cell. */
export function drawHeatmapFocus(
  renderer: Renderer,
  matrix: Matrix,
  layout: HeatmapLayout,
  theme: Theme,
  active: Cell,
  locked: boolean,
  options: { stretched?: boolean; numbers?: boolean } = {},
): void {
  const { cell, left, top } = layout;
  const width = matrix.columns.length * cell;
  const y = top + active.row * cell;
  const line = locked ? 2.5 : 1.5;
  if (!layout.labeled) {
    const x = left + ((active.column ?? 0) + 0.5) * cell;
    renderer.path(`M${left} ${y + cell / 2}h${width}`, { stroke: theme.accent, width: 1 });
    if (active.column !== null) {
      renderer.path(`M${x} ${top}v${matrix.rows.length * cell}`, { stroke: theme.accent, width: 1, opacity: 0.5 });
      renderer.rect(x - 5, y + cell / 2 - 5, 10, 10, { stroke: theme.accent, width: line, radius: 5 });
    }
    return;
  }
  if (!options.numbers) drawNumbers(renderer, matrix, layout, theme, active.row, options);
  renderer.rect(left, y, width, cell, { stroke: theme.accent, width: line });
  drawRowLabel(renderer, matrix, layout, theme, active.row, theme.accent);
  if (active.column === null) return;
  renderer.rect(left + active.column * cell, y, cell, cell, { stroke: theme.accent, width: line + 0.5 });
  drawColumnLabel(renderer, matrix, layout, theme, active.column, theme.accent);
}

/** The cell at a point; null outside. Over a row's label: the row. */
export function locateInHeatmap(matrix: Labels, layout: HeatmapLayout, x: number, y: number): Cell | null {
  const row = Math.floor((y - layout.top) / layout.cell);
  const column = Math.floor((x - layout.left) / layout.cell);
  if (row < 0 || row >= matrix.rows.length || column >= matrix.columns.length) return null;
  return { row, column: column < 0 ? null : column };
}

/** Draw the key of the colors; the full one stands for the weight `largest`, or if null for the largest of a row. */
export function drawKey(renderer: Renderer, theme: Theme, width: number, largest: number | null = 1): void {
  const show = (value: number) =>
    largest !== null
      ? showWeight(value * largest).replace("1.00", "1")
      : value === 1
        ? "row's largest"
        : value === 0.5
          ? "" // the label at the end needs its room
          : `${value * 100} %`;
  const data = Uint32Array.from({ length: 256 }, (_, code) => theme.pixels[code]);
  renderer.pixels(0, 2, width, 10, { width: 256, height: 1, data });
  renderer.path(`M0 1.5h${width}`, { stroke: theme.rule });
  for (const value of [0, 0.1, 0.25, 0.5, 1]) {
    const x = Math.sqrt(value) * (width - 1) + 0.5;
    renderer.path(`M${x} 12v4`, { stroke: theme.muted });
    const anchor = value === 0 ? "start" : value === 1 ? "end" : "middle";
    renderer.text(value === 0 ? 0 : x, 23, show(value), {
      fill: theme.muted,
      size: 11,
      anchor,
    });
  }
}

function drawRowLabel(r: Renderer, matrix: Labels, layout: HeatmapLayout, theme: Theme, row: number, fill: string) {
  const label = fitText(edgeLabel(matrix.rows[row]), layout.size, theme.font, LABEL_LIMIT);
  const y = layout.top + (row + 0.5) * layout.cell;
  r.text(layout.left - 6, y, label, { fill, size: layout.size, anchor: "end" });
}

function drawColumnLabel(
  r: Renderer,
  matrix: Labels,
  layout: HeatmapLayout,
  theme: Theme,
  column: number,
  fill: string,
) {
  const label = fitText(edgeLabel(matrix.columns[column]), layout.size, theme.font, LABEL_LIMIT);
  const x = layout.left + (column + 0.5) * layout.cell;
  if (layout.level) r.text(x, layout.top - 12, label, { fill, size: layout.size, anchor: "middle" });
  else r.text(x, layout.top - 7, label, { fill, size: layout.size, angle: ANGLE });
}
