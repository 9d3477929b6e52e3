// The window of word2vec: which words are neighbors of the middle word.

import { fill, h } from "../../dom.ts";
import type { Form } from "../form.ts";

interface Params {
  words: string[];
  window: number; // adjacent words, the middle one included
}

/** Return the places of the neighbors of a word. */
export function findNeighbors(count: number, center: number, window: number): number[] {
  const side = Math.floor(window / 2);
  const places = Array.from({ length: 2 * side + 1 }, (_, i) => center - side + i);
  return places.filter((place) => place !== center && place >= 0 && place < count);
}

export function windowControl(form: Form, { words, window }: Params): void {
  form.slider("window", "M adjacent words", { min: 3, max: 11, step: 2, value: window });
  form.slider("center", "Place of the middle word", { min: 0, max: words.length - 1, step: 1, value: 3 });
  form.run(() => {
    const [size, center] = [form.number("window"), form.number("center")];
    const neighbors = findNeighbors(words.length, center, size);
    const draw = (word: string, i: number) =>
      i === center ? h("strong", {}, word) : neighbors.includes(i) ? h("mark", {}, word) : h("span", {}, word);
    const context = neighbors.map((place) => words[place]).join(", ");
    fill(
      form.picture,
      h("p", { style: "display: flex; flex-wrap: wrap; gap: 6px" }, ...words.map(draw)),
      h("p", { class: "small" }, `CBOW: mean of (${context}) → ${words[center]}`),
      h("p", { class: "small" }, `Skip-gram: ${words[center]} → each of (${context})`),
    );
    const pairs = words.reduce((sum, _, i) => sum + findNeighbors(words.length, i, size).length, 0);
    form.show("context", "Context words of the middle word", neighbors.length);
    form.show("pairs", "Pairs of a word and a neighbor in the sentence", pairs);
  });
}
