// Self-attention over the words of a sentence in any order: do the outputs travel along?

import { fill, h } from "../../dom.ts";
import type { Form } from "../form.ts";
import { drawMatrix, type Matrix, multiply, scale, softmaxRows, transpose } from "../matrix.ts";

interface Params {
  words: string[];
  vectors: number[][]; // of each word
  positions: number[][]; // of each position
  orders: string[]; // of the words, as digits
}

/** Return the outputs of the words in this order, each after its word. */
export function attendInOrder(
  { vectors, positions }: Params,
  order: readonly number[],
  usesPositions: boolean,
): Matrix {
  const x = order.map((word, n) => vectors[word]!.map((value, i) => value + (usesPositions ? positions[n]![i]! : 0)));
  return multiply(softmaxRows(scale(multiply(x, transpose(x)), 1 / Math.sqrt(x[0]!.length))), x);
}

export function permuteControl(form: Form, params: Params): void {
  const { words, orders } = params;
  const read = (order: string) => [...order].map(Number);
  const write = (order: string): string =>
    read(order)
      .map((word) => words[word])
      .join(" ");
  form.choice(
    "order",
    "Order",
    orders.map((order) => [order, write(order)]),
    orders.at(-1)!,
  );
  form.choice(
    "positions",
    "Positions",
    [
      ["no", "none"],
      ["yes", "sinusoidal, added"],
    ],
    "no",
  );
  form.run(() => {
    const isOn = form.string("positions") === "yes";
    const order = read(form.string("order"));
    const before = attendInOrder(
      params,
      words.map((_, i) => i),
      isOn,
    );
    const after = attendInOrder(params, order, isOn);
    const names = order.map((word) => words[word]!);
    const columns = after[0]!.map((_, i) => String(i + 1));
    fill(
      form.picture,
      h(
        "div",
        { style: "display: flex; flex-wrap: wrap; gap: 8px 32px" },
        drawMatrix(`Outputs of “${words.join(" ")}”`, before, words, columns),
        drawMatrix(`Outputs of “${names.join(" ")}”`, after, names, columns),
      ),
    );
    const moved = order.flatMap((word, n) => after[n]!.map((value, i) => Math.abs(value - before[word]![i]!)));
    form.show("difference", "Largest difference between the outputs of the same word", Math.max(...moved));
  });
}
