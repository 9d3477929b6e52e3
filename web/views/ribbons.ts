// An alignment as ribbons between two sentences; the width of a ribbon is its weight.

import { across, down } from "../curve.ts";
import { type Matrix, strongest } from "../matrix.ts";
import type { Renderer } from "../renderer.ts";
import type { Theme } from "../theme.ts";
import { fitText, textWidth } from "./common.ts";

export interface RibbonLayout {
  /** Sentences as two lines (source above) or, where they do not fit, as two columns (source on the left). */
  upright: boolean;
  /** Center and extent of each word along its sentence. */
  rows: [number, number][];
  columns: [number, number][];
  width: number;
  height: number;
}

const SIZE = 16;
const GAP = 18;
const DEPTH = 170; // distance between the two sentences
const COVERED = 0.75; // a word's ribbons stop at this share of its weight; the rest would be a haze

export function layoutRibbons(matrix: Matrix, available: number, theme: Theme): RibbonLayout {
  const measure = (label: string) => Math.min(160, Math.max(14, textWidth(label, SIZE, theme.font)));
  const place = (labels: string[]): [number, number][] => {
    const widths = labels.map(measure);
    const spare = Math.min(available, 1500) - widths.reduce((sum, width) => sum + width, 20);
    const gap = Math.max(GAP, Math.min(180, spare / Math.max(1, labels.length - 1))); // short words spread out
    let x = 8;
    return widths.map((width) => {
      x += width + gap;
      return [x - gap - width / 2, width + gap - GAP];
    });
  };
  const end = (places: [number, number][]) =>
    places.length ? places[places.length - 1][0] + places[places.length - 1][1] / 2 : 0;
  const [rows, columns] = [
    place(matrix.rows.map((unit) => unit.label)),
    place(matrix.columns.map((unit) => unit.label)),
  ];
  const width = Math.max(end(rows), end(columns)) + 12;
  if (width <= available) {
    const shift = (places: [number, number][]) =>
      places.map(([center, size]): [number, number] => [center + (width - end(places) - 12) / 2, size]);
    return { upright: true, rows: shift(rows), columns: shift(columns), width, height: DEPTH + 60 };
  }
  const pitch = 30;
  const list = (count: number) => Array.from({ length: count }, (_, i): [number, number] => [18 + i * pitch, 20]);
  return {
    upright: false,
    rows: list(matrix.rows.length),
    columns: list(matrix.columns.length),
    width: Math.min(available, 640),
    height: 24 + pitch * Math.max(matrix.rows.length, matrix.columns.length),
  };
}

export function drawRibbons(
  renderer: Renderer,
  matrix: Matrix,
  layout: RibbonLayout,
  theme: Theme,
  active: number | null,
): void {
  const side = Math.min(130, layout.width * 0.3);
  const from = (column: number): [number, number] =>
    layout.upright ? [layout.columns[column][0], 38] : [side, layout.columns[column][0]];
  const to = (row: number): [number, number] =>
    layout.upright ? [layout.rows[row][0], DEPTH + 22] : [layout.width - side, layout.rows[row][0]];
  const draw = (row: number, color: string) => {
    for (const { column, weight } of shownLinks(matrix, row)) {
      const data = (layout.upright ? down : across)(from(column), to(row));
      renderer.path(data, { stroke: color, width: 1 + 13 * weight, opacity: 0.2 + 0.6 * weight });
    }
  };
  matrix.rows.forEach((_, row) => row !== active && draw(row, active === null ? theme.hue : theme.rule));
  if (active !== null) draw(active, theme.accent);
  const seen = new Set(active === null ? [] : shownLinks(matrix, active).map((item) => item.column));
  matrix.columns.forEach((unit, column) => {
    const [x, y] = layout.upright ? [layout.columns[column][0], 24] : [side - 8, layout.columns[column][0]];
    const fill = seen.has(column) ? theme.accent : theme.ink;
    label(renderer, theme, unit.label, x, y, fill, layout.upright ? "middle" : "end", layout.upright ? 160 : side - 10);
  });
  matrix.rows.forEach((unit, row) => {
    const [x, y] = layout.upright ? [layout.rows[row][0], DEPTH + 38] : [layout.width - side + 8, layout.rows[row][0]];
    const fill = row === active ? theme.accent : theme.ink;
    label(
      renderer,
      theme,
      unit.label,
      x,
      y,
      fill,
      layout.upright ? "middle" : "start",
      layout.upright ? 160 : side - 10,
    );
  });
}

/** The strongest weights of a word, until they cover most of it. */
function shownLinks(matrix: Matrix, row: number): { column: number; weight: number }[] {
  let covered = 0;
  return strongest(matrix, row, 6).filter(({ weight }) => {
    const isShown = weight >= 0.03 && covered < COVERED;
    covered += weight;
    return isShown;
  });
}

/** The generated word at a point: below the middle of the drawing, or right of it. */
export function locateInRibbons(layout: RibbonLayout, x: number, y: number): number | null {
  const isNear = layout.upright ? y > DEPTH * 0.5 : x > layout.width * 0.5;
  if (!isNear) return null;
  const at = layout.upright ? x : y;
  const found = layout.rows.findIndex(([center, size]) => Math.abs(at - center) <= size / 2 + GAP / 2);
  return found < 0 ? null : found;
}

function label(
  renderer: Renderer,
  theme: Theme,
  text: string,
  x: number,
  y: number,
  fill: string,
  anchor: "start" | "middle" | "end",
  width: number,
): void {
  renderer.text(x, y, fitText(text, SIZE, theme.font, width), { fill, size: SIZE, anchor });
}
