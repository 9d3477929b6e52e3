// What happened, step by step: what was read for each output, what was written, and how sure the model was.

import { type Decoded, type GroupName, type LookDocument, SQUARES, type Token } from "./document.ts";
import { type Unit, makeUnits } from "./matrix.ts";
import { describeUntagged, findTold } from "./tags.ts";
import { joinTokens, showText, tokenLabel } from "./tokens.ts";
import { quote, showPercent } from "./views/common.ts";

export interface Bar {
  label: string;
  probability: number;
  isChosen: boolean;
}

/** A word that was written, or a label, tag or filled gap. */
export interface Output {
  label: string;
  /** Where it stands: places in "target", or the place of a gap or tag in "source"; none for a label. */
  places: number[];
  /** The place at which it is chosen: its first token that is more than a space. */
  lead: number;
  /** Which of the document's predictions it is; -1 for a word that was written. */
  prediction: number;
  probability: number;
  /** Its tokens, each with its probability. */
  tokens: { label: string; probability: number }[];
  /** Whether it has a letter or a digit. */
  isWord: boolean;
  /** What the model could have chosen instead, at `lead`. */
  bars: Bar[];
  /** How much each input counted: its share of the attention, or of all effects, below 0 if it speaks against it. */
  shares: number[];
  /** Share of the attention on special tokens. */
  special: number;
}

export interface Step {
  /** The output that this step shows, and whether it is written yet. */
  output: number;
  isWritten: boolean;
  /** The inputs that are marked. */
  inputs: number[];
  text: string;
}

export interface Story {
  /** Words, patches or time steps; `members` are columns of the attention. */
  inputs: Unit[];
  /** Whether each input has a letter or a digit. */
  areWords: boolean[];
  outputs: Output[];
  steps: Step[];
  /** Whether the output is written (generated) rather than decided. */
  isWritten: boolean;
  /** Whether a writer reads its own words. */
  looksBack: boolean;
  evidence: "attention" | "attribution" | null;
}

/** Read an array of the document; undefined while it is on the way. */
export type ReadBlob = (name: string) => Decoded | undefined;

export const MAX_OUTPUTS = 256; // words of a longer text have no step
const MAX_SHOWN = 6; // inputs of a step that are marked
const COVERED = 0.75; // they stop at this share
const MIN_SHARE = 0.03;
const ORDER: GroupName[] = ["decoder.cross", "decoder.self", "encoder.self"];

/** The first generated place of "target"; -1 if nothing was generated. */
export const firstGenerated = (doc: LookDocument): number =>
  (doc.sequences.target ?? []).findIndex((token) => token.logprob !== undefined);

export const hasStory = (doc: LookDocument): boolean =>
  doc.merges === null && (firstGenerated(doc) >= 0 || doc.predictions.some((item) => item.labels.length > 0));

export function makeStory(doc: LookDocument, read: ReadBlob): Story {
  const first = firstGenerated(doc);
  const isWritten = first >= 0;
  const evidence = findEvidence(doc, read, first);
  const inputs = makeUnits(evidence.columns, true, false);
  const outputs = isWritten ? makeWords(doc, first) : makePredictions(doc);
  outputs.forEach((output) => {
    // A word is chosen at its first token, so that is where reading counts.
    const values = evidence.row(isWritten ? output.lead - first : output.prediction);
    if (!values) return;
    const sums = inputs.map(({ members }) => members.reduce((sum, column) => sum + values[column], 0));
    const effect = sums.reduce((sum, value) => sum + Math.abs(value), 0) || 1;
    output.shares = sums.map((value) => (evidence.kind === "attribution" ? value / effect : value));
    if (evidence.kind === "attention")
      evidence.columns.forEach((token, column) => (output.special += token.role === "special" ? values[column] : 0));
  });
  const looksBack = isWritten && evidence.group === "decoder.self";
  const areWords = inputs.map(({ members }) => hasLetter(members.map((column) => evidence.columns[column])));
  const story = { inputs, areWords, outputs, isWritten, looksBack, evidence: evidence.kind };
  const isDecision = !isWritten && outputs.length === 1;
  const steps = isDecision ? makeDecision(doc, story) : makeSteps(doc, story);
  const others = isWritten ? "" : describeUntagged(findTold(doc).untagged);
  if (others && steps.length) steps[steps.length - 1].text += ` ${others}`;
  return { ...story, steps };
}

