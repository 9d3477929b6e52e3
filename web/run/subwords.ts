// The tokenizer models: byte pair encoding, unigram, whole words. Each appends the ids of one pre-token.

import type { ModelPart } from "./tokenizer_file.ts";

export type Encode = (text: string, ids: number[]) => void;
const CACHE_SIZE = 20000;

export function makeBpe(model: ModelPart): Encode {
  const vocabulary = new Map<string, number>(Object.entries(model.vocab));
  const unk = model.unk_token ? vocabulary.get(model.unk_token) : undefined;
  const ranks = new Map<string, [number, number]>(); // "left right" -> rank, id of the merged token
  (model.merges ?? []).forEach(([left, right], rank) => {
    ranks.set(`${vocabulary.get(left)} ${vocabulary.get(right)}`, [rank, vocabulary.get(left + right)!]);
  });
  return cached((text) => {
    const symbols: number[] = [];
    for (const character of text) {
      const id = vocabulary.get(character) ?? unk;
      if (id !== undefined) symbols.push(id);
    }
    for (;;) {
      let best: [number, number] | undefined;
      let at = -1;
      for (let i = 0; i + 1 < symbols.length; i++) {
        const merge = ranks.get(`${symbols[i]} ${symbols[i + 1]}`);
        if (merge && (!best || merge[0] < best[0])) [best, at] = [merge, i];
      }
      if (!best) return symbols;
      symbols.splice(at, 2, best[1]);
    }
  });
}

export function makeUnigram(model: ModelPart): Encode {
  const vocabulary = model.vocab as [string, number][];
  const unk = model.unk_id!;
  const root: Node = new Map();
  let lowest = Infinity;
  vocabulary.forEach(([text, score], id) => {
    lowest = Math.min(lowest, score);
    let node = root;
    for (const character of text) {
      let next = node.get(character) as Node | undefined;
      if (!next) node.set(character, (next = new Map()));
      node = next;
    }
    node.set(END, id);
  });
  const unkScore = lowest - 10;
  const bytes = model.byte_fallback ? readByteTokens(vocabulary) : null;
  const encoder = new TextEncoder();
  return cached((text) => {
    const characters = Array.from(text);
    const count = characters.length;
    const best = new Float64Array(count + 1).fill(-Infinity); // score of the best path that ends here
    const from = new Int32Array(count + 1);
    const token = new Int32Array(count + 1);
    best[0] = 0;
    for (let start = 0; start < count; start++) {
      let node = root;
      let hasSingle = false;
      for (let end = start; end < count; end++) {
        const next = node.get(characters[end]) as Node | undefined;
        if (!next) break;
        node = next;
        const id = node.get(END) as number | undefined;
        if (id === undefined) continue;
        if (end === start) hasSingle = true;
        reach(start, end + 1, vocabulary[id][1], id);
      }
      if (!hasSingle) reach(start, start + 1, unkScore, unk);
    }
    const ids: number[] = [];
    for (let end = count; end > 0;) {
      if (token[end] !== unk) {
        ids.push(token[end]);
        end = from[end];
        continue;
      }
      let start = end; // neighboring unknown characters are one token, or their bytes
      while (start > 0 && token[start] === unk) start = from[start];
      if (bytes)
        for (const byte of encoder.encode(characters.slice(start, end).join("")).reverse()) ids.push(bytes[byte]);
      else ids.push(unk);
      end = start;
    }
    return ids.reverse();

    function reach(start: number, end: number, score: number, id: number): void {
      if (best[start] + score <= best[end]) return;
      best[end] = best[start] + score;
      from[end] = start;
      token[end] = id;
    }
  });
}

export function makeWordLevel(model: ModelPart): Encode {
  const vocabulary = new Map<string, number>(Object.entries(model.vocab));
  const unk = vocabulary.get(model.unk_token!)!;
  return (text, ids) => void ids.push(vocabulary.get(text) ?? unk);
}

type Node = Map<string, unknown>;
const END = ""; // no character is the empty string

function readByteTokens(vocabulary: [string, number][]): number[] | null {
  const ids = new Map(vocabulary.map(([text], id) => [text, id]));
  const bytes = Array.from({ length: 256 }, (_, byte) =>
    ids.get(`<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`),
  );
  return bytes.every((id) => id !== undefined) ? (bytes as number[]) : null;
}

/** Most words of a text occur again. */
function cached(encode: (text: string) => number[]): Encode {
  const known = new Map<string, number[]>();
  return (text, ids) => {
    let result = known.get(text);
    if (!result) {
      result = encode(text);
      if (known.size < CACHE_SIZE) known.set(text, result);
    }
    for (const id of result) ids.push(id);
  };
}
