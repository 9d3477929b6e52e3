// What differs between two documents: words, probabilities, next tokens and weights. Pure functions of the documents.

import type { LookDocument, Token, TokenInfo } from "./document.ts";
import { type Certainty, measureCertainty } from "./headline.ts";
import type { Matrix, Unit } from "./matrix.ts";
import { findTold } from "./tags.ts";
import { continuesWord, joinTokens, showText, tokenLabel } from "./tokens.ts";
import { quote, showPercent } from "./views/common.ts";
import { type Edit, type Piece, countDifferent, diff, diffWords } from "./word_diff.ts";

/** A word of an output with its probability: the product over its tokens. Words with the same key are the same. */
export interface OutputWord {
  text: string;
  key: string;
  probability: number;
}

/** Tokens that are parts of characters all have the text "�"; their bytes tell them apart. */
const keyOf = (token: TokenInfo | undefined) => (token?.bytes ? `‹${token.bytes}›` : (token?.text ?? "?"));

/** A word that both outputs have, or one of them. */
export interface WordPair {
  kind: Edit["kind"];
  a: OutputWord | null;
  b: OutputWord | null;
}

/** The first token that differs, after the same beginning. Probabilities of the other's token: null if not listed. */
export interface Split {
  before: string;
  a: { text: string; probability: number; ofOther: number | null };
  b: { text: string; probability: number; ofOther: number | null };
}

export interface Comparison {
  isSameModel: boolean;
  isSameInput: boolean;
  input: Piece[];
  output: WordPair[];
  sure: [Certainty | null, Certainty | null];
  split: Split | null;
}

export function compareDocuments(a: LookDocument, b: LookDocument): Comparison {
  return {
    isSameModel: a.model.sha256 === b.model.sha256,
    isSameInput: a.text === b.text,
    input: diffWords(a.text, b.text),
    output: pairWords(outputWords(a), outputWords(b)),
    sure: [measureCertainty(a), measureCertainty(b)],
    split: findSplit(a, b),
  };
}

/** The words of an output: generated words without special tokens, or the best label of each prediction that is told. */
export function outputWords(doc: LookDocument): OutputWord[] {
  if (!doc.sequences.target)
    return findTold(doc)
      .told.map((i) => doc.predictions[i])
      .filter((item) => item.labels.length > 0)
      .map(({ labels, probabilities }) => ({
        text: labels[0].trim(),
        key: labels[0].trim(),
        probability: probabilities[0],
      }));
  const tokens = generated(doc).filter((token) => token.role !== "special");
  const words: Token[][] = [];
  tokens.forEach((token, i) => {
    if (continuesWord(tokens, i)) words[words.length - 1].push(token);
    else words.push([token]);
  });
  return words.map((parts) => ({
    text: joinTokens(parts, 60),
    key: parts.map(keyOf).join("").trim(),
    probability: Math.exp(parts.reduce((sum, token) => sum + (token.logprob ?? -Infinity), 0)),
  }));
}

function pairWords(a: OutputWord[], b: OutputWord[]): WordPair[] {
  const keys = (list: OutputWord[]) => list.map((word) => word.key);
  return diff(keys(a), keys(b)).map((edit) => ({
    kind: edit.kind,
    a: edit.kind === "added" ? null : a[edit.a],
    b: edit.kind === "removed" ? null : b[edit.b],
  }));
}

/** Pairs of places of generated tokens that stand for each other in the two outputs. */
export function pairTokens(a: LookDocument, b: LookDocument): [number, number][] {
  return pairUp(generated(a).map(keyOf), generated(b).map(keyOf));
}

/** The tokens that a model generated. */
export function generated(doc: LookDocument): Token[] {
  return (doc.sequences.target ?? []).filter((token) => token.logprob !== undefined);
}

/** The most probable tokens at a generated position: text and probability. */
export function nextTokens(doc: LookDocument, position: number): OutputWord[] {
  const { next } = doc;
  const at = position + (doc.sequences.target ?? []).length - generated(doc).length - (next?.first ?? 0);
  return (next?.tokens[at] ?? []).map((token, i) => ({
    text: tokenLabel(doc.vocabulary[token]),
    key: keyOf(doc.vocabulary[token]),
    probability: next!.probabilities[at][i],
  }));
}

/** A token that may come next, with its probability in A and in B. */
export interface NextPair {
  key: string;
  text: string;
  a: number | null;
  b: number | null;
}

