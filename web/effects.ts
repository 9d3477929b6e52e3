// What switching heads off does to the output, in numbers and in words. Pure functions of the document.

import type { Ablation, GroupName, LookDocument, Prediction, Token } from "./document.ts";
import { joinTokens } from "./tokens.ts";
import { quote, showPercent } from "./views/common.ts";

export interface HeadEffect {
  /** "group.layer.head", counted from 0 as in the document. */
  key: string;
  group: GroupName;
  layer: number;
  head: number;
  /** ln p of the output without the head, minus ln p with it. */
  delta: number;
}

/** A word or label of the output and its probability with all heads and without some. */
export interface OutputChange {
  /** Tokens of the word, as places of `outputs`. */
  outputs: number[];
  label: string;
  before: number;
  after: number;
}

const NOTHING = 0.005; // a change of ln p that is too small to speak of: half a percent
const CLEAR = Math.log(1.05); // smaller changes have no number in a cell, and no button

export function listEffects(data: Ablation): HeadEffect[] {
  return Object.entries(data.delta).flatMap(([group, table]) =>
    table.flatMap((row, layer) =>
      row.flatMap((delta, head) =>
        delta === null ? [] : [{ key: `${group}.${layer}.${head}`, group: group as GroupName, layer, head, delta }],
      ),
    ),
  );
}

/** The head without which the output loses most; null if no head is needed. */
export function findNeeded(data: Ablation): HeadEffect | null {
  const worst = listEffects(data).reduce<HeadEffect | null>((a, b) => (a && a.delta <= b.delta ? a : b), null);
  return worst && worst.delta <= -CLEAR ? worst : null;
}

/** The head without which the output gains most; null if there is none. */
export function findHarmful(data: Ablation): HeadEffect | null {
  const best = listEffects(data).reduce<HeadEffect | null>((a, b) => (a && a.delta >= b.delta ? a : b), null);
  return best && best.delta >= CLEAR ? best : null;
}

export const hasEffect = (delta: number) => Math.abs(delta) >= NOTHING;

/** The probability of the output with all heads, and after a change of its logarithm. */
export function probabilities(data: Ablation, delta: number): { before: number; after: number } {
  return { before: Math.exp(data.baseline), after: Math.exp(data.baseline + delta) };
}

/** "Without this head the probability of the translation falls from 51 % to 6 %." */
export function effectSentence(data: Ablation, delta: number, heads = 1): string {
  const without = heads === 1 ? "Without this head" : `Without these ${heads} heads`;
  const { before, after } = probabilities(data, delta);
  const [from, to] = [showPercent(before), showPercent(after)];
  if (!hasEffect(delta))
    return `${without} ${data.output} stays as probable: ${heads === 1 ? "it does" : "they do"} nothing here that the other heads do not replace.`;
  if (from === to) return `${without} ${data.output} is ${times(delta)} ${delta < 0 ? "less" : "more"} probable.`;
  return `${without} the probability of ${data.output} ${delta < 0 ? "falls" : "rises"} from ${from} to ${to}.`;
}

/** "about 18,000 times": two significant digits. */
export function times(delta: number): string {
  const factor = Math.exp(Math.abs(delta));
  if (factor < 10) return `${factor.toFixed(factor < 1.095 ? 2 : 1)} times`;
  const rounded = Number(factor.toPrecision(2));
  return `about ${rounded < 1e9 ? rounded.toLocaleString("en") : rounded.toExponential(0)} times`;
}

/** The factor of the probability in a cell: ÷8.0 or ×1.2. */
export function cellText(delta: number): string {
  const factor = Math.exp(Math.abs(delta));
  const short =
    factor < 100
      ? factor.toPrecision(2)
      : factor < 1e4
        ? factor.toFixed(0)
        : `e${(Math.abs(delta) / Math.LN10).toFixed(0)}`;
  return Math.abs(delta) < CLEAR ? "" : (delta < 0 ? "÷" : "×") + short.replace(/^e/, "1e");
}

export const signed = (value: number) => (value < 0 ? "−" : "+") + Math.abs(value).toFixed(2);

/** The words of a generated output, each with its probability before and after; tokens of one word are multiplied. */
export function wordChanges(doc: LookDocument, deltas: (number | null)[]): OutputChange[] {
  const places = doc.ablation?.outputs ?? [];
  const target = doc.sequences.target ?? [];
  const words: (OutputChange & { tokens: Token[]; total: number; change: number })[] = [];
  places.forEach((place, i) => {
    const token = place === null ? undefined : target[place];
    if (!token || token.logprob === undefined) return;
    const last = words.at(-1);
    const [total, change] = [token.logprob ?? -Infinity, deltas[i] ?? -Infinity];
    if (last && token.word !== null && last.tokens[0].word === token.word) {
      last.tokens.push(token);
      last.outputs.push(i);
      last.total += total;
      last.change += change;
    } else words.push({ tokens: [token], outputs: [i], total, change, label: "", before: 0, after: 0 });
  });
  return words.map(({ tokens, outputs, total, change }) => ({
    outputs,
    label: tokens[0].role === "special" ? tokens[0].text : joinTokens(tokens, 60),
    before: Math.exp(total),
    after: Math.exp(total + change),
  }));
}

/** The word that loses most, as a factor; null if none loses anything to speak of. */
export function findHurtWord(words: OutputChange[]): OutputChange | null {
  const loss = (word: OutputChange) => Math.log(word.after / word.before);
  const worst = words.reduce<OutputChange | null>((a, b) => (a && loss(a) <= loss(b) ? a : b), null);
  return worst && worst.before > 0 && loss(worst) <= -NOTHING ? worst : null;
}

/** The name of a label, which may be only a number. */
export const nameLabel = (label: string) => (/^\d+$/.test(label.trim()) ? `Label ${label.trim()}` : label.trim());

/** "Ankle boot 74 % → Sandal 51 %" for each place whose best label changes, or for the only place. */
export function labelChanges(doc: LookDocument, after: Prediction[]): string[] {
  const show = ({ labels, probabilities }: Prediction) => `${nameLabel(labels[0])} ${showPercent(probabilities[0])}`;
  return doc.predictions.flatMap((before, i) => {
    const now = after[i];
    if (!now?.labels.length || !before.labels.length) return [];
    if (doc.predictions.length > 1 && before.labels[0] === now.labels[0]) return [];
    const token = before.position === null ? undefined : doc.sequences.source?.[before.position];
    const place = token && token.role === "text" ? `${quote(joinTokens([token], 30))}: ` : "";
    return [`${place}${show(before)} → ${show(now)}`];
  });
}
