// The document of src/regard/look/document.py for a sentence and its translation, made in the browser.
//
// It has what the story and the heads show. What needs many more runs of the model (ablation, attribution, the recorded
// search) is left out. Arrays are not encoded as text: `blobs` has them as the views read them.

import type { Decoded, Group, GroupName, LookDocument, SequenceName, Token } from "../document.ts";
import { encodeSqrt } from "../document.ts";
import { type HeadSummary, summarizeHead, thumbnailSize } from "./head_statistics.ts";
import type { Description } from "./model.ts";
import type { AttentionWeights, Replay } from "./replay.ts";

const MIN_SHARE = 0.8; // of the best head's score, and at most six heads: src/regard/look/alignment.py
const MAX_ALIGNING = 6;

export interface Inside {
  doc: LookDocument;
  blobs: Map<string, Decoded>;
  /** The exact weights of a row. */
  row(group: string, layer: number, head: number, row: number): number[];
}

type Part = Pick<Description, "d_model" | "parameters">;

export function makeInside(replay: Replay, { d_model, parameters }: Part): Inside {
  const blobs = new Map<string, Decoded>();
  const sequences = { source: replay.source, target: replay.target };
  const names: GroupName[] = ["encoder.self", "decoder.self", "decoder.cross"];
  const attention = names.map((name) => makeGroup(name, replay.attention[name], sequences, blobs));
  const layers = { encoder: attention[0].layers, decoder: attention[1].layers };
  const cross = replay.attention["decoder.cross"];
  const heads = findAligningHeads(cross, replay.source, replay.target.slice(1));
  blobs.set("reads", meanOf(cross, heads));
  const doc: LookDocument = {
    format: "regard-look/1",
    live: true, // exact rows are here
    text: replay.text,
    output: replay.output,
    model: {
      family: "encoder_decoder",
      task: "translation",
      name: "MODEL",
      width: d_model,
      layers,
      heads: Object.fromEntries(attention.map((group) => [group.name, group.heads])),
      positions: {},
      parameters,
      vocabulary: replay.sizes,
      sha256: "",
      regard: "",
    },
    sequences,
    vocabulary: replay.vocabulary,
    attention,
    search: null,
    sampling: null,
    next: {
      first: 1,
      tokens: replay.candidates.map((best) => best.map(([id]) => id)),
      probabilities: replay.candidates.map((best) => best.map(([, logprob]) => Math.exp(logprob))),
    },
    reads: { group: "decoder.cross", heads, weights: "reads" },
    ablation: null,
    attribution: null,
    hypotheses: [],
    predictions: [],
    masks: [],
    positions: [],
    merges: null,
    notes: [],
    blobs: {},
  };
  const row = (group: string, layer: number, head: number, index: number) => {
    const { rows, columns, weights } = replay.attention[group as GroupName][layer];
    const start = (head * rows + index) * columns;
    return Array.from(weights.subarray(start, start + columns));
  };
  return { doc, blobs, row };
}

function makeGroup(
  name: GroupName,
  layers: AttentionWeights[],
  sequences: Record<SequenceName, Token[]>,
  blobs: Map<string, Decoded>,
): Group {
  const { heads, rows, columns } = layers[0];
  const readsItself = name === "decoder.self";
  const columnName: SequenceName = readsItself ? "target" : "source";
  const isText = sequences[columnName].slice(0, columns).map(({ role }) => role === "text");
  const shared = { rows, columns, isText, isSelf: name !== "decoder.cross", skipsFirstRow: readsItself && rows > 1 };
  const maps: Record<string, string> = {};
  const summaries: HeadSummary[][] = layers.map(({ weights }, layer) =>
    Array.from({ length: heads }, (_, head) => {
      const map = weights.subarray(head * rows * columns, (head + 1) * rows * columns);
      const key = `${name}.${layer}.${head}`;
      maps[`${layer}.${head}`] = key;
      blobs.set(key, { shape: [rows, columns], codes: Uint8Array.from(map, encodeSqrt), scale: 1 });
      return summarizeHead({ ...shared, weights: map });
    }),
  );
  const size = [thumbnailSize(rows), thumbnailSize(columns)];
  const thumbnails = new Uint8Array(layers.length * heads * size[0] * size[1]);
  summaries.flat().forEach(({ thumbnail }, i) => thumbnails.set(thumbnail, i * thumbnail.length));
  blobs.set(`${name}.thumbnails`, { shape: [layers.length, heads, ...size], codes: thumbnails, scale: 1 });
  const places = summaries.flatMap((list, layer) => list.map(({ interest }, head) => ({ interest, layer, head })));
  const best = places.reduce((most, place) => (place.interest > most.interest ? place : most));
  const table = (statistic: "entropy" | "distance" | "previous" | "first") =>
    summaries.map((list) => list.map(({ statistics }) => statistics[statistic]));
  return {
    name,
    layers: layers.length,
    heads,
    rows: name === "encoder.self" ? "source" : "target",
    row_start: name === "decoder.cross" ? 1 : 0,
    row_count: rows,
    columns: columnName,
    column_count: columns,
    statistics: {
      entropy: table("entropy"),
      distance: table("distance"),
      previous: table("previous"),
      first: table("first"),
    },
    sampled_rows: null,
    default_head: [best.layer, best.head],
    thumbnails: `${name}.thumbnails`,
    maps,
    errors: layers.map(() => Array(heads).fill(null)),
  };
}

/** The heads that align best, best first: each source token is read by a row that attends to little else. */
function findAligningHeads(layers: AttentionWeights[], source: Token[], generated: Token[]): [number, number][] {
  const last = generated.at(-1);
  const rowCount = generated.length - (last?.role === "special" ? 1 : 0); // without eos
  const texts = source.flatMap(({ word }, column) => (word === null ? [] : [column]));
  if (!rowCount || !texts.length) return [[layers.length - 1, 0]];
  const scored = layers.flatMap(({ heads, rows, columns, weights }, layer) =>
    Array.from({ length: heads }, (_, head) => {
      const largest = (column: number) => {
        let most = 0;
        for (let row = 0; row < rowCount; row++) most = Math.max(most, weights[(head * rows + row) * columns + column]);
        return most;
      };
      const score = texts.reduce((sum, column) => sum + largest(column), 0) / texts.length;
      return { place: [layer, head] as [number, number], score };
    }),
  );
  const ranked = scored.sort((a, b) => b.score - a.score);
  const good = ranked.filter(({ score }) => score >= MIN_SHARE * ranked[0].score);
  return good.slice(0, MAX_ALIGNING).map(({ place }) => place);
}

/** The mean weights of some heads, (rows, columns). */
function meanOf(layers: AttentionWeights[], heads: [number, number][]): Decoded {
  const { rows, columns } = layers[0];
  const codes = new Float32Array(rows * columns);
  for (const [layer, head] of heads) {
    const start = head * rows * columns;
    for (let i = 0; i < codes.length; i++) codes[i] += layers[layer].weights[start + i] / heads.length;
  }
  return { shape: [rows, columns], codes, scale: 1 };
}