/** The next tokens of two positions as one list, most probable first; null: not among those that a document lists. */
export function compareNext(a: LookDocument, b: LookDocument, [i, j]: [number, number]): NextPair[] {
  const [listA, listB] = [nextTokens(a, i), nextTokens(b, j)];
  const chance = (list: OutputWord[], key: string) => list.find((item) => item.key === key)?.probability ?? null;
  const all = new Map([...listA, ...listB].map((item) => [item.key, item.text]));
  const largest = (item: NextPair) => Math.max(item.a ?? 0, item.b ?? 0);
  return [...all]
    .map(([key, text]) => ({ key, text, a: chance(listA, key), b: chance(listB, key) }))
    .sort((first, second) => largest(second) - largest(first));
}

/** Where the two outputs part: the place of the first generated token that differs; null if none does. */
export function splitPosition(a: LookDocument, b: LookDocument): number | null {
  const [left, right] = [generated(a), generated(b)];
  const length = Math.min(left.length, right.length);
  for (let i = 0; i < length; i++) if (keyOf(left[i]) !== keyOf(right[i])) return i;
  return null;
}

function findSplit(a: LookDocument, b: LookDocument): Split | null {
  const at = splitPosition(a, b);
  if (at === null) return null;
  const sides = [a, b].map((doc) => generated(doc)[at]);
  const chance = (doc: LookDocument, token: Token) =>
    nextTokens(doc, at).find((item) => item.key === keyOf(token))?.probability ?? null;
  const side = (doc: LookDocument, own: Token, other: Token) => ({
    text: tokenLabel(own),
    probability: Math.exp(own.logprob ?? -Infinity),
    ofOther: chance(doc, other),
  });
  return {
    before: joinTokens(generated(a).slice(0, at), 400),
    a: side(a, sides[0], sides[1]),
    b: side(b, sides[1], sides[0]),
  };
}

/** Pairs of places: equal items, and items between them if as many were replaced as there are instead. */
export function pairUp(a: readonly string[], b: readonly string[]): [number, number][] {
  const pairs: [number, number][] = [];
  let [removed, added]: [number[], number[]] = [[], []];
  const close = () => {
    if (removed.length === added.length) removed.forEach((place, i) => pairs.push([place, added[i]]));
    [removed, added] = [[], []];
  };
  for (const edit of diff(a, b)) {
    if (edit.kind === "removed") removed.push(edit.a);
    else if (edit.kind === "added") added.push(edit.b);
    else {
      close();
      pairs.push([edit.a, edit.b]);
    }
  }
  close();
  return pairs;
}

/** The weights of B minus those of A, for the rows and columns that stand for each other. */
export interface Difference {
  rows: Unit[];
  columns: Unit[];
  rowPairs: [number, number][];
  columnPairs: [number, number][];
  values: Float32Array;
}

export function subtractMaps(a: Matrix, b: Matrix): Difference {
  const labels = (units: Unit[]) => units.map((unit) => unit.label);
  const rowPairs = pairUp(labels(a.rows), labels(b.rows));
  const columnPairs = pairUp(labels(a.columns), labels(b.columns));
  const name = (left: Unit, right: Unit): Unit =>
    left.label === right.label ? left : { ...left, label: `${left.label} → ${right.label}` };
  const values = new Float32Array(rowPairs.length * columnPairs.length);
  rowPairs.forEach(([i, j], row) =>
    columnPairs.forEach(
      ([k, l], column) => (values[row * columnPairs.length + column] = b.value(j, l) - a.value(i, k)),
    ),
  );
  return {
    rows: rowPairs.map(([i, j]) => name(a.rows[i], b.rows[j])),
    columns: columnPairs.map(([i, j]) => name(a.columns[i], b.columns[j])),
    rowPairs,
    columnPairs,
    values,
  };
}

const words = (count: number) => `${count} ${count === 1 ? "word" : "words"}`;
const differ = (count: number) => `${words(count)} ${count === 1 ? "differs" : "differ"}`;
const short = (text: string) => quote(showText(text.trim() || "␣", 40));

