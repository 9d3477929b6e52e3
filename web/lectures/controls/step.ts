// One step of gradient descent: a table of logits, one row per token, predicts the next token of a text.

import { softmax } from "../arithmetic.ts";
import { drawBars } from "../bars.ts";
import type { Form } from "../form.ts";

interface Params {
  words: string[];
  inputs: number[];
  labels: number[];
  logits: number[][]; // row: the token that is read; column: the next one
}

/** Return -log p of each label. */
export function computeLosses(logits: number[][], inputs: number[], labels: number[]): number[] {
  return inputs.map((token, t) => -Math.log(softmax(logits[token]!)[labels[t]!]!));
}

/** Return the logits after one step: the gradient of a position's loss is p - 1 at the label and p elsewhere. */
export function descend(logits: number[][], inputs: number[], labels: number[], rate: number): number[][] {
  const moved = logits.map((row) => [...row]);
  inputs.forEach((token, t) =>
    softmax(logits[token]!).forEach((p, i) => (moved[token]![i]! -= rate * (p - Number(i === labels[t])))),
  );
  return moved;
}

export function stepControl(form: Form, { words, inputs, labels, logits }: Params): void {
  form.slider("rate", "Learning rate", { min: 0, max: 20, step: 0.25, value: 1 });
  form.run(() => {
    const moved = descend(logits, inputs, labels, form.number("rate"));
    const [before, after] = [logits, moved].map((table) => computeLosses(table, inputs, labels));
    const names = inputs.map((token, t) => `${words[token]} → ${words[labels[t]!]}`);
    drawBars(
      form.picture,
      names,
      after!.map((loss) => Math.exp(-loss)),
    );
    const sum = (losses: number[]) => losses.reduce((total, loss) => total + loss, 0);
    form.show("before", "Loss before the step", sum(before!));
    form.show("after", "Loss after the step", sum(after!));
    const [token, label] = [inputs[0]!, labels[0]!];
    form.show("weight", `Weight of ${names[0]}, before: ${logits[token]![label]!.toFixed(3)}`, moved[token]![label]!);
  });
}
