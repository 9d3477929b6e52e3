// One-hot vector times embedding matrix: the row of the token.

import { h } from "../../dom.ts";
import { format, type Form } from "../form.ts";

interface Params {
  tokens: string[];
  matrix: number[][]; // (K, D)
}

/** Return the product of a vector (K) and a matrix (K, D). */
export function multiply(vector: readonly number[], matrix: readonly number[][]): number[] {
  return matrix[0]!.map((_, j) => vector.reduce((sum, value, i) => sum + value * matrix[i]![j]!, 0));
}

export function oneHotControl(form: Form, { tokens, matrix }: Params): void {
  form.slider("token", "Token", { min: 0, max: tokens.length - 1, step: 1, value: 3 });
  form.run(() => {
    const token = form.number("token");
    const vector = multiply(
      tokens.map((_, i) => Number(i === token)),
      matrix,
    );
    const rows = tokens.map((name, i) =>
      h(
        "tr",
        {},
        h("td", { class: "number" }, String(Number(i === token))),
        h("th", { scope: "row" }, i === token ? `▸ ${name}` : name),
        ...matrix[i]!.map((value) => h("td", { class: "number" }, value.toFixed(4))),
      ),
    );
    const head = ["one-hot", "token", ...matrix[0]!.map((_, j) => `E ${j + 1}`)];
    form.picture.replaceChildren(
      h(
        "table",
        {},
        h("thead", {}, h("tr", {}, ...head.map((name) => h("th", { scope: "col" }, name)))),
        h("tbody", {}, ...rows),
      ),
    );
    const root = Math.sqrt(vector.length);
    vector.forEach((value, j) => form.show(`x_${j}`, `x ${j + 1}, times √D`, value * root, format(value * root)));
  });
}
