// Tokens as a look document has them: text, role, bytes and word; src/regard/text/tokenizer.py and look/tokens.py.

import type { Token, TokenInfo } from "../document.ts";
import type { JoinStyle } from "./detokenizer.ts";

/** What is known of a vocabulary. */
export interface Vocabulary {
  texts: string[];
  bytes: Uint8Array[];
  style: JoinStyle;
  /** Special tokens, without unk, which stands for unknown text. */
  control: Set<number>;
}

const SPACES = [32, 9, 10, 13];

export function describeToken({ texts, bytes, control }: Vocabulary, id: number): TokenInfo {
  if (control.has(id)) return { text: texts[id], role: "special" };
  const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes[id]);
  const isBroken = text.includes("\ufffd") && !isUtf8(bytes[id]);
  const hex = () => Array.from(bytes[id], (byte) => byte.toString(16).padStart(2, "0")).join("");
  return { text, role: "text", ...(isBroken ? { bytes: hex() } : {}) };
}

export function describeTokens(vocabulary: Vocabulary, ids: number[]): Token[] {
  const words = findWords(vocabulary, ids);
  return ids.map((id, i) => ({ id, word: words[i], ...describeToken(vocabulary, id) }));
}

/** The word number of each token; null for special tokens. A whitespace token belongs to the word before. */
function findWords({ bytes, style, control }: Vocabulary, ids: number[]): (number | null)[] {
  const hasLeadingSpace = style !== "words" && style !== "marks_after";
  const isStart = (id: number) => style === "words" || (hasLeadingSpace && SPACES.includes(bytes[id][0]));
  const isEnd = (id: number) => style === "marks_after" && bytes[id].at(-1) === 32;
  const isSpace = (id: number) =>
    bytes[id].length > 0 && bytes[id].every((byte) => byte === 32 || (byte > 8 && byte < 14));
  let number = -1;
  let isNew = true;
  return ids.map((id, i) => {
    if (control.has(id)) {
      isNew = true;
      return null;
    }
    const next = ids[i + 1];
    const isLast = next === undefined || control.has(next) || isStart(next);
    if (isSpace(id) && (style === "marks_after" ? isNew : isLast)) return Math.max(number, 0);
    if (isNew || isStart(id)) number++;
    isNew = isEnd(id);
    return number;
  });
}

function isUtf8(content: Uint8Array): boolean {
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(content);
    return true;
  } catch {
    return false;
  }
}