interface Evidence {
  kind: Story["evidence"];
  group?: GroupName;
  columns: Token[];
  /** Values of all columns for an output: token or prediction i. */
  row(i: number): ArrayLike<number> | null;
}

/** What the model read for its outputs: the effect of each token if it was measured for decisions, else attention. */
function findEvidence(doc: LookDocument, read: ReadBlob, first: number): Evidence {
  const { attribution, sequences, reads } = doc;
  if (first < 0 && attribution && attribution.outputs.length >= doc.predictions.length) {
    const matrix = read(attribution.methods["integrated_gradients"]);
    const count = attribution.source_columns + attribution.target_columns;
    const columns = [...(sequences.source ?? []), ...(sequences.target ?? [])].slice(0, count);
    return { kind: "attribution", columns, row: (i) => matrix?.codes.slice(i * count, (i + 1) * count) ?? null };
  }
  const group = doc.attention.find(({ name }) => name === (reads?.group ?? ORDER.find((item) => hasGroup(doc, item))));
  if (!group) return { kind: null, columns: [], row: () => null };
  const count = group.column_count;
  const columns = (sequences[group.columns] ?? []).slice(0, count);
  const toValues = (codes: Decoded["codes"], row: number) => {
    const part = codes.slice(row * count, (row + 1) * count);
    return part instanceof Uint8Array ? Float32Array.from(part, (code) => SQUARES[code]) : part;
  };
  const matrix = reads ? read(reads.weights) : read(group.maps[group.default_head.join(".")] ?? group.thumbnails);
  const row = (i: number) => {
    if (!matrix || matrix.shape.length !== 2) return null;
    if (reads) return i < matrix.shape[0] ? toValues(matrix.codes, i) : null;
    // A document of an earlier version has maps only: the row that generates a token, of a gap, or of the class token.
    const place = first >= 0 ? first + i - 1 : (doc.predictions[i].position ?? 0);
    return toValues(matrix.codes, place);
  };
  return { kind: "attention", group: group.name, columns, row };
}

const hasGroup = (doc: LookDocument, name: GroupName) => doc.attention.some((group) => group.name === name);
const hasLetter = (tokens: Token[]) => tokens.some(({ text }) => /[\p{L}\p{N}]/u.test(text));
const chance = (logprob: number | null | undefined) => Math.exp(logprob ?? -Infinity);

/** The words that were generated, each with its tokens; of one or two words the tokens. */
function makeWords(doc: LookDocument, first: number): Output[] {
  const target = doc.sequences.target!;
  const words = makeUnits(target.slice(first), true, false);
  const units = words.length < 3 ? makeUnits(target.slice(first), false, false) : words;
  return units.slice(0, MAX_OUTPUTS).map(({ label, members }) => {
    const places = members.map((member) => first + member);
    const tokens = places.map((place) => ({
      label: tokenLabel(target[place]),
      probability: chance(target[place].logprob),
    }));
    const probability = tokens.reduce((product, token) => product * token.probability, 1);
    const lead = places.find((place) => target[place].text.trim() !== "") ?? places[0];
    const isWord = hasLetter(places.map((place) => target[place]));
    const bars = makeBars(doc, lead);
    return { label, places, lead, prediction: -1, probability, tokens, isWord, bars, shares: [], special: 0 };
  });
}

/** The most probable tokens at a place, and the one that was generated. */
function makeBars(doc: LookDocument, place: number): Bar[] {
  const token = doc.sequences.target![place];
  const at = place - (doc.next?.first ?? 0);
  const bars = (doc.next?.tokens[at] ?? []).map((id, i) => ({
    label: tokenLabel(doc.vocabulary[id]),
    probability: doc.next!.probabilities[at][i],
    isChosen: id === token.id,
  }));
  if (bars.some((bar) => bar.isChosen)) return bars;
  return [...bars, { label: tokenLabel(token), probability: chance(token.logprob), isChosen: true }];
}

