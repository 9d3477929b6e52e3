// How a token is shown: short, visible, on one line, and unable to change the text around it.

import type { LookDocument, Token, TokenInfo } from "./document.ts";

// Characters that reorder, hide or break text: C0 and C1 controls, bidirectional controls, separators.
const INVISIBLE = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;
const NAMES: Record<string, string> = { "\n": "↵", "\t": "⇥", "\r": "␍" };
const RTL = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]/;
const segmenter = typeof Intl.Segmenter === "function" ? new Intl.Segmenter() : null;

/** Shorten to at most `limit` characters as a reader counts them (an emoji of several code points is one). */
export function shorten(text: string, limit: number): string {
  if (text.length <= limit) return text;
  const start = text.slice(0, limit * 12); // long enough for any cluster, short enough for a token of 5,000
  const characters = segmenter ? [...segmenter.segment(start)].map((part) => part.segment) : Array.from(start);
  return characters.length <= limit && start.length === text.length
    ? text
    : characters.slice(0, limit - 1).join("") + "…";
}

/** Replace what cannot be seen by a visible sign. */
export function makeVisible(text: string): string {
  const visible = text.replace(
    INVISIBLE,
    (character) => NAMES[character] ?? `U+${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}`,
  );
  // Isolates keep right-to-left text from reordering its neighbors.
  return RTL.test(visible) ? `\u2068${visible}\u2069` : visible;
}

/** The label of a token by itself. `continues`: it is a later part of a word, which a thin dot marks. */
export function tokenLabel(token: TokenInfo | undefined, continues = false, limit = 16): string {
  if (!token) return "?";
  if (token.bytes) return `‹${shorten(token.bytes.toUpperCase(), limit)}›`;
  const text = token.text.replace(/^ /, "");
  if (text === "") return "␣";
  const marked = continues && /^[\p{L}\p{N}]/u.test(text); // a full stop needs no sign that it follows a word
  return (marked ? "·" : "") + shorten(makeVisible(shorten(text, limit * 2)), limit);
}

const isBreak = ({ text }: Token) => /[\n\r]/.test(text) && text.trim() === "";

/** Whether a token is a later part of a word. A line break parts words, so it is no part of one. */
export function continuesWord(tokens: Token[], i: number): boolean {
  const [previous, token] = [tokens[i - 1], tokens[i]];
  return i > 0 && token.word !== null && token.word === previous.word && !isBreak(token) && !isBreak(previous);
}

/** What a label such as ‹E282› means. */
export const BYTES = "‹E2 82›: part of a character, written as bytes.";

export function hasBytes(doc: LookDocument): boolean {
  return Object.values(doc.sequences).some((tokens) => tokens.some((token) => token.bytes));
}

export function areCharacters(tokens: Token[]): boolean {
  return tokens.every((token) => token.role === "special" || token.text.length <= 1);
}

/** Labels of a sequence of tokens. */
export function sequenceLabels(tokens: Token[], limit = 16): string[] {
  // Where every token is one character, a sign at each of them would say nothing.
  const isSplit = !areCharacters(tokens);
  return tokens.map((token, i) => tokenLabel(token, isSplit && continuesWord(tokens, i), limit));
}

/** The text of some tokens together, for a sentence. */
export function joinTokens(tokens: (TokenInfo | undefined)[], limit = 400): string {
  const text = tokens.map((token) => (token ? (token.bytes ? "�" : token.text) : "?")).join("");
  return shorten(makeVisible(text.trim()), limit);
}

/** A text of the document, made safe and short enough for a line. */
export function showText(text: string, limit = 400): string {
  return shorten(makeVisible(text.replace(/\s*\n\s*/g, " ")), limit);
}
