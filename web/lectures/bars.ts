// A distribution as labeled bars.

import { fill, h } from "../dom.ts";
import { format } from "./form.ts";

/** Draw values, each as a bar with its label and number; `sizes` are the lengths of the bars, 0 to 1. */
export function drawBars(
  host: HTMLElement,
  labels: readonly string[],
  values: readonly number[],
  sizes: readonly number[] = values,
): void {
  const rows = labels.map((label, i) => {
    const [value, length] = [values[i]!, sizes[i]!];
    const size = Number.isFinite(length) ? Math.min(1, Math.max(0, length)) : 0;
    return h(
      "div",
      { class: "bar-row" },
      h("span", {}, label),
      h("span", { class: "bar-track" }, h("span", { class: "bar", style: `width: ${(100 * size).toFixed(1)}%` })),
      h("span", { class: "bar-value" }, format(value)),
    );
  });
  fill(host, h("div", { class: "bars" }, ...rows));
}
