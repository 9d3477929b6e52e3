// One row of attention: a query's scores with all keys, their softmax, and the sum of the values.

import { softmax } from "../arithmetic.ts";
import { drawBars } from "../bars.ts";
import type { Form } from "../form.ts";

interface Params {
  tokens: string[];
  scores: number[][]; // row = query, column = key
}

export function rowControl(form: Form, { tokens, scores }: Params): void {
  const options = tokens.map((token, i): [string, string] => [String(i), `${i + 1}: ${token}`]);
  form.choice("query", "Query i", options, "0");
  form.choice("by", "Softmax over", [["row", "all keys of one query"], ["column", "all queries of one key"]], "row"); // prettier-ignore
  form.slider("factor", "All scores times", { min: 0, max: 8, step: 0.1, value: 1 });
  form.run(() => {
    const i = form.number("query");
    const scaled = scores.map((row) => row.map((score) => score * form.number("factor")));
    const byKey = tokens.map((_, j) => softmax(scaled.map((row) => row[j]!))); // of each key, over the queries
    const weights = form.string("by") === "row" ? softmax(scaled[i]!) : byKey.map((column) => column[i]!);
    drawBars(form.picture, tokens.map((token, j) => `α${i + 1},${j + 1} ${token}`), weights); // prettier-ignore
    tokens.forEach((token, j) => form.show(`score_${j}`, `e${i + 1},${j + 1} ${token}`, scaled[i]![j]!));
    weights.forEach((weight, j) => form.show(`weight_${j}`, `α${i + 1},${j + 1}`, weight));
    form.show("sum", "Sum of the weights", weights.reduce((sum, weight) => sum + weight, 0)); // prettier-ignore
  });
}
