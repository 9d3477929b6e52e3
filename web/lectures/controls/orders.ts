// An order database of eleven rows, whose last key a reader chooses: a query reads all rows, softly or hard.

import { fill, h } from "../../dom.ts";
import { softmax } from "../arithmetic.ts";
import { type Form, format } from "../form.ts";

interface Params {
  keys: string[]; // of the rows that do not change
  last: string[]; // keys to choose from for the last row
  items: string[];
  query: string;
}

export function ordersControl(form: Form, { keys, last, items, query }: Params): void {
  const choices = (names: string[]): [string, string][] => names.map((name) => [name, name]);
  form.choice("query", "Query", choices(keys), query);
  form.choice("last", "Key of the last row", choices(last), last[0]!);
  form.slider("scale", "Score of a matching key", { min: 0, max: 50, step: 1, value: 3 });
  form.run(() => {
    const names = [...keys, form.string("last")];
    const scores = names.map((name) => (name === form.string("query") ? form.number("scale") : 0));
    const weights = softmax(scores);
    const rows = names.map((name, i) =>
      h(
        "tr",
        {},
        h("td", {}, name),
        h("td", {}, items[i]!),
        h("td", { class: "number" }, String(i)),
        h("td", { class: "number" }, format(scores[i]!)),
        h(
          "td",
          {
            class: "number",
            style: `background: color-mix(in srgb, var(--hue) ${Math.round(60 * weights[i]!)}%, var(--page))`,
          },
          weights[i]!.toFixed(3),
        ),
      ),
    );
    const heads = ["key", "items", "value", "score", "weight"].map((name) => h("th", { scope: "col" }, name));
    fill(
      form.picture,
      h(
        "div",
        { class: "table", tabindex: 0, role: "group", "aria-label": "Order database" },
        h("table", {}, h("thead", {}, h("tr", {}, ...heads)), h("tbody", {}, ...rows)),
      ),
    );
    form.show("matches", "Keys that match", scores.filter((_, i) => names[i] === form.string("query")).length);
    form.show("weight", "Largest weight", Math.max(...weights));
    const value = weights.reduce((sum, weight, i) => sum + weight * i, 0);
    form.show("value", "Weighted sum of the values", value);
    form.show("nearest", "Nearest item", Math.round(value), items[Math.round(value)]);
  });
}
