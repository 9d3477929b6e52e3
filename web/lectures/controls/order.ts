// Two sentences through one attention layer without weights, Y = softmax(X Xᵀ / √d) X, with and without positions.

import { softmax } from "../arithmetic.ts";
import { drawBars } from "../bars.ts";
import type { Form } from "../form.ts";
import { encode } from "./positions.ts";

const WIDTH = 8;

/** Return a fixed vector for any word: cosines of a number made of its letters. */
export function embed(word: string): number[] {
  const code = [...word].reduce((sum, letter, i) => sum + (i + 1) * letter.codePointAt(0)!, 0);
  return Array.from({ length: WIDTH }, (_, i) => Math.cos((i + 1) * code));
}

/** Return the attention layer's outputs (words, WIDTH). */
export function attend(x: readonly number[][]): number[][] {
  return x.map((query) => {
    const scores = x.map((key) => key.reduce((sum, value, i) => sum + value * query[i]!, 0) / Math.sqrt(WIDTH));
    const weights = softmax(scores);
    return query.map((_, i) => weights.reduce((sum, weight, j) => sum + weight * x[j]![i]!, 0));
  });
}

/** Return for each word of both sentences its largest difference; equal words are paired in their order. */
export function compare(a: readonly string[], b: readonly string[], hasPositions: boolean): [string, number][] {
  const run = (words: readonly string[]) => {
    const places = encode("sinusoidal", WIDTH, 10000, words.length);
    return attend(words.map((word, p) => embed(word).map((value, i) => value + (hasPositions ? places[p]![i]! : 0))));
  };
  const [ya, yb] = [run(a), run(b)];
  const left = b.map((word, place) => ({ word, place }));
  return a.flatMap((word, i): [string, number][] => {
    const [other] = left.splice(left.findIndex((one) => one.word === word) >>> 0, 1); // not found: nothing
    return other ? [[word, Math.max(...ya[i]!.map((value, k) => Math.abs(value - yb[other.place]![k]!)))]] : [];
  });
}

export function orderControl(form: Form, { sentences }: { sentences: [string, string] }): void {
  form.text("a", "First sentence", sentences[0]);
  form.text("b", "Second sentence", sentences[1]);
  form.choice(
    "positions",
    "Positions",
    [
      ["none", "none: a set of words"],
      ["sinusoidal", "sinusoidal, added to the words"],
    ],
    "none",
  );
  form.run(() => {
    const [a, b] = ["a", "b"].map((name) => form.string(name).split(/\s+/).filter(Boolean)) as [string[], string[]];
    const pairs = compare(a, b, form.string("positions") === "sinusoidal");
    const [words, differences] = [pairs.map(([word]) => word), pairs.map(([, difference]) => difference)];
    const rounded = differences.map((difference) => Number(difference.toFixed(9))); // not the last bits
    drawBars(form.picture, words, rounded);
    form.show("shared", "Words in both sentences", pairs.length);
    form.show("largest", "Largest difference of the same word's output", Math.max(0, ...rounded));
  });
}
