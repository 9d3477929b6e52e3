// Other words for a word of a translation: the sentence up to it stays, the word is forbidden, the model continues.
// Each one is shown with its probability: that of the sentence's tokens when the whole sentence is the prefix.

import { fill, h } from "../dom.ts";
import { request } from "./api.ts";
import { formatPercent, readCore, readSentence, readWords, type Sentence, type Word } from "./words.ts";

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
  /** What the model can say about the words of a translation. */
  details: Record<string, unknown>;
}

interface Alternative {
  sentence: Sentence;
  /** Of the word; null if the model cannot say it. */
  probability: number | null;
}

/** Fill a card with the alternatives of a word; `choose` gets the sentence with the chosen one. */
export async function makeAlternatives(
  card: HTMLElement,
  { source, text, word, options, details }: Place,
  choose: (sentence: Sentence) => void,
): Promise<void> {
  const number = ++last;
  const core = readCore(word.text);
  const prefix = text.slice(0, word.start + word.text.indexOf(core));
  const found = new Map<string, Alternative>(); // the best sentence for each word
  const say = (message: string) => number === last && fill(card, h("p", { role: "status" }, message));
  card.setAttribute("aria-busy", "true");
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
  if (number === last) card.removeAttribute("aria-busy");

  async function search(forbidden: string[]): Promise<void> {
    const body = { q: source, prefix: prefix.trimEnd(), forbidden, alternatives: ALTERNATIVES, beam_size: BEAM_SIZE };
    const { translatedText, alternatives } = await (await request("translate", { ...options, ...body })).json();
    const sentences = new Map<string, string>();
    for (const sentence of [translatedText, ...alternatives] as string[]) {
      if (!sentence.startsWith(prefix)) continue;
      const name = readCore(/^\s*(\S*)/.exec(sentence.slice(prefix.length))![1]);
      if (name && name !== core && !found.has(name) && !sentences.has(name)) sentences.set(name, sentence);
    }
    const described = await Promise.all([...sentences.values()].map(describe));
    [...sentences.keys()].forEach((name, i) => found.set(name, described[i]));
  }

  /** Ask for the words of a sentence: all of it is the prefix. */
  async function describe(text: string): Promise<Alternative> {
    const body = { ...options, ...details, q: [source], prefix: text, beam_size: 1 };
    const sentence = readSentence(await (await request("translate", body)).json(), 0);
    const chosen = readWords(sentence).find(({ text, start }) => start + text.length > prefix.length);
    const isWhole = sentence.text === text; // the model may go on after the prefix
    return {
      sentence: isWhole ? sentence : { text, tokens: [], confidence: [], alignment: [] },
      probability: chosen?.confidence ?? null,
    };
  }

  function show(): void {
    if (found.size === 0) return void say(`The model has no other word for “${core}” here.`);
    const focused = card.querySelector("button:focus strong")?.textContent;
    const sorted = [...found].sort(([, a], [, b]) => (b.probability ?? 0) - (a.probability ?? 0));
    const items = sorted.map(([name, { sentence, probability }]) => {
      const rest = sentence.text.slice(sentence.text.indexOf(name, prefix.length) + name.length);
      const before = h("span", { class: "before" }, shorten(prefix));
      const percent = probability === null ? null : h("span", { class: "percent" }, formatPercent(probability));
      const line = h("span", { class: "line" }, before, h("strong", {}, name), rest);
      return h("li", {}, h("button", { type: "button", onclick: () => choose(sentence) }, line, percent));
    });
    const now = word.confidence === null ? "" : ` (${formatPercent(word.confidence)})`;
    fill(card, h("h2", {}, `Instead of “${core}”${now}`), h("ul", { class: "alternatives" }, ...items));
    const again = [...card.querySelectorAll("strong")].find(({ textContent }) => textContent === focused);
    again?.closest("button")!.focus();
  }
}

/** The last words before a place. */
function shorten(prefix: string): string {
  const words = prefix.split(/(?<=\s)/);
  return words.length > 5 ? `… ${words.slice(-4).join("")}` : prefix;
}
