// Training samples that may have taught a word: the answer of a server to "Which training pairs taught this?".

import { fill, h } from "./dom.ts";
import { readCore } from "./serve/words.ts";

export const QUESTION = "Which training pairs taught this?";

/** A sample that has the word; its copies count once. */
export interface Candidate {
  location: string;
  copies: number;
  source: string;
  target: string | null;
  score: number;
}

/** Return the words of a text as buttons that ask for their candidates, and the element that shows them. */
export function makeWords(
  text: string,
  ask: (word: string) => Promise<{ candidates: Candidate[] }>,
): [HTMLElement, HTMLElement] {
  const answer = h("div", { class: "blame", role: "status" });
  const words = text.split(/(\s+)/).map((part) => {
    if (!part.trim()) return part;
    const word = readCore(part);
    const show = () => void showCandidates(answer, word, () => ask(word));
    return h("button", { type: "button", title: QUESTION, onclick: show }, part);
  });
  return [h("bdi", { class: "words" }, ...words), answer];
}

/** Ask for the candidates of a word and show them; a problem is shown in their place. */
export async function showCandidates(
  element: HTMLElement,
  word: string,
  ask: () => Promise<{ candidates: Candidate[] }>,
): Promise<void> {
  fill(element, h("p", {}, `Looking for pairs with “${word}” …`));
  try {
    fill(element, ...describe(word, (await ask()).candidates));
  } catch (error) {
    fill(element, h("p", {}, (error as Error).message));
  }
}

function describe(word: string, candidates: Candidate[]): HTMLElement[] {
  if (candidates.length === 0) return [h("p", {}, `No training pair has “${word}”.`)];
  const items = candidates.map(({ location, copies, source, target }) => {
    const more = copies ? ` and ${copies} ${copies === 1 ? "copy" : "copies"}` : "";
    const pair = [h("span", { dir: "auto" }, source), h("span", { dir: "auto" }, ...markWord(target ?? "", word))];
    return h("li", {}, ...pair, h("span", { class: "place" }, location + more));
  });
  const note = "The nearest pairs with this word, most similar first. Whether they taught it: regard blame --prove.";
  return [h("ol", { class: "pairs" }, ...items), h("p", { class: "small" }, note)];
}

function markWord(text: string, word: string): (Node | string)[] {
  const start = text.indexOf(word);
  if (start < 0) return [text];
  return [text.slice(0, start), h("mark", {}, word), text.slice(start + word.length)];
}
