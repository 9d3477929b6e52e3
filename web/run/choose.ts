// The next token from logits: the best one, the best ones, or a sample.

import { applyFilters } from "../filters.ts";

export interface Sampling {
  temperature: number; // 0 is greedy
  top_p: number;
}

/** The best token; of equal ones that with the lowest id. Suppressed tokens are never chosen. */
export function chooseToken(logits: Float32Array, suppressed: number[], sampling?: Sampling): number {
  for (const id of suppressed) logits[id] = -Infinity;
  if (!sampling || sampling.temperature === 0) {
    let best = 0;
    for (let id = 1; id < logits.length; id++) if (logits[id] > logits[best]) best = id;
    if (!(logits[best] > -Infinity)) throw new Error("The model's logits are not numbers.");
    return best;
  }
  const { temperature, top_p } = sampling;
  const { stages } = applyFilters(logits, [], { temperature, top_p }, suppressed);
  const { probabilities } = stages.at(-1)!;
  let left = Math.random();
  const chosen = probabilities.findIndex((probability) => (left -= probability) < 0);
  return chosen >= 0 ? chosen : probabilities.indexOf(Math.max(...probabilities));
}

/** The best tokens with their log-probabilities, best first; probabilities count suppressed tokens as the model does. */
export function topTokens(logits: Float32Array, suppressed: number[], count: number): [number, number][] {
  const total = logSumExp(logits);
  for (const id of suppressed) logits[id] = -Infinity;
  const best: number[] = [];
  for (let id = 0; id < logits.length; id++) {
    if (best.length === count && logits[id] <= logits[best[count - 1]]) continue;
    let at = best.length;
    while (at > 0 && logits[id] > logits[best[at - 1]]) at--;
    best.splice(at, 0, id);
    if (best.length > count) best.pop();
  }
  return best.map((id) => [id, logits[id] - total]);
}

export function logSumExp(values: Float32Array): number {
  let highest = -Infinity;
  for (const value of values) if (value > highest) highest = value;
  let sum = 0;
  for (const value of values) sum += Math.exp(value - highest);
  return highest + Math.log(sum);
}
