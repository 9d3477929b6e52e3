// The document of src/regard/look/document.py, whose docstring is the reference, and the decoding of its arrays.

export type GroupName = "encoder.self" | "decoder.self" | "decoder.cross";
export type Statistic = "entropy" | "distance" | "previous" | "first";
export type SequenceName = "source" | "target";
export type Table = (number | null)[][];

export interface Blob8 {
  dtype: "u8" | "i8" | "i32" | "f32";
  curve: "sqrt" | "linear";
  scale: number;
  shape: number[];
  data: string;
}

export interface Model {
  family: "encoder_decoder" | "decoder_only" | "encoder_only";
  task: string;
  name: string;
  width: number;
  layers: Record<string, number>;
  heads: Record<string, number>;
  positions: Record<string, string>;
  parameters: number;
  vocabulary: Record<string, number>;
  sha256: string;
  regard: string;
}

export interface TokenInfo {
  text: string;
  role: "text" | "special";
  bytes?: string;
}

export interface Token extends TokenInfo {
  id: number;
  word: number | null;
  logprob?: number | null;
  prompt?: boolean;
}

export interface Group {
  name: GroupName;
  layers: number;
  heads: number;
  rows: SequenceName;
  row_start: number;
  row_count: number;
  columns: SequenceName;
  column_count: number;
  statistics: Record<Statistic, Table>;
  sampled_rows: number | null;
  default_head: [number, number];
  thumbnails: string;
  maps: Record<string, string>;
  errors: Table;
}

export type Status = "open" | "finished" | "dropped" | "beaten";

export interface Search {
  settings: Record<string, unknown>;
  parent: number[];
  step: number[];
  token: number[];
  logprob: (number | null)[];
  total: (number | null)[];
  score: (number | null)[];
  status: Status[];
  winners: number[];
  lineage: number[];
  end: string | null;
  winner_step: number;
  last_step: number;
  continuations: Record<string, Continuation>;
}

export interface Continuation {
  tokens: number[];
  forced: number;
  logprobs: (number | null)[];
  text: string;
  score: number;
}

export interface Race {
  tokens: number[];
  probabilities: number[];
  times: number[];
  contenders: number;
}

export interface SamplingStep {
  position: number;
  token: number;
  logprob: number | null;
  race: Race | null;
  logits: string | null;
}

export interface Sampling {
  filters: Record<string, number | null>;
  filter_order: string[];
  seed: number | null;
  suppressed: number[];
  steps: SamplingStep[];
}

/** The most probable tokens at each generated position: entry i belongs to place `first` + i of "target". */
export interface NextTokens {
  first: number;
  tokens: number[][];
  probabilities: number[][];
}

/** What each output read: row i of `weights` belongs to generated token i or to prediction i. */
export interface Reads {
  group: GroupName;
  heads: [number, number][];
  weights: string;
}

export interface Ablation {
  output: string;
  baseline: number;
  delta: Record<GroupName, Table>;
  texts: Record<string, string>;
  outputs?: (number | null)[];
  token_deltas?: Partial<Record<GroupName, string>>;
  predictions?: Record<string, Prediction[]>;
}

/** What is known of a set of heads that are off. */
export interface AblatedOutput {
  text?: string;
  delta?: number;
  token_deltas?: (number | null)[];
  predictions?: Prediction[];
}

export interface Attribution {
  outputs: (number | null)[];
  source_columns: number;
  target_columns: number;
  methods: Record<string, string>;
  logits: number[];
  baseline_logits: number[];
  completeness: number[];
  steps: number;
}

export interface Hypothesis {
  candidate: number;
  text: string;
  score: number;
  tokens: Token[];
  cross: string;
  links: [number, number][];
  /** The heads that align best; a page of an earlier version has none. */
  link_heads: [number, number][];
}

export interface MaskTerm {
  kind: "causal" | "window" | "padding" | "documents";
  width?: number;
  valid?: boolean[];
  documents?: number[];
}

export interface LeakTest {
  prefix: number;
  replaced: number;
  change: number;
  later_change: number;
}

export interface MaskView {
  group: GroupName;
  rows: number;
  columns: number;
  terms: MaskTerm[];
  leak: LeakTest | null;
}

export interface Positions {
  stack: "encoder" | "decoder";
  kind: "none" | "sinusoidal" | "learned" | "rotary" | "alibi" | "relative";
  length: number;
  max_positions: number | null;
  width?: number;
  base?: number;
  interleaved?: boolean;
  key_dim?: number;
  slopes?: number[];
  vectors?: string;
  offsets?: number[];
  curves?: string;
}

export interface Prediction {
  position: number | null;
  labels: string[];
  probabilities: number[];
}

export interface Merges {
  words: string[];
  counts: number[];
  start: string[][];
  steps: { left: string; right: string; count: number; words: string[][] }[];
}

export interface Picture {
  kind: "image" | "spectrogram";
  pixels: string;
  grid: [number, number];
  cell: [number, number];
  first: number;
  seconds?: number;
  rate?: number;
  audio?: string;
}

