// Four ways to encode positions, drawn as a heat map, and the four requirements as lights.

import { h } from "../../dom.ts";
import type { Form } from "../form.ts";

export type Kind = "index" | "normalized" | "bits" | "sinusoidal";
const NAMES: [Kind, string][] = [
  ["sinusoidal", "sines and cosines"],
  ["index", "the index"],
  ["normalized", "index / (length - 1)"],
  ["bits", "bits of the index"],
];
const APART = 0.02; // closer vectors count as one
const EQUAL = 1e-4; // steps that differ by less are equal

/** Return the vectors of a sentence's positions, [position][dimension]; index and index / length need one dimension. */
export function encode(kind: Kind, width: number, base: number, length: number): number[][] {
  return Array.from({ length }, (_, p) => {
    if (kind === "index") return [p];
    if (kind === "normalized") return [p / (length - 1)];
    if (kind === "bits") return Array.from({ length: width }, (_, i) => Math.floor(p / 2 ** i) % 2);
    return Array.from({ length: width }, (_, i) => {
      const angle = p / base ** ((i - (i % 2)) / width);
      return i % 2 ? Math.cos(angle) : Math.sin(angle);
    });
  });
}

function distance(a: readonly number[], b: readonly number[]): number {
  return Math.sqrt(a.reduce((sum, x, i) => sum + (x - b[i]!) ** 2, 0));
}

/** Return the smallest distance of two positions. */
export function closest(rows: readonly number[][]): number {
  let least = Infinity;
  rows.forEach((row, i) => {
    for (let j = 0; j < i; j++) least = Math.min(least, distance(row, rows[j]!));
  });
  return least;
}

export function positionsControl(form: Form): void {
  form.choice("kind", "Encoding", NAMES, "sinusoidal");
  form.slider("d", "d: dimensions", { min: 2, max: 64, step: 2, value: 32 });
  form.slider("exponent", "base: 10 to this power", { min: 0, max: 6, step: 0.5, value: 4 });
  form.slider("length", "Length of the sentence", { min: 4, max: 128, step: 1, value: 64 });
  form.run(() => {
    const length = form.number("length");
    const encodeTo = (n: number) =>
      encode(form.string("kind") as Kind, form.number("d"), 10 ** form.number("exponent"), n);
    const [rows, twice] = [encodeTo(length), encodeTo(2 * length)];
    const steps = [rows, twice].flatMap((all) => all.slice(1).map((row, p) => distance(row, all[p]!)));
    drawMap(form.picture, rows);
    const [unique, longer] = [closest(rows), closest(twice)];
    const spread = Math.max(...steps) - Math.min(...steps);
    const largest = Math.max(...rows.flat().map(Math.abs));
    const requirements: [string, string, string, number, boolean][] = [
      ["unique", "Unique?", "Smallest distance of two positions", unique, unique > APART],
      ["steps", "Consistent?", "Spread of the step to the next position", spread, spread < EQUAL],
      ["longer", "Longer?", "Smallest distance at twice the length", longer, longer > APART],
      ["largest", "Bounded?", "Largest element", largest, largest <= 1],
    ];
    for (const [name, label, , , isMet] of requirements)
      form.show(`${name}_light`, label, Number(isMet), isMet ? "✓ met" : "✗ not met");
    for (const [name, , label, value] of requirements) form.show(name, label, value);
  });
}

function drawMap(host: HTMLElement, rows: readonly number[][]): void {
  const [columns, height] = [rows.length, rows[0]!.length];
  const label = `Heat map: ${columns} positions from left to right, ${height} dimensions from top to bottom`;
  const canvas = h("canvas", { width: columns, height, class: "map", role: "img", "aria-label": label });
  const most = Math.max(...rows.flat().map(Math.abs));
  const context = canvas.getContext("2d")!;
  rows.forEach((row, p) =>
    row.forEach((value, i) => {
      context.fillStyle = `rgb(${value > 0 ? "33 113 181" : "142 42 155"} / ${Math.abs(value) / most})`;
      context.fillRect(p, i, 1, 1);
    }),
  );
  host.replaceChildren(canvas, h("p", { class: "small" }, `${label}. Blue: positive, purple: negative.`));
}
