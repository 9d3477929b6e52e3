// BPE learning step by step, with the pairs that tie: the most frequent pair is merged, as in regard.text.learn.

import { fill, h } from "../../dom.ts";
import type { Form } from "../form.ts";

const MARK = "▁"; // the end of a word

interface Params {
  text: string;
  steps: number; // at first
  most: number; // largest number of steps
}

interface Pair {
  left: string;
  right: string;
  count: number;
}

export interface Learned {
  words: { symbols: string[]; count: number }[];
  merges: Pair[];
  /** The most frequent pairs before each merge, in the order in which Regard prefers them. */
  ties: Pair[][];
}

/** Learn up to `steps` merges; of tied pairs, take number `choice` (0 is Regard's choice). */
export function learnMerges(text: string, steps: number, choice = 0): Learned {
  const counts = new Map<string, number>();
  const marked = text && text.replaceAll(" ", MARK) + MARK;
  for (const word of marked.match(/[^▁]*▁/g) ?? []) counts.set(word, (counts.get(word) ?? 0) + 1);
  const words = [...counts].map(([word, count]) => ({ symbols: [...word], count }));
  const characters = [...new Set(marked)].sort((a, b) => a.codePointAt(0)! - b.codePointAt(0)!);
  const ids = new Map(characters.map((character, i) => [character, i]));
  const merges: Pair[] = [];
  const ties: Pair[][] = [];
  while (merges.length < steps) {
    const pairs = new Map<string, Pair>();
    for (const { symbols, count } of words)
      for (let i = 0; i + 1 < symbols.length; i++) {
        const [left, right] = [symbols[i]!, symbols[i + 1]!];
        const pair = pairs.get(`${left} ${right}`) ?? { left, right, count: 0 };
        pairs.set(`${left} ${right}`, { ...pair, count: pair.count + count });
      }
    const most = Math.max(...[...pairs.values()].map(({ count }) => count));
    if (most < 2) break; // merging a pair that occurs once does not shorten the text
    const tied = [...pairs.values()].filter(({ count }) => count === most);
    tied.sort((a, b) => ids.get(a.left)! - ids.get(b.left)! || ids.get(a.right)! - ids.get(b.right)!);
    const { left, right } = tied[choice % tied.length]!;
    for (const { symbols } of words)
      for (let i = 0; i + 1 < symbols.length; i++)
        if (symbols[i] === left && symbols[i + 1] === right) symbols.splice(i, 2, left + right);
    if (!ids.has(left + right)) ids.set(left + right, ids.size);
    merges.push({ left, right, count: most });
    ties.push(tied);
  }
  return { words, merges, ties };
}

export function mergesControl(form: Form, { text, steps, most }: Params): void {
  form.text("text", "Text", text);
  form.slider("steps", "Merges", { min: 0, max: most, step: 1, value: steps });
  form.slider("choice", "Which of the tied pairs (0: as Regard)", { min: 0, max: 5, step: 1, value: 0 });
  form.run(() => {
    const input = form.string("text");
    const { words, merges, ties } = learnMerges(input, form.number("steps"), form.number("choice"));
    const last = merges.at(-1);
    const join = ({ left, right }: Pair) => left + right;
    const draw = (symbol: string) => (last && symbol === join(last) ? h("mark", {}, symbol) : h("span", {}, symbol));
    const style = "display: flex; flex-wrap: wrap; gap: 4px 20px; padding: 0; list-style: none";
    fill(
      form.picture,
      h(
        "ul",
        { style, "aria-label": "The words as symbols" },
        ...words.map(({ symbols, count }) =>
          h(
            "li",
            { style: "display: flex; gap: 5px; font-family: monospace" },
            ...symbols.map(draw),
            count > 1 && h("span", { class: "small" }, `× ${count}`),
          ),
        ),
      ),
      h(
        "p",
        { class: "small" },
        `Merges: ${merges.map((pair) => `${join(pair)} ${pair.count}`).join(", ") || "none"}.`,
      ),
      h(
        "p",
        { class: "small" },
        `Most frequent before the last merge: ${(ties.at(-1) ?? []).map(({ left, right }) => `${left} + ${right}`).join(", ") || "-"}.`,
      ),
    );
    const tokens = words.reduce((sum, { symbols, count }) => sum + symbols.length * count, 0);
    form.show("count", "Count of the last merged pair", last?.count ?? 0);
    form.show("ties", "Pairs with this count", ties.at(-1)?.length ?? 0);
    form.show("tokens", "Tokens of the text", tokens);
    form.show("vocabulary", "Different tokens", new Set(words.flatMap(({ symbols }) => symbols)).size);
    form.show("ratio", "Characters per token", tokens ? ([...input].length + 1) / tokens : 0);
  });
}
