// Five score functions of one query and three keys in two dimensions.

import { softmax } from "../arithmetic.ts";
import { drawBars } from "../bars.ts";
import type { Form } from "../form.ts";

type Vector = readonly number[];
type Matrix = readonly Vector[];

interface Params {
  keys: Matrix;
  general: Matrix; // W of q.W k
  query: Matrix; // W1; with the next beside it, it is the W of concat
  key: Matrix; // W2
  vector: Vector; // v
}

const dot = (a: Vector, b: Vector): number => a.reduce((sum, value, i) => sum + value * b[i]!, 0);
const multiply = (matrix: Matrix, vector: Vector): number[] => matrix.map((row) => dot(row, vector));

/** Return the score of a query and a key. */
export function score(kind: string, q: Vector, k: Vector, weights: Params): number {
  if (kind === "dot") return dot(q, k);
  if (kind === "scaled_dot") return dot(q, k) / Math.sqrt(k.length);
  if (kind === "general") return dot(q, multiply(weights.general, k));
  // concat, v.tanh(W [q; k]), is additive with W1 and W2 as the halves of W
  const [a, b] = [multiply(weights.query, q), multiply(weights.key, k)];
  const hidden = a.map((value, i) => Math.tanh(value + b[i]!));
  return dot(weights.vector, hidden);
}

export function fiveScoresControl(form: Form, params: Params): void {
  form.choice(
    "kind",
    "Score",
    [
      ["dot", "dot: q·k"],
      ["scaled_dot", "scaled dot: q·k / √d"],
      ["general", "general: q·W k"],
      ["concat", "concat: v·tanh(W [q; k])"],
      ["additive", "additive: v·tanh(W₁ q + W₂ k)"],
    ],
    "dot",
  );
  form.slider("angle", "Angle of the query in degrees", { min: 0, max: 360, step: 5, value: 30 });
  form.slider("size", "Length of the query", { min: 0, max: 10, step: 0.5, value: 1 });
  form.run(() => {
    const [angle, size] = [(form.number("angle") * Math.PI) / 180, form.number("size")];
    const q = [size * Math.cos(angle), size * Math.sin(angle)];
    const scores = params.keys.map((k) => score(form.string("kind"), q, k, params));
    const weights = softmax(scores);
    drawBars(
      form.picture,
      params.keys.map((k) => `key (${k.join(", ")})`),
      weights,
    );
    scores.forEach((value, i) => form.show(`score_${i}`, `Score of key ${i + 1}`, value));
    weights.forEach((value, i) => form.show(`weight_${i}`, `Weight of key ${i + 1}`, value));
  });
}
