// A model of characters that knows the last L of them: counts of a text, their entropy, and samples.

import { fill, h } from "../../dom.ts";
import type { Form } from "../form.ts";

interface Params {
  text: string;
  most: number; // largest L
}

type Counts = Map<string, Map<string, number>>;

/** Count the characters that follow each context of this length. */
export function countNext(text: string, length: number): Counts {
  const counts: Counts = new Map();
  for (let i = length; i < text.length; i++) {
    const context = text.slice(i - length, i);
    const next = counts.get(context) ?? new Map<string, number>();
    counts.set(context, next.set(text[i]!, (next.get(text[i]!) ?? 0) + 1));
  }
  return counts;
}

const add = (next: Map<string, number>): number => [...next.values()].reduce((sum, count) => sum + count, 0);

/** Return bits per character of the same text, and the share of places whose context had one continuation only. */
export function measure(counts: Counts): { bits: number; sure: number } {
  let [bits, sure, places] = [0, 0, 0];
  for (const next of counts.values()) {
    const sum = add(next);
    for (const count of next.values()) bits -= count * Math.log2(count / sum);
    if (next.size === 1) sure += sum;
    places += sum;
  }
  return { bits: bits / places, sure: sure / places };
}

/** Sample characters, each given the last `length` ones; a context that nothing follows ends the sample. */
export function sample(text: string, length: number, count: number, seed: number): string {
  const counts = countNext(text, length);
  let [written, state] = [text.slice(0, length), seed];
  while (written.length < count) {
    const next = counts.get(written.slice(written.length - length));
    if (!next) break;
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    let rest = (state / 2 ** 32) * add(next);
    written += [...next].find(([, times]) => (rest -= times) < 0)![0];
  }
  return written;
}

export function ngramControl(form: Form, { text, most }: Params): void {
  let seed = 1;
  form.slider("length", "L: characters that the model knows", { min: 0, max: most, step: 1, value: 2 });
  form.button("draw", "Draw again", () => seed++);
  form.run(() => {
    const length = form.number("length");
    const { bits, sure } = measure(countNext(text, length));
    fill(form.picture, h("p", { style: "white-space: pre-wrap" }, sample(text, length, 220, seed)));
    form.show("bits", "Bits per character of the same text", bits);
    form.show("sure", "Places with one possible next character", sure, `${(100 * sure).toFixed(1)} %`);
  });
}
