// A table of scores under a mask that is added, or multiplied as a slide draws it. Single cells can be hidden or shown.

import { softmax } from "../arithmetic.ts";
import { fill, h } from "../../dom.ts";
import type { Form } from "../form.ts";

type Mode = "none" | "add" | "multiply";

interface Params {
  scores: number[][];
  mode: Mode;
  view: "scores" | "weights";
  row: number;
  column: number;
}

/** Return the scores after the mask: hidden ones plus or times minus infinity. */
export function maskScores(scores: number[][], hidden: boolean[][], mode: Mode): number[][] {
  const change = (score: number) => (mode === "add" ? -Infinity : score * -Infinity);
  return scores.map((row, i) => row.map((score, j) => (mode !== "none" && hidden[i]![j] ? change(score) : score)));
}

export function maskControl(form: Form, { scores, mode, view, row, column }: Params): void {
  const hidden = scores.map((values, i) => values.map((_, j) => j > i));
  const last = scores.length - 1;
  const toggle = (i: number, j: number) => (hidden[i]![j] = !hidden[i]![j]);
  form.choice(
    "mode",
    "The mask is",
    [
      ["none", "absent"],
      ["add", "added: 0 or -∞"],
      ["multiply", "multiplied: 1 or -∞ (the slide)"],
    ],
    mode,
  );
  form.choice(
    "view",
    "Table",
    [
      ["scores", "scores after the mask"],
      ["weights", "weights: softmax of each row"],
    ],
    view,
  );
  form.slider("row", "Row: query", { min: 0, max: last, step: 1, value: row });
  form.slider("column", "Column: key", { min: 0, max: last, step: 1, value: column });
  form.button("toggle", "Hide or show this cell", () => toggle(form.number("row"), form.number("column")));
  form.run(function update() {
    const masked = maskScores(scores, hidden, form.string("mode") as Mode);
    const weights = masked.map(softmax);
    const [i, j] = [form.number("row"), form.number("column")];
    const isShowingWeights = form.string("view") === "weights";
    const click = (at: number, to: number) => {
      toggle(at, to);
      update();
    };
    const table = drawTable(isShowingWeights ? weights : masked, isShowingWeights ? 1 : 3, [i, j], click);
    fill(form.picture, table);
    const plain = softmax(scores[i]!);
    form.show("infinite", "Scores of +∞", masked.flat().filter((score) => score === Infinity).length);
    form.show("nan_rows", "Rows of NaN", weights.filter((values) => values.some(Number.isNaN)).length);
    form.show("weight", `Weight of row ${i}, column ${j}`, weights[i]![j]!);
    const isVisible = (_: number, at: number) => form.string("mode") === "none" || !hidden[i]![at];
    const kept = plain.filter(isVisible).reduce((total, weight) => total + weight, 0);
    form.show("kept", `Sum of row ${i} if weights were cut after the softmax`, kept);
  });
}

/** Draw numbers, colored by their share of `most`; a click reports the cell. */
function drawTable(
  rows: number[][],
  most: number,
  [row, column]: [number, number],
  click: (i: number, j: number) => void,
): HTMLElement {
  const cell = (value: number, i: number, j: number) => {
    const hue = Number.isNaN(value) || value === Infinity ? "accent" : value < 0 ? "minus" : "hue";
    const share = value === -Infinity ? 0 : Number.isFinite(value) ? Math.min(60, (60 * Math.abs(value)) / most) : 45;
    const text = Number.isNaN(value) ? "NaN" : Number.isFinite(value) ? value.toFixed(2) : value < 0 ? "-∞" : "+∞";
    const style = `background: color-mix(in srgb, var(--${hue}) ${share.toFixed(0)}%, var(--page))`;
    return h("td", { style, class: i === row && j === column && "chosen", onclick: () => click(i, j) }, text);
  };
  const numbers = rows.map((_, j) => h("th", { scope: "col" }, String(j)));
  return h(
    "div",
    { class: "table cells", tabindex: 0, role: "group", "aria-label": "Scores or weights" },
    h(
      "table",
      {},
      h("thead", {}, h("tr", {}, h("td"), ...numbers)),
      h(
        "tbody",
        {},
        ...rows.map((values, i) =>
          h("tr", {}, h("th", { scope: "row" }, String(i)), ...values.map((v, j) => cell(v, i, j))),
        ),
      ),
    ),
  );
}
