// Scores of ten keys whose standard deviation is sqrt(d_k), their softmax, and the size of its gradient.

import { softmax } from "../arithmetic.ts";
import { drawBars } from "../bars.ts";
import type { Form } from "../form.ts";
import { norm } from "../matrix.ts";

interface Params {
  scores: number[]; // for d_k = 1
}

/** Return the derivative of each probability with respect to each score: diag(p) - p p^T. */
export const differentiate = (p: readonly number[]): number[][] =>
  p.map((a, i) => p.map((b, j) => (i === j ? a : 0) - a * b));

export function varianceControl(form: Form, { scores }: Params): void {
  form.slider("exponent", "d_k = 2 to the power of", { min: 0, max: 12, step: 1, value: 6 });
  form.choice(
    "scaled",
    "Scores are",
    [
      ["no", "q·k"],
      ["yes", "q·k / √d_k"],
    ],
    "no",
  );
  form.run(() => {
    const d = 2 ** form.number("exponent");
    const factor = form.string("scaled") === "yes" ? 1 : Math.sqrt(d);
    const weights = softmax(scores.map((score) => score * factor));
    drawBars(
      form.picture,
      scores.map((_, i) => `key ${i + 1}`),
      weights,
    );
    form.show("d_k", "d_k", d);
    form.show("largest", "Largest weight", Math.max(...weights));
    form.show("gradient", "Gradient of the softmax (Frobenius norm)", norm(differentiate(weights)));
  });
}
