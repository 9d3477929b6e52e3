// A language model as a table: token after token from the start, until the end.

import { h } from "../../dom.ts";
import { drawBars } from "../bars.ts";
import type { Form } from "../form.ts";

interface Params {
  words: string[];
  probabilities: number[][]; // [last token][next token]
  start: number;
  end: number;
  most: number; // at most as many tokens
}

/** Return the likeliest next token; ties go to the first. */
export function likeliest(row: readonly number[]): number {
  return row.indexOf(Math.max(...row));
}

export function generateControl(form: Form, { words, probabilities, start, end, most }: Params): void {
  let tokens: number[] = [];
  const last = () => tokens.at(-1) ?? start;
  const isOpen = () => last() !== end && tokens.length < most;
  const add = (token: number) => {
    if (isOpen()) tokens.push(token);
  };
  form.button("next", "Add the likeliest token", () => add(likeliest(probabilities[last()]!)));
  words.forEach((word, i) => {
    if (i !== start) form.button(`add_${i}`, `Add ${word}`, () => add(i));
  });
  form.button("restart", "Start again", () => (tokens = []));
  form.run(() => {
    const path = [start, ...tokens];
    const p = tokens.reduce((product, token, i) => product * probabilities[path[i]!]![token]!, 1);
    const bars = h("div");
    if (isOpen()) drawBars(bars, words, probabilities[last()]!);
    const note = isOpen()
      ? `Next token after ${words[last()]}:`
      : last() === end
        ? "Finished."
        : "The limit is reached.";
    form.picture.replaceChildren(
      h("p", {}, h("strong", {}, path.map((token) => words[token]).join(" "))),
      h("p", { class: "small", role: "status" }, note),
      bars,
    );
    form.show("tokens", "Tokens", tokens.length);
    form.show("logprob", "log p", Math.log(p));
    form.show("p", "p", p);
    form.show("finished", "Finished", Number(last() === end), last() === end ? "yes" : "no");
  });
}
