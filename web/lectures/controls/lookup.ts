// A look-up from hard to soft to mean: the scores of a query with all keys, divided by a temperature, and their softmax.

import { softmax } from "../arithmetic.ts";
import { drawBars } from "../bars.ts";
import type { Form } from "../form.ts";

interface Params {
  queries: string[];
  keys: string[];
  values: number[];
  scores: number[][]; // [query][key]
  temperature: number; // at the start
  unit: string; // what the values are
  duplicate?: { key: number; value: number }; // the reader may add this key a second time, with another value
}

/** Return the weights of scores at a temperature, and the sum of the values with these weights. */
export function lookUp(scores: readonly number[], values: readonly number[], temperature: number) {
  const weights = softmax(scores.map((score) => score / temperature));
  return { weights, value: weights.reduce((sum, weight, i) => sum + weight * values[i]!, 0) };
}

export function lookupControl(form: Form, params: Params): void {
  const { queries, keys, values, scores, temperature, unit, duplicate } = params;
  form.choice(
    "query",
    "Query",
    queries.map((query, i) => [String(i), query]),
    "0",
  );
  const exponent = { min: -2, max: 2, step: 0.1, value: Math.log10(temperature) };
  form.slider("exponent", "Temperature, from 0.01 (hard) to 100 (mean)", exponent, (x) => String(toTemperature(x)));
  if (duplicate)
    form.choice(
      "copies",
      `Key ${keys[duplicate.key]}`,
      [
        ["1", "once"],
        ["2", `twice, with the values ${values[duplicate.key]} and ${duplicate.value}`],
      ],
      "1",
    );
  form.run(() => {
    const row = scores[form.number("query")]!;
    const has = duplicate && form.string("copies") === "2";
    const all = has ? [...row, row[duplicate.key]!] : row;
    const returned = has ? [...values, duplicate.value] : values;
    const names = has ? [...keys, `${keys[duplicate.key]} (copy)`] : keys;
    const { weights, value } = lookUp(all, returned, 10 ** form.number("exponent"));
    drawBars(
      form.picture,
      names.map((name, i) => `${name} → ${returned[i]}`),
      weights,
    );
    form.show("value", `Soft look-up: weighted sum of the ${unit}`, value);
    form.show("hard", "Hard look-up: first best key", returned[all.indexOf(Math.max(...all))]!);
    form.show("mean", "Mean of all", returned.reduce((sum, one) => sum + one, 0) / returned.length);
    form.show("largest", "Largest weight", Math.max(...weights));
  });
}

function toTemperature(exponent: number): number {
  return Number((10 ** exponent).toPrecision(2));
}
