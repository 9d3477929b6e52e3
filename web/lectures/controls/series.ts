// Measured curves, read at one point: a slider moves along the points, bars compare the curves.

import { drawBars } from "../bars.ts";
import { h } from "../../dom.ts";
import type { Form } from "../form.ts";

interface Params {
  label: string; // of the points
  points: number[];
  names: string[];
  values: number[][]; // [curve][point]
  start: number; // index of the first point shown
  is_log?: boolean; // bars compare logarithms
}

/** The length of a bar, 0 to 1: the share of the largest value, or of the range of logarithms. */
export function share(value: number, all: readonly number[], isLog: boolean): number {
  if (!isLog) return value / Math.max(...all);
  const logs = all.map(Math.log10);
  const least = Math.min(...logs) - 0.5;
  return (Math.log10(value) - least) / (Math.max(...logs) - least);
}

export function seriesControl(form: Form, { label, points, names, values, start, is_log }: Params): void {
  const last = points.length - 1;
  form.slider("point", `${label}: ${points[0]} to ${points[last]}`, { min: 0, max: last, step: 1, value: start }, (i) =>
    String(points[i]),
  );
  const all = values.flat();
  form.run(() => {
    const i = form.number("point");
    const here = values.map((curve) => curve[i]!);
    const bars = h("div");
    drawBars(
      bars,
      names,
      here,
      here.map((value) => share(value, all, Boolean(is_log))),
    );
    form.picture.replaceChildren(
      h("p", { class: "small" }, `${label}: ${points[i]}${is_log ? " (bars: logarithms)" : ""}`),
      bars,
    );
    here.forEach((value, j) => form.show(`value_${j}`, names[j]!, value));
  });
}
