// FLOPs of one Transformer layer by the number of tokens: N^2 D against N D^2.

import { drawBars } from "../bars.ts";
import type { Form } from "../form.ts";

interface Params {
  widths: number[];
  d_model: number;
  tokens: number; // at first
  most: number; // tokens
}

/** Return the FLOPs of a layer with a feed-forward width of 4 D; a multiplication and an addition count as two. */
export function countFlops(n: number, d: number): { projections: number; attention: number; feedforward: number } {
  return {
    projections: 2 * 4 * n * d * d, // Q, K, V and output
    attention: 2 * 2 * n * n * d, // scores, and the weighted sum of the values
    feedforward: 2 * 2 * n * d * 4 * d,
  };
}

export function costControl(form: Form, { widths, d_model, tokens, most }: Params): void {
  const options = widths.map((width): [string, string] => [String(width), `D = ${width}`]);
  form.slider("n", "N tokens", { min: most / 128, max: most, step: most / 128, value: tokens });
  form.choice("d", "Width", options, String(d_model));
  form.run(() => {
    const [n, d] = [form.number("n"), form.number("d")];
    const { projections, attention, feedforward } = countFlops(n, d);
    const sum = projections + attention + feedforward;
    const labels = ["Projections, N D²", "Attention, N² D", "Feed-forward, N D²"];
    drawBars(form.picture, labels, [projections / sum, attention / sum, feedforward / sum]);
    const show = (name: string, label: string, flops: number) =>
      form.show(name, label, flops, `${(flops / 1e9).toPrecision(3)} GFLOPs`);
    show("projections", "Projections", projections);
    show("attention", "Scores and weighted sum", attention);
    show("feedforward", "Feed-forward", feedforward);
    form.show("share", "Share of attention", attention / sum, `${((100 * attention) / sum).toFixed(1)} %`);
    form.show("ratio", "N / D", n / d);
  });
}
