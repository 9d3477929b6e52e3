// Other words for a word of a translation: the sentence up to it stays, the word is forbidden, the model continues.

import { fill, h } from "../dom.ts";
import { request } from "./api.ts";
import { readCore, readSentence, type Sentence, type Word } from "./words.ts";

const ALTERNATIVES = 4;
const BEAM_SIZE = 5;
const ENOUGH = 5; // words
const ROUNDS = 3;
const MAX_FORBIDDEN = 4; // the limit of a server
let last = 0; // only the word that was clicked last is shown

interface Place {
  source: string;
  text: string;
  word: Word;
  /** Model and target language. */
  options: Record<string, unknown>;
}

/** Fill a card with the alternatives of a word; `choose` gets the sentence with the chosen one. */
export async function makeAlternatives(
  card: HTMLElement,
  { source, text, word, options }: Place,
  choose: (sentence: Sentence) => void,
): Promise<void> {
  const number = ++last;
  const core = readCore(word.text);
  const prefix = text.slice(0, word.start + word.text.indexOf(core));
  const found = new Map<string, string>(); // the best sentence for each word
  const say = (message: string) => number === last && fill(card, h("p", { role: "status" }, message));
  card.hidden = false;
  say(`Looking for other words for “${core}” …`);
  try {
    // The best continuations often begin alike: what was found is forbidden, too, and the model is asked again.
    for (let round = 0, before = -1; round < ROUNDS && found.size > before && found.size < ENOUGH; round++) {
      before = found.size;
      await search([core, ...found.keys()].slice(0, MAX_FORBIDDEN));
      if (number !== last) return;
      show();
    }
  } catch (error) {
    if (found.size === 0) say((error as Error).message);
  }

  async function search(forbidden: string[]): Promise<void> {
    const body = { q: source, prefix: prefix.trimEnd(), forbidden, alternatives: ALTERNATIVES, beam_size: BEAM_SIZE };
    const { translatedText, alternatives } = await (await request("translate", { ...options, ...body })).json();
    for (const sentence of [translatedText, ...alternatives] as string[]) {
      if (!sentence.startsWith(prefix)) continue;
      const name = readCore(/^\s*(\S*)/.exec(sentence.slice(prefix.length))![1]);
      if (name && name !== core && !found.has(name)) found.set(name, sentence);
    }
  }

  function show(): void {
    if (found.size === 0) return void say(`The model has no other word for “${core}” here.`);
    const items = [...found].map(([name, sentence]) =>
      h(
        "li",
        {},
        h(
          "button",
          { type: "button", onclick: () => void take(sentence) },
          h("span", { class: "before" }, shorten(prefix)),
          h("strong", {}, name),
          sentence.slice(sentence.indexOf(name, prefix.length) + name.length),
        ),
      ),
    );
    fill(card, h("h2", {}, `Instead of “${core}”`), h("ul", { class: "alternatives" }, ...items));
  }

  /** Ask for the words of the chosen sentence: all of it is the prefix. */
  async function take(sentence: string): Promise<void> {
    const body = { ...options, q: [source], prefix: sentence, tokens: true, confidence: true, alignment: true };
    try {
      const taken = readSentence(await (await request("translate", body)).json(), 0);
      choose(taken.text === sentence ? taken : { text: sentence, tokens: [], confidence: [], alignment: [] });
    } catch (error) {
      say((error as Error).message);
    }
  }
}

/** The last words before a place. */
function shorten(prefix: string): string {
  const words = prefix.split(/(?<=\s)/);
  return words.length > 5 ? `… ${words.slice(-4).join("")}` : prefix;
}
