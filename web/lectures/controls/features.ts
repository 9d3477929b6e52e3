// A query and keys of which some features matter and the others are noise, with and without learned projections.

import { softmax } from "../arithmetic.ts";
import { drawBars } from "../bars.ts";
import type { Form } from "../form.ts";
import { multiply, transpose } from "../matrix.ts";

interface Params {
  query: number[];
  keys: number[][];
  useful: number; // the first features say which key is right
}

export function featuresControl(form: Form, { query, keys, useful }: Params): void {
  form.slider("size", "Size of the other features", { min: 0, max: 4, step: 0.1, value: 1 });
  form.choice(
    "projection",
    "Scores",
    [
      ["none", "x·x, without parameters"],
      ["first", "with W that keeps the useful features"],
    ],
    "none",
  );
  form.run(() => {
    const factor = form.string("projection") === "first" ? 0 : form.number("size");
    const weigh = (row: number[]) => row.map((value, i) => (i < useful ? value : factor * value));
    const weights = softmax(multiply([weigh(query)], transpose(keys.map(weigh)))[0]!);
    drawBars(
      form.picture,
      keys.map((_, i) => (i ? `key ${i + 1}` : "the right key")),
      weights,
    );
    form.show("right", "Weight of the right key", weights[0]!);
  });
}