/** The comparison in a few sentences. */
export function describeComparison(comparison: Comparison): string[] {
  const { isSameModel, isSameInput, input, output, sure, split } = comparison;
  const facts: string[] = [];
  const models = isSameModel ? "One model" : "Two models";
  if (isSameInput) facts.push(`${models}, the same input.`);
  else facts.push(`${models}, two inputs: ${differ(Math.max(1, countDifferent(input)))}.`);
  facts.push(describeOutputs(output));
  const [a, b] = sure;
  if (a && b && a.kind === b.kind) facts.push(describeSure(a, b));
  if (split) facts.push(describeSplit(split));
  const moved = largestChange(output);
  if (moved && Math.abs(moved.b!.probability - moved.a!.probability) >= 0.01) {
    const kind = moved.b!.probability > moved.a!.probability ? "likelier" : "less likely";
    const [from, to] = [moved.a!, moved.b!].map((word) => showPercent(word.probability));
    facts.push(
      `Of the words in both outputs, ${short(moved.a!.text)} changes most: ${kind} in B, ${to} instead of ${from}.`,
    );
  }
  return facts;
}

function describeOutputs(output: WordPair[]): string {
  const changed = output.filter((pair) => pair.kind !== "same");
  if (output.length === 0) return "Both outputs are empty.";
  if (changed.length === 0) return "The outputs are the same.";
  const [a, b] = [changed.filter((pair) => pair.a), changed.filter((pair) => pair.b)];
  if (output.length === 2 && a.length === 1 && b.length === 1)
    return `A says ${short(a[0].a!.text)}, B says ${short(b[0].b!.text)}.`;
  const longest = Math.max(output.filter((pair) => pair.a).length, output.filter((pair) => pair.b).length);
  const count = Math.max(a.length, b.length);
  return `${count} of ${words(longest)} of the output ${count === 1 ? "differs" : "differ"}.`;
}

function describeSure(a: Certainty, b: Certainty): string {
  const [from, to] = [showPercent(a.value), showPercent(b.value)];
  const unit = a.kind === "token" ? " per token" : "";
  if (from === to) {
    const times = Math.max(a.value, b.value) / Math.max(Math.min(a.value, b.value), Number.MIN_VALUE);
    if (times < 1.5) return `A and B are equally sure: ${from}${unit}.`;
    const side = a.value > b.value ? "A" : "B";
    return `${side} is surer: its output is about ${showFactor(times)} times as likely (both ${from}${unit}).`;
  }
  return a.value < b.value ? `B is surer: ${to}${unit} instead of ${from}.` : `A is surer: ${from}${unit}, B ${to}.`;
}

const showFactor = (times: number) =>
  times < 10 ? times.toFixed(1) : times < 1e6 ? Math.round(times).toLocaleString("en") : "a million or more";

function describeSplit({ before, a, b }: Split): string {
  const start = before ? `After ${short(before)}` : "At the start";
  const listed = (chance: number | null, side: string, text: string) =>
    chance === null ? "" : ` (${side} gives ${short(text)} ${showPercent(chance)})`;
  const left = `A writes ${short(a.text)} with ${showPercent(a.probability)}${listed(b.ofOther, "B", a.text)}`;
  const right = `B writes ${short(b.text)} with ${showPercent(b.probability)}${listed(a.ofOther, "A", b.text)}`;
  return `${start}, ${left}; ${right}.`;
}

/** The word of both outputs whose probability changes most. */
export function largestChange(output: WordPair[]): WordPair | null {
  const change = (pair: WordPair) => Math.abs(pair.b!.probability - pair.a!.probability);
  const same = output.filter((pair) => pair.kind === "same");
  return same.length ? same.reduce((best, pair) => (change(pair) > change(best) ? pair : best)) : null;
}

/** What is compared in the maps, and what has no counterpart. */
export function describePairs(difference: Difference, a: Matrix, b: Matrix): string {
  const missing = (pairs: unknown[], left: Unit[], right: Unit[]) => left.length + right.length - 2 * pairs.length;
  const rows = missing(difference.rowPairs, a.rows, b.rows);
  const columns = missing(difference.columnPairs, a.columns, b.columns);
  if (rows + columns === 0) return "Every cell of A is compared with one of B.";
  const count = (number: number, name: string) => (number ? [`${number} ${name}${number === 1 ? "" : "s"}`] : []);
  const list = [...count(rows, "row"), ...count(columns, "column")].join(" and ");
  return `Rows and columns are paired by equal tokens; ${list} without a counterpart ${rows + columns === 1 ? "is" : "are"} left out.`;
}
