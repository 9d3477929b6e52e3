// Values of many tokens combined as a sum of weights and values, or as a product.

import { drawBars } from "../bars.ts";
import type { Form } from "../form.ts";

interface Params {
  tokens: number;
  value: number;
  other: number;
}

/** Return n values that are equal, except the first. */
export const makeValues = (n: number, value: number, first: number): number[] =>
  Array.from({ length: n }, (_, i) => (i === 0 ? first : value));

export function combineControl(form: Form, { tokens, value, other }: Params): void {
  form.slider("tokens", "Tokens", { min: 1, max: 400, step: 1, value: tokens });
  form.slider("first", "Value of the first token", { min: -2, max: 2, step: 0.1, value: other });
  form.slider("value", "Value of every other token", { min: -2, max: 2, step: 0.1, value });
  form.run(() => {
    const n = form.number("tokens");
    const values = makeValues(n, form.number("value"), form.number("first"));
    const rest = values.slice(1).reduce((all, one) => all * one, 1);
    const sum = values.reduce((all, one) => all + one / n, 0);
    const product = rest * values[0]!;
    drawBars(form.picture, ["|sum|", "|product|"], [Math.abs(sum), Math.abs(product)]);
    form.show("sum", "Sum, each weight 1/n", sum);
    form.show("product", "Product", product);
    form.show("sum_slope", "d sum / d first", 1 / n);
    form.show("product_slope", "d product / d first", rest);
  });
}
