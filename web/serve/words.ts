// Words of a translated sentence, with the model's confidence in each and the source words that it is aligned to.

export interface Sentence {
  text: string;
  /** Texts of the tokens and their probabilities. */
  tokens: string[];
  confidence: number[];
  /** Pairs (source word, target word), counted from 0. */
  alignment: [number, number][];
  /** What the server says about its quality, if it can tell. */
  quality?: Quality[];
}

export interface Quality {
  rating: "good" | "check" | "poor" | null;
  warnings: string[];
}

export interface Word {
  text: string;
  /** Where it begins in the sentence. */
  start: number;
  /** Probability of all its tokens; null if the tokens do not spell the sentence. */
  confidence: number | null;
  /** Source words, counted from 0. */
  sources: number[];
}

/** Read one text of an answer; the server may have divided it into several sentences. */
export function readSentence(answer: any, index: number): Sentence {
  return {
    text: answer.translatedText[index],
    tokens: answer.tokens?.[index].flat() ?? [],
    confidence: answer.confidence?.[index].flat() ?? [],
    alignment: answer.alignment?.[index] ?? [],
    quality: answer.quality?.[index],
  };
}

/** Return the ranges [start, end) of the words of a text: what white space separates. */
export function findWords(text: string): [number, number][] {
  return [...text.matchAll(/\S+/g)].map((match) => [match.index, match.index + match[0].length]);
}

/** Return the words of a sentence; `sentence.text` is these words and the white space between them. */
export function readWords({ text, tokens, confidence, alignment }: Sentence): Word[] {
  const ranges = tokens.length ? locateTokens(text, tokens) : null;
  return findWords(text).map(([start, stop], index) => {
    const sources = alignment.filter(([, target]) => target === index).map(([source]) => source);
    const parts = ranges && confidence.filter((_, i) => ranges[i][0] < stop && ranges[i][1] > start);
    const product = parts && parts.reduce((product, value) => product * value, 1);
    return { text: text.slice(start, stop), start, confidence: product, sources };
  });
}

/** Return the range of each token in the text, without its leading space; null if the tokens do not spell the text. */
function locateTokens(text: string, tokens: string[]): [number, number][] | null {
  const ranges: [number, number][] = [];
  let position = 0;
  while (ranges.length < tokens.length) {
    const first = ranges.length;
    let stop = first; // parts of a character reach to the next token that has whole ones
    while (tokens[stop]?.includes("\ufffd")) stop++;
    const token = position === 0 ? (tokens[stop] ?? "").trimStart() : (tokens[stop] ?? "");
    const found = stop === first ? position : token ? text.indexOf(token, position + 1) : text.length;
    if (found < 0 || !text.startsWith(token, found)) return null;
    while (ranges.length < stop) ranges.push([skipSpace(text, position), found]);
    if (stop < tokens.length) ranges.push([skipSpace(text, found), found + token.length]);
    position = found + token.length;
  }
  return text.slice(position).trim() ? null : ranges;
}

const skipSpace = (text: string, position: number) => position + /^\s*/.exec(text.slice(position))![0].length;

/** A word without the punctuation around it: the part that an alternative replaces. */
export function readCore(word: string): string {
  return word.replace(/^[\p{P}\p{S}]+|[\p{P}\p{S}]+$/gu, "") || word;
}

/** A probability as people say it: "93 %"; close to 0 or 1 with one more digit. */
export function formatPercent(probability: number): string {
  if (probability < 0.001) return "under 0.1 %";
  if (probability > 0.999) return "over 99.9 %";
  return `${(100 * probability).toFixed(probability < 0.01 || probability > 0.99 ? 1 : 0)} %`;
}
