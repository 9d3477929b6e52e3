// Finished hypotheses, ranked by log p divided by a power of their length.

import { fill, h } from "../../dom.ts";
import { format, type Form } from "../form.ts";

interface Params {
  hypotheses: { text: string; length: number; logprob: number }[];
  alpha: number;
}

/** Return what log p is divided by: |y|^alpha, or GNMT's ((5 + |y|) / 6)^alpha. */
export const divisor = (kind: string, length: number, alpha: number): number =>
  (kind === "gnmt" ? (5 + length) / 6 : length) ** alpha;

export function lengthPenaltyControl(form: Form, { hypotheses, alpha }: Params): void {
  form.slider("alpha", "α", { min: 0, max: 3, step: 0.05, value: alpha });
  form.choice(
    "kind",
    "Divide by",
    [
      ["power", "|y|^α"],
      ["gnmt", "((5 + |y|) / 6)^α"],
    ],
    "power",
  );
  form.run(() => {
    const scores = hypotheses.map(
      ({ length, logprob }) => logprob / divisor(form.string("kind"), length, form.number("alpha")),
    );
    const order = hypotheses.map((_, i) => i).sort((a, b) => scores[b]! - scores[a]!);
    const cells = (i: number) => {
      const { text, length, logprob } = hypotheses[i]!;
      return [text, String(length), format(logprob), format(scores[i]!)];
    };
    fill(
      form.picture,
      h(
        "div",
        { class: "table", tabindex: 0, role: "group", "aria-label": "Finished hypotheses, best first" },
        h(
          "table",
          {},
          h(
            "thead",
            {},
            h("tr", {}, ...["hypothesis", "|y|", "log p", "score"].map((name) => h("th", { scope: "col" }, name))),
          ),
          h(
            "tbody",
            {},
            ...order.map((i) =>
              h("tr", {}, ...cells(i).map((text, j) => h("td", { class: j ? "number" : null }, text))),
            ),
          ),
        ),
      ),
    );
    form.show("best", "Best hypothesis", order[0]!, hypotheses[order[0]!]!.text);
    form.show("score", "Its score", scores[order[0]!]!);
  });
}