function makePredictions(doc: LookDocument): Output[] {
  const { told } = findTold(doc);
  return told.slice(0, MAX_OUTPUTS).map((prediction) => {
    const { position, labels, probabilities } = doc.predictions[prediction];
    const names = labels.map((label) => showText(label.trim() || "␣", 24));
    const bars = names.map((label, i) => ({ label, probability: probabilities[i], isChosen: i === 0 })).slice(0, 8);
    const label = names[0] ?? "–";
    const probability = probabilities[0] ?? 0;
    const places = position === null ? [] : [position];
    const rest = { tokens: [], isWord: true, bars, shares: [], special: 0 };
    return { label, places, lead: -1, prediction, probability, ...rest };
  });
}

type Parts = Omit<Story, "steps">;

/** The inputs that counted most, until they cover most of what counts. */
function strongestInputs(shares: number[]): number[] {
  let covered = 0;
  return shares
    .map((share, input) => ({ size: Math.abs(share), input }))
    .filter(({ size }) => size >= MIN_SHARE)
    .sort((a, b) => b.size - a.size)
    .slice(0, MAX_SHOWN)
    .filter(({ size }) => (covered += size) - size < COVERED)
    .map(({ input }) => input);
}

function makeSteps(doc: LookDocument, story: Parts): Step[] {
  return story.outputs.map((output, i) => {
    const inputs = strongestInputs(output.shares);
    return { output: i, isWritten: true, inputs, text: tellOutput(doc, story, output, inputs) };
  });
}

/** One decision: first what was read, one input after the other, then the label. A clip is read along its time. */
function makeDecision(doc: LookDocument, story: Parts): Step[] {
  const [output] = story.outputs;
  const inputs = strongestInputs(output.shares);
  if (doc.picture?.kind === "spectrogram") inputs.sort((a, b) => a - b);
  const steps = inputs.map((input, i) => ({
    output: 0,
    isWritten: false,
    inputs: inputs.slice(0, i + 1),
    text: `${tellInput(doc, story, output, input)}.`.replace(/^it/, "It"),
  }));
  const place = output.places.length ? nameplace(doc, output.places[0]) : "the answer";
  const text = `It decides: ${place} is ${quote(output.label)} (${showPercent(output.probability)} sure).`;
  return [...steps, { output: 0, isWritten: true, inputs, text }];
}

function tellOutput(doc: LookDocument, story: Parts, output: Output, [best]: number[]): string {
  const sure = `${quote(output.label)} (${showPercent(output.probability)} sure)`;
  const read = best === undefined ? "" : tellInput(doc, story, output, best);
  if (!story.isWritten) {
    const place = nameplace(doc, output.places[0]);
    return `It decides: ${place} is ${sure}${read ? `; ${read}` : ""}.`;
  }
  const special = output.special > (output.shares[best] ?? 0);
  const start = special
    ? `It reads mostly special tokens (${showPercent(output.special)})${read ? `, then ${nameInput(doc, story, best)} (${showPercent(output.shares[best])}),` : ""}`
    : `It${read.slice(2)}`;
  return read || special ? `${start} and writes ${sure}.` : `It writes ${sure}.`;
}

/** "it reads “dogs” (93 %)", or what a word counts for. */
function tellInput(doc: LookDocument, story: Parts, output: Output, input: number): string {
  const [name, share] = [nameInput(doc, story, input), output.shares[input]];
  const percent = showPercent(Math.abs(share));
  if (story.evidence === "attribution")
    return `${name} speaks ${share > 0 ? "for" : "against"} it (${percent} of all effects)`;
  return `it ${story.looksBack ? "looks back at" : "reads"} ${name} (${percent})`;
}

/** A word in quotes; a patch or a time as it is. */
export function nameInput(doc: LookDocument, { inputs, looksBack }: Parts, input: number): string {
  const { label } = inputs[input];
  if (!doc.picture || looksBack) return quote(label);
  return doc.picture.kind === "image" ? label : `the sound at ${label}`;
}

/** The place of a gap or a tag. */
export function nameplace(doc: LookDocument, place: number): string {
  const token = doc.sequences.source?.[place];
  if (token?.role !== "special") {
    const tokens = doc.sequences.source ?? [];
    return quote(joinTokens(tokens.filter(({ word }) => word !== null && word === token?.word)) || "?");
  }
  const gaps = doc.predictions.filter((item) => item.position !== null);
  return gaps.length > 1 ? `gap ${gaps.findIndex((item) => item.position === place) + 1}` : "the gap";
}
