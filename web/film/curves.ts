// Curves of one or several runs: pure functions of the document, the chosen metric and a renderer.

import type { Renderer } from "../renderer.ts";
import type { Theme } from "../theme.ts";
import type { Curve, FilmDocument } from "./document.ts";

export interface Line {
  curve: Curve;
  /** A run has the same dashes in every line. */
  dash: string;
  /** Validations are few: they have dots, and the line of the training stands behind them. */
  dots: boolean;
}

export interface Axes {
  width: number;
  height: number;
  left: number;
  right: number;
  top: number;
  bottom: number;
  x(step: number): number;
  y(value: number): number;
  xTicks: number[];
  yTicks: number[];
}

export const DASHES = ["", "7 4", "2 3", "9 3 2 3"];
const TITLES: Record<string, string> = {
  loss: "Loss",
  learning_rate: "Learning rate",
  bleu: "BLEU",
  chrf: "chrF",
  f1: "F1",
  bits_per_byte: "Bits per byte",
};

/** A metric as people write it. */
export function metricTitle(name: string): string {
  return TITLES[name] ?? name.charAt(0).toUpperCase() + name.slice(1).replaceAll("_", " ");
}

/** The metrics that some run has, the loss first. */
export function listMetrics(doc: FilmDocument): string[] {
  const names = doc.runs.flatMap((run) => [...Object.keys(run.validation), ...Object.keys(run.training)]);
  return [...new Set(["loss", ...names])];
}

/** The lines of a metric: of training and of validation. */
export function listLines(doc: FilmDocument, metric: string): Line[] {
  return doc.runs.flatMap((run, i) => {
    const dash = DASHES[i % DASHES.length];
    const lines = [
      { curve: run.training[metric], dash, dots: false },
      { curve: run.validation[metric], dash, dots: true },
    ];
    return lines.filter(({ curve }) => curve?.steps.length > 0);
  });
}

/** About `count` round numbers from `low` to `high`. */
export function roundTicks(low: number, high: number, count: number): number[] {
  const raw = (high - low) / Math.max(count, 1);
  if (!(raw > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= raw * 0.999)!;
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) ticks.push(i * step);
  return ticks;
}

/** Choose the axes. On a logarithmic axis, step 0 has a place of its own before step 1. */
export function layoutCurves(lines: Line[], lastStep: number, isLog: boolean, width: number, height: number): Axes {
  const values = lines.flatMap(({ curve }) => curve.values.filter((value): value is number => value !== null));
  let [low, high] = [Math.min(...values), Math.max(...values)];
  if (values.length === 0) [low, high] = [0, 1];
  if (low === high) [low, high] = [low - Math.abs(low || 1) * 0.1, high + Math.abs(high || 1) * 0.1];
  const [left, right, top, bottom] = [56, 14, 10, 26];
  const end = Math.max(lastStep, 1);
  const share = isLog ? (step: number) => Math.log2(step + 1) / Math.log2(end + 1) : (step: number) => step / end;
  const powers = [0, ...Array.from({ length: 9 }, (_, i) => 10 ** i)].filter((step) => step <= end);
  const inner = { x: width - left - right, y: height - top - bottom };
  return {
    width,
    height,
    left,
    right,
    top,
    bottom,
    x: (step) => left + share(step) * inner.x,
    y: (value) => top + ((high - value) / (high - low)) * inner.y,
    xTicks: isLog ? powers : roundTicks(0, end, Math.max(2, Math.floor(inner.x / 110))),
    yTicks: roundTicks(low, high, 4),
  };
}

/** Draw the curves; frames of the film are ticks on the axis. */
export function drawCurves(renderer: Renderer, theme: Theme, lines: Line[], axes: Axes, frames: number[]): void {
  const base = axes.height - axes.bottom;
  for (const tick of axes.yTicks) {
    const y = axes.y(tick);
    renderer.path(`M${axes.left} ${y}H${axes.width - axes.right}`, { stroke: theme.rule });
    renderer.text(axes.left - 8, y, showTick(tick), { fill: theme.muted, size: 12, anchor: "end" });
  }
  for (const tick of axes.xTicks) {
    const anchor = axes.x(tick) > axes.width - 40 ? "end" : "middle";
    const x = Math.min(axes.x(tick), axes.width - 2);
    renderer.text(x, base + 17, tick.toLocaleString("en"), { fill: theme.muted, size: 12, anchor });
  }
  renderer.path(`M${axes.left} ${base}H${axes.width - axes.right}`, { stroke: theme.muted });
  for (const step of frames) renderer.path(`M${axes.x(step)} ${base}v5`, { stroke: theme.muted });
  const hasDots = lines.some((line) => line.dots);
  for (const { curve, dash, dots } of lines) {
    const places = curve.steps.flatMap((step, i) => {
      const value = curve.values[i];
      return value === null ? [] : [`${axes.x(step).toFixed(1)} ${axes.y(value).toFixed(1)}`];
    });
    if (places.length === 0) continue;
    const isBehind = hasDots && !dots;
    renderer.path(`M${places.join("L")}`, {
      stroke: theme.hue,
      width: isBehind ? 1.2 : 2.2,
      opacity: isBehind ? 0.45 : 1,
      dash,
    });
    if (dots && places.length <= 80)
      for (const place of places) {
        const [x, y] = place.split(" ").map(Number);
        renderer.rect(x - 3, y - 3, 6, 6, { fill: theme.hue, radius: 3 });
      }
  }
}

/** Mark a step. */
export function drawStep(renderer: Renderer, theme: Theme, axes: Axes, step: number): void {
  const x = axes.x(step);
  renderer.path(`M${x} ${axes.top}V${axes.height - axes.bottom + 6}`, { stroke: theme.accent, width: 2 });
}

/** The value of a curve at a step: of the last point at or before it. */
export function valueAt(curve: Curve | undefined, step: number): number | null {
  let value: number | null = null;
  curve?.steps.forEach((at, i) => {
    if (at <= step) value = curve.values[i];
  });
  return value;
}

export function showTick(value: number): string {
  if (value !== 0 && (Math.abs(value) < 0.001 || Math.abs(value) >= 1e5)) return value.toExponential(0);
  return String(Number(value.toPrecision(4)));
}
