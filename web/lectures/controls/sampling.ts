// A distribution over tokens under temperature, top-k and top-p, with the filters of the pages of `regard look`.

import { applyFilters } from "../../filters.ts";
import { entropy } from "../arithmetic.ts";
import { drawBars } from "../bars.ts";
import type { Form } from "../form.ts";

interface Params {
  labels: string[];
  logprobs: number[];
}

export function samplingControl(form: Form, { labels, logprobs }: Params): void {
  form.slider("temperature", "Temperature T", { min: 0, max: 10, step: 0.05, value: 1 });
  form.slider("top_k", "Top-k: keep the k likeliest", { min: 1, max: labels.length, step: 1, value: labels.length });
  form.slider("top_p", "Top-p: keep the likeliest until their sum is p", { min: 0.05, max: 1, step: 0.05, value: 1 });
  form.run(() => {
    const settings = Object.fromEntries(["temperature", "top_k", "top_p"].map((name) => [name, form.number(name)]));
    const probabilities = [...applyFilters(logprobs, [], settings).stages.at(-1)!.probabilities];
    drawBars(form.picture, labels, probabilities);
    probabilities.forEach((value, i) => form.show(`p_${i}`, labels[i]!, value));
    form.show("kept", "Tokens that can be drawn", probabilities.filter((value) => value > 0).length);
    form.show("entropy", "Entropy in bits", entropy(probabilities));
  });
}
