// Scores, divided by the square root of a slider's d_k, and their softmax.

import { entropy, softmax } from "../arithmetic.ts";
import { drawBars } from "../bars.ts";
import type { Form } from "../form.ts";

interface Params {
  labels: string[];
  scores: number[];
  d_k: number;
}

export function softmaxControl(form: Form, { labels, scores, d_k }: Params): void {
  labels.forEach((label, i) => {
    const most = Math.max(2 * Math.abs(scores[i]!), 10);
    form.slider(`score_${i}`, `Score of ${label}`, { min: -most, max: most, step: 1, value: scores[i]! });
  });
  form.slider("d_k", "d_k: scores are divided by √d_k", { min: 1, max: 256, step: 1, value: d_k });
  form.run(() => {
    const scale = 1 / Math.sqrt(form.number("d_k"));
    const weights = softmax(labels.map((_, i) => form.number(`score_${i}`) * scale));
    drawBars(form.picture, labels, weights);
    weights.forEach((weight, i) => form.show(`weight_${i}`, `Weight of ${labels[i]}`, weight));
    form.show("entropy", "Entropy in bits (0: hard choice)", entropy(weights));
  });
}