/** What a reader can enter in a live page. */
export interface Session {
  number: number;
  models: string[];
  model: number;
  against_model: number;
  max_characters: number;
  blame?: boolean;
}

export interface LookDocument {
  format: string;
  live: boolean;
  text: string;
  output: string;
  model: Model;
  sequences: Partial<Record<SequenceName, Token[]>>;
  vocabulary: Record<string, TokenInfo>;
  attention: Group[];
  search: Search | null;
  sampling: Sampling | null;
  /** Of models that generate; a page of an earlier version has none. */
  next?: NextTokens;
  reads?: Reads;
  ablation: Ablation | null;
  attribution: Attribution | null;
  hypotheses: Hypothesis[];
  predictions: Prediction[];
  masks: MaskView[];
  positions: Positions[];
  merges: Merges | null;
  picture?: Picture;
  /** What this document is compared with; it has only the parts that a comparison shows. */
  against?: LookDocument;
  session?: Session;
  notes: string[];
  blobs: Record<string, Blob8>;
}

/** Fill in what a document of an earlier version lacks, and let every group open at its head with the largest effect. */
export function completeDocument(doc: LookDocument): void {
  const cross = doc.attention.find((group) => group.name === "decoder.cross");
  for (const hypothesis of doc.hypotheses) hypothesis.link_heads ??= cross ? [cross.default_head] : [];
  for (const group of doc.attention) group.default_head = largestEffect(doc, [group])?.place ?? group.default_head;
  if (doc.against) completeDocument(doc.against);
}

/** How much the output's log probability changes without a head. */
export interface Effect {
  group: Group;
  place: [number, number];
  delta: number;
}

/** The head without which the output loses most, or if none matters the one that changes it most. */
export function largestEffect(doc: LookDocument, groups: Group[]): Effect | null {
  const all = groups.flatMap((group) =>
    (doc.ablation?.delta[group.name] ?? []).flatMap((row, layer) =>
      row.flatMap((delta, head) =>
        delta === null ? [] : [{ group, place: [layer, head] as [number, number], delta }],
      ),
    ),
  );
  if (all.length === 0) return null;
  const worst = all.reduce((best, item) => (item.delta < best.delta ? item : best));
  return worst.delta < 0 ? worst : all.reduce((best, item) => (item.delta > best.delta ? item : best));
}

/** A decoded array: `codes` as stored; curve "sqrt" means (code / 255) ** 2. */
export interface Decoded {
  shape: number[];
  codes: Uint8Array | Int8Array | Int32Array | Float32Array;
  scale: number;
}

/** The value of each code of curve "sqrt". */
export const SQUARES = Float32Array.from({ length: 256 }, (_, code) => (code / 255) ** 2);

/** The code of a weight from 0 to 1. */
export function encodeSqrt(value: number): number {
  return Math.round(Math.sqrt(Math.min(1, Math.max(0, value))) * 255);
}

export async function decodeBlob(blob: Blob8): Promise<Decoded> {
  const binary = atob(blob.data);
  const compressed = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) compressed[i] = binary.charCodeAt(i);
  const stream = new Blob([compressed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const buffer = await new Response(stream).arrayBuffer();
  const codes = {
    u8: () => new Uint8Array(buffer),
    i8: () => new Int8Array(buffer),
    i32: () => new Int32Array(buffer),
    f32: () => new Float32Array(buffer),
  }[blob.dtype]();
  const expected = blob.shape.reduce((product, size) => product * size, 1);
  if (codes.length !== expected) throw new Error(`A blob has ${codes.length} numbers, its shape says ${expected}.`);
  return { shape: blob.shape, codes, scale: blob.scale };
}

/** Values that arrive later: `read` returns undefined until then and calls `arrived` once they are there. */
export class Loader<T> {
  private values = new Map<string, T | Error | undefined>();

  constructor(
    private load: (key: string) => Promise<T>,
    private arrived: () => void,
    private limit = Infinity,
  ) {}

  read(key: string): T | undefined {
    const value = this.entry(key);
    return value instanceof Error ? undefined : value;
  }

  /** Whether a value was asked for. */
  has(key: string): boolean {
    return this.values.has(key);
  }

  /** Why a value could not be loaded. */
  problem(key: string): string | null {
    const value = this.values.get(key);
    return value instanceof Error ? value.message : null;
  }

  private entry(key: string): T | Error | undefined {
    if (this.values.has(key)) {
      const value = this.values.get(key);
      this.values.delete(key); // the last entry of a Map is the one used last
      this.values.set(key, value);
      return value;
    }
    this.values.set(key, undefined);
    if (this.values.size > this.limit) this.values.delete(this.values.keys().next().value!);
    this.load(key)
      .catch((error: unknown) => (error instanceof Error ? error : new Error(String(error))))
      .then((value) => {
        this.values.set(key, value);
        this.arrived();
      });
    return undefined;
  }
}
