// Sentence splitting that keeps all white space; the rules of src/regard/text/sentences.py.

const END_MARKS = ".!?…。！？｡؟।";
const CLOSING_MARKS = "\"'”’»›)\\]}」』）";
const ABBREVIATIONS = new Set(
  (
    "al art bzw ca cf co dr e.g etc evtl fig ggf hr i.e inc jr ltd mme mr mrs ms mt nr no p pp prof sr st u.a usw vgl " +
    "vol vs"
  ).split(" "),
);
const LINE_BREAK = /(?<!\s)\s*\n\s*/g;
const SENTENCE_END = new RegExp(`([${END_MARKS}]+)[${CLOSING_MARKS}]*(\\s+)`, "g");
const FULL_WIDTH = new RegExp(`(?<=[。！？｡])(?=\\S)(?![${END_MARKS}${CLOSING_MARKS}])`);

/** Return pairs of a sentence and the white space after it; concatenated, they are the text. */
export function splitSentences(text: string): [string, string][] {
  const pairs: [string, string][] = [];
  let start = 0;
  for (const match of [...text.matchAll(LINE_BREAK), null]) {
    pairs.push(...splitParagraph(text.slice(start, match?.index)));
    if (!match) break;
    const [sentence, space] = pairs.pop() ?? ["", ""];
    pairs.push([sentence, space + match[0]]);
    start = match.index + match[0].length;
  }
  return pairs;
}

function splitParagraph(text: string): [string, string][] {
  const pairs: [string, string][] = [];
  let start = 0;
  for (const match of text.matchAll(SENTENCE_END)) {
    const end = match.index + match[0].length;
    if (!isSentenceEnd(text.slice(start, match.index), match[1], text.slice(end, end + 1))) continue;
    pairs.push(...splitFullWidth(text.slice(start, end - match[2].length), match[2]));
    start = end;
  }
  return start < text.length ? [...pairs, ...splitFullWidth(text.slice(start), "")] : pairs;
}

function splitFullWidth(sentence: string, space: string): [string, string][] {
  const parts = sentence.split(FULL_WIDTH);
  return parts.map((part, i) => [part, i === parts.length - 1 ? space : ""]);
}

function isSentenceEnd(before: string, stop: string, after: string): boolean {
  if (/^\p{Ll}/u.test(after)) return false;
  if (stop !== ".") return true;
  const words = before.trim() ? before.trim().split(/\s+/) : [];
  const word = (/\s$/.test(before) ? "" : (words.at(-1) ?? "")).replace(/^["'“‘„«(]+/, "").toLowerCase();
  const isSingle = /^\p{L}$/u.test(word);
  const isNumber = /^\d+$/.test(word) && words.length === 1;
  return !(isSingle || isNumber || ABBREVIATIONS.has(word));
}
