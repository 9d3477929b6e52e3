// What the model computed for a sentence and its translation: the worker sends it, and look_document.ts shows it.

import type { GroupName, SequenceName, Token, TokenInfo } from "../document.ts";

/** The attention weights of a layer, (heads, rows, columns). */
export interface AttentionWeights {
  heads: number;
  rows: number;
  columns: number;
  weights: Float32Array;
}

export interface Replay {
  text: string;
  output: string;
  /** Number of tokens of each vocabulary. */
  sizes: Record<SequenceName, number>;
  source: Token[];
  /** bos, and the tokens that were generated. */
  target: Token[];
  /** At each generated place the most probable tokens with their log-probabilities, best first. */
  candidates: [number, number][][];
  /** The tokens that `candidates` mentions. */
  vocabulary: Record<string, TokenInfo>;
  attention: Record<GroupName, AttentionWeights[]>;
}
