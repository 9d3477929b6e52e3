// One token through LN(x + Sublayer(x)), with a switch for each part, and the gradient through a stack of such blocks.

import { h } from "../../dom.ts";
import { drawBars } from "../bars.ts";
import { format, type Form } from "../form.ts";
import { share } from "./series.ts";

interface Params {
  x: number[];
  sublayer: number[]; // the first block's self-attention of x
  variants: string[]; // "residual norm", each with or without: 11, 10, 01, 00
  names: string[];
  gradients: number[][]; // [variant][depth - 1]
  similarities: number[][];
}

/** Return (x - mean) / standard deviation, as a new layer norm does. */
export function layerNorm(x: readonly number[]): number[] {
  const { mean, variance } = moments(x);
  return x.map((value) => (value - mean) / Math.sqrt(variance + 1e-5));
}

function moments(x: readonly number[]) {
  const mean = x.reduce((sum, value) => sum + value, 0) / x.length;
  return { mean, variance: x.reduce((sum, value) => sum + (value - mean) ** 2, 0) / x.length };
}

export function blockControl(form: Form, params: Params): void {
  const { x, sublayer, variants, names, gradients, similarities } = params;
  form.choice(
    "variant",
    "The block",
    variants.map((variant, i) => [variant, names[i]!]),
    variants[0]!,
  );
  form.slider("depth", "Layers", { min: 1, max: gradients[0]!.length, step: 1, value: 6 });
  form.run(() => {
    const chosen = variants.indexOf(form.string("variant"));
    const [hasResidual, hasNorm] = [...variants[chosen]!].map((digit) => digit === "1");
    const sum = sublayer.map((value, i) => (hasResidual ? x[i]! + value : value));
    const output = hasNorm ? layerNorm(sum) : sum;
    const depth = form.number("depth") - 1;
    const here = gradients.map((curve) => curve[depth]!);
    const bars = h("div");
    const sizes = here.map((value) => share(value, gradients.flat(), true));
    drawBars(
      bars,
      names.map((name, i) => (i === chosen ? `▸ ${name}` : name)),
      here,
      sizes,
    );
    const rows: [string, readonly number[]][] = [
      ["x", x],
      ["Sublayer(x)", sublayer],
      ...(hasResidual ? ([["x + Sublayer(x)", sum]] as [string, number[]][]) : []),
      ...(hasNorm ? ([["after the norm", output]] as [string, number[]][]) : []),
    ];
    form.picture.replaceChildren(
      drawRows(rows),
      h("p", { class: "small" }, `Gradient at the input of ${depth + 1} layers (bars: logarithms)`),
      bars,
    );
    const { mean, variance } = moments(output);
    form.show("mean", "Output: mean", mean, format(Number(mean.toFixed(4))));
    form.show("deviation", "Output: standard deviation", Math.sqrt(variance));
    form.show("gradient", "Gradient at the input", here[chosen]!);
    form.show("similarity", "Mean cosine of two tokens' outputs", similarities[chosen]![depth]!);
  });
}

function drawRows(rows: readonly [string, readonly number[]][]): HTMLElement {
  const cells = (values: readonly number[]) =>
    values.slice(0, 6).map((value) => h("td", { class: "number" }, format(Number(value.toFixed(2)))));
  return h(
    "div",
    { class: "table", tabindex: 0, role: "group", "aria-label": "One token's numbers" },
    h(
      "table",
      {},
      h("caption", {}, "The first six numbers of one token in the first block"),
      h("tbody", {}, ...rows.map(([name, values]) => h("tr", {}, h("th", { scope: "row" }, name), ...cells(values)))),
    ),
  );
}
