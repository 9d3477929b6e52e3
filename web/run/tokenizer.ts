// Text to ids and back, from the same tokenizer.json that Python reads; ids are equal to Python's (tests compare them).
// Kinds: BPE (bytes, subwords, characters), unigram, whole words: what `regard train` and `regard tokenizer learn` make.

import { decodeBytes, makeByteAlphabet, StreamingDecoder, type JoinStyle } from "./detokenizer.ts";
import type { Token } from "../document.ts";
import { makeNormalizer } from "./normalizer.ts";
import { makeBpe, makeUnigram, makeWordLevel, type Encode } from "./subwords.ts";
import { describeTokens, type Vocabulary } from "./token_info.ts";
import type { ModelPart, Step, TokenizerFile } from "./tokenizer_file.ts";

export class Tokenizer {
  private readonly vocabulary: Vocabulary;
  private readonly extra: Map<string, number>;
  private readonly extraPattern: RegExp | null;
  private readonly normalizePart: (text: string) => string;
  private readonly normalizeWords: (text: string) => string;
  private readonly split: (text: string) => string[];
  private readonly encodePart: Encode;

  constructor(file: TokenizerFile, control: Iterable<number>, unk: number) {
    const model = file.model;
    const texts: string[] = [];
    if (model.type === "Unigram") model.vocab.forEach(([text]: [string], id: number) => (texts[id] = text));
    else for (const [text, id] of Object.entries(model.vocab)) texts[id as number] = text;
    for (const token of file.added_tokens) texts[token.id] = token.content;
    this.extra = new Map(file.added_tokens.filter((token) => !token.special).map((token) => [token.content, token.id]));
    const longestFirst = [...this.extra.keys()].sort((a, b) => b.length - a.length).map(escapePattern);
    this.extraPattern = longestFirst.length ? new RegExp(longestFirst.join("|"), "gu") : null;
    this.normalizePart = makeNormalizer(file.normalizer);
    this.normalizeWords = makeNormalizer(file.normalizer, { marks: false });
    this.split = makeSplitter(file.pre_tokenizer);
    this.encodePart = makeModel(model);
    const style = readJoinStyle(file.decoder);
    const hasByteFallback = !!file.decoder?.decoders?.some((step: Step) => step.type === "ByteFallback");
    const extra = new Set(this.extra.values());
    const special = new Set(control);
    const bytes = decodeBytes(texts, style, special, unk, extra, hasByteFallback);
    special.delete(unk);
    this.vocabulary = { texts, bytes, style, control: special };
  }

  /** Number of tokens. */
  get size(): number {
    return this.vocabulary.texts.length;
  }

  /** Encode a text; adds no special tokens, and "<pad>" in a text is ordinary text. */
  encode(text: string): number[] {
    const ids: number[] = [];
    let start = 0;
    for (const match of this.extraPattern ? text.matchAll(this.extraPattern) : []) {
      this.encodeText(text.slice(start, match.index), ids);
      ids.push(this.extra.get(match[0])!);
      start = match.index + match[0].length;
    }
    this.encodeText(text.slice(start), ids);
    return ids;
  }

  decode(ids: Iterable<number>): string {
    const decoder = this.stream();
    let text = "";
    for (const id of ids) text += decoder.push(id);
    return text + decoder.finish();
  }

  /** A decoder for ids that arrive one by one. */
  stream(): StreamingDecoder {
    return new StreamingDecoder(this.vocabulary.bytes, this.vocabulary.style, new Set(this.extra.values()));
  }

  /** The tokens of a sequence. */
  describe(ids: number[]): Token[] {
    return describeTokens(this.vocabulary, ids);
  }

  /** Whether nothing but white space is left of a text. */
  isBlank(text: string): boolean {
    return BLANK.test(this.normalizeWords(text));
  }

  private encodeText(text: string, ids: number[]): void {
    if (!text) return;
    for (const part of this.split(this.normalizePart(text))) this.encodePart(part, ids);
  }
}

function makeModel(model: ModelPart): Encode {
  switch (model.type) {
    case "BPE":
      return makeBpe(model);
    case "Unigram":
      return makeUnigram(model);
    case "WordLevel":
      return makeWordLevel(model);
  }
  throw new Error(`This page has no tokenizer model "${model.type}".`);
}

// White space as Unicode defines it; JavaScript's \s differs in two characters.
const SPACE = "\\t-\\r \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const BLANK = new RegExp(`^[${SPACE}\\x1c-\\x1f]*$`); // what Python's strip() removes
const GPT2 = new RegExp(
  `'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^${SPACE}\\p{L}\\p{N}]+|[${SPACE}]+(?![^${SPACE}])|[${SPACE}]+`,
  "gu",
);

function makeSplitter(step: Step | null): (text: string) => string[] {
  if (step === null) return (text) => (text ? [text] : []);
  if (step.type === "ByteLevel" && step.use_regex !== false && !step.add_prefix_space) {
    const alphabet = [...makeByteAlphabet()].sort((a, b) => a[1] - b[1]).map(([character]) => character);
    const encoder = new TextEncoder();
    return (text) =>
      (text.match(GPT2) ?? []).map((part) => Array.from(encoder.encode(part), (byte) => alphabet[byte]).join(""));
  }
  const mark = step.pattern?.String;
  if (step.type === "Split" && typeof mark === "string" && mark.length === 1 && !step.invert) {
    const other = `[^${escapePattern(mark)}]+`;
    const patterns: Record<string, string> = {
      MergedWithPrevious: `${other}${escapePattern(mark)}?|${escapePattern(mark)}`,
      MergedWithNext: `${escapePattern(mark)}?${other}|${escapePattern(mark)}`,
      Removed: other,
    };
    const pattern = patterns[step.behavior];
    if (pattern) return (text) => text.match(new RegExp(pattern, "gu")) ?? [];
  }
  throw new Error(`This page has no pre-tokenizer "${step.type}".`);
}

function readJoinStyle(decoder: Step | null): JoinStyle {
  if (decoder === null) return "words";
  if (decoder.type === "ByteLevel") return "bytes";
  if (decoder.type === "Fuse") return "characters";
  if (decoder.type === "Sequence") {
    const pattern = decoder.decoders.at(-1)?.pattern?.Regex;
    if (pattern === "\\A ") return "marks_before";
    if (pattern === " \\z") return "marks_after";
  }
  throw new Error(`This page has no decoder "${decoder.type}".`);
}

function escapePattern(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");
}
