// The model: sessions of its graphs, and text to text by greedy search, beam search or sampling.

import { makeIds, selectRows, type Runtime, type Session, type Tensor } from "./runtime.ts";
import { chooseToken, logSumExp, topTokens, type Sampling } from "./choose.ts";
import type { AttentionWeights, Replay } from "./replay.ts";
import { Tokenizer } from "./tokenizer.ts";
import type { TokenizerFile } from "./tokenizer_file.ts";

export interface Description {
  task: "translation" | "causal_lm" | "text_classification";
  d_model: number;
  languages: string[];
  dtype: string;
  graphs: string[];
  tokenizers: [string, string];
  specials: Record<"pad" | "bos" | "eos" | "unk" | "mask" | "cls" | "sep", number>;
  source_eos: number;
  language_tags: Record<string, number>;
  suppressed: number[];
  max_length_ratio?: number;
  extra_tokens?: number;
  max_source_positions?: number | null;
  max_positions?: number | null;
  starts_with_bos?: boolean;
  cache: { heads: number; key: number; value: number }[];
  labels: string[];
  parameters: number;
}

export interface Translation {
  text: string;
  /** Token ids without eos. */
  ids: number[];
}

const BATCH_TOKENS = 1024; // source tokens of a batch, padding included
const MAX_REPLAYED = 256; // tokens on each side: six layers of eight heads have 38 MB of weights then
const CANDIDATES = 8; // next tokens per position, as in a look document

type Cache = Record<string, Tensor>;

export class Model {
  private readonly source: Tokenizer;
  private readonly target: Tokenizer;

  constructor(
    private readonly runtime: Runtime,
    readonly description: Description,
    private readonly sessions: Session[],
    files: [TokenizerFile, TokenizerFile],
  ) {
    const { specials, language_tags: tags } = description;
    const control = [...Object.values(specials), ...Object.values(tags)];
    this.target = new Tokenizer(files[1], control, specials.unk);
    this.source = files[0] === files[1] ? this.target : new Tokenizer(files[0], control, specials.unk);
  }

  /** Translate sentences; `beam` 1 is greedy search. */
  async translate(
    texts: string[],
    { beam = 1, language }: { beam?: number; language?: string } = {},
    report: (done: number) => void = () => {},
  ): Promise<Translation[]> {
    const results: Translation[] = texts.map(() => ({ text: "", ids: [] }));
    const rows = texts.map((text) => (this.source.isBlank(text) ? [] : this.encodeSource(text, language)));
    const order = rows.map((_, i) => i).filter((i) => rows[i].length);
    order.sort((a, b) => rows[b].length - rows[a].length);
    let done = texts.length - order.length;
    while (order.length) {
      const size = Math.max(1, Math.floor(BATCH_TOKENS / (beam * rows[order[0]].length)));
      const batch = order.splice(0, size);
      const hypotheses = await this.searchBatch(
        batch.map((i) => rows[i]),
        beam,
      );
      hypotheses.forEach((ids, n) => (results[batch[n]] = { text: this.target.decode(ids), ids }));
      report((done += batch.length));
    }
    return results;
  }

  /** Whether the graphs return attention weights. */
  get hasAttention(): boolean {
    return this.sessions.every(({ outputNames }) => outputNames.some(isAttention));
  }

  /** Read a sentence and its translation once more, in one pass, and return what a look document needs. */
  async replay(text: string, { text: output, ids }: Translation, language?: string): Promise<Replay> {
    const { bos, eos } = this.description.specials;
    const row = this.encodeSource(text, language);
    const generated = ids.length < this.limitOf(row) ? [...ids, eos] : ids;
    if (Math.max(row.length, generated.length) > MAX_REPLAYED)
      throw new Error(`Attention is shown for sentences of up to ${MAX_REPLAYED} tokens.`);
    const mask = makeIds(this.runtime, [row.map(() => 1)], 0);
    const encoded = await this.sessions[0].run({ input_ids: makeIds(this.runtime, [row], 0), attention_mask: mask });
    const memory = Object.entries(encoded).filter(([name]) => !isAttention(name));
    const decoded = await this.sessions[1].run({
      ...Object.fromEntries(memory),
      ...this.emptyCache(1),
      encoder_attention_mask: mask,
      input_ids: makeIds(this.runtime, [[bos, ...generated.slice(0, -1)]], 0),
    });
    const [, count, size] = decoded.logits.dims;
    const expected = Array.from({ length: count }, (_, i) => {
      const logits = (decoded.logits.data as Float32Array).subarray(i * size, (i + 1) * size);
      return { best: topTokens(logits, [], CANDIDATES), logprob: logits[generated[i]] - logSumExp(logits) };
    });
    const target = this.target.describe([bos, ...generated]);
    const candidates = [...new Set(expected.flatMap(({ best }) => best.map(([id]) => id)))];
    return {
      text,
      output,
      sizes: { source: this.source.size, target: this.target.size },
      source: this.source.describe(row),
      target: target.map((token, i) =>
        i === 0 ? { ...token, prompt: true } : { ...token, logprob: expected[i - 1].logprob },
      ),
      candidates: expected.map(({ best }) => best),
      vocabulary: Object.fromEntries(candidates.map((id) => [id, this.target.describe([id])[0]])),
      attention: {
        "encoder.self": layersOf(encoded, "encoder"),
        "decoder.self": layersOf(decoded, "decoder"),
        "decoder.cross": layersOf(decoded, "cross"),
      },
    };
  }

  /** Continue a prompt; calls `write` with each new part of the text until it returns false. */
  async generate(
    prompt: string,
    maxTokens: number,
    sampling: Sampling,
    write: (text: string) => boolean,
  ): Promise<void> {
    const { bos, eos } = this.description.specials;
    const decoder = this.target.stream();
    const encoded = this.target.encode(prompt);
    let ids = this.description.starts_with_bos || !encoded.length ? [bos, ...encoded] : encoded;
    for (const id of ids) decoder.push(id);
    const limit = this.description.max_positions;
    if (limit && ids.length + maxTokens - 1 > limit) maxTokens = limit - ids.length + 1;
    if (maxTokens < 1) throw new Error(`The prompt is longer than the ${limit} positions that the model has learned.`);
    let cache = this.emptyCache(1);
    for (let step = 0; step < maxTokens; step++) {
      const [logits, next] = await this.step([ids], {}, cache);
      cache = next;
      const id = chooseToken(lastRow(logits, 0), this.description.suppressed, sampling);
      if (id === eos) break;
      ids = [id];
      if (!write(decoder.push(id))) return;
    }
    write(decoder.finish());
  }

  /** Return the probability of each label. */
  async classify(text: string): Promise<{ probabilities: number[]; isTruncated: boolean }> {
    const { cls, sep, pad } = this.description.specials;
    const limit = this.description.max_source_positions;
    const all = this.source.encode(text);
    const ids = limit ? all.slice(0, limit - 2) : all;
    const row = [cls, ...ids, sep];
    const mask = makeIds(this.runtime, [row.map(() => 1)], 0);
    const feeds: Record<string, Tensor> = { input_ids: makeIds(this.runtime, [row], pad), attention_mask: mask };
    const types = makeIds(this.runtime, [row.map(() => 0)], 0); // one text
    if (this.sessions[0].inputNames.includes("token_type_ids")) feeds.token_type_ids = types;
    const { logits } = await this.sessions[0].run(feeds);
    const scores = Array.from(logits.data as Float32Array);
    const total = logSumExp(Float32Array.from(scores));
    return { probabilities: scores.map((score) => Math.exp(score - total)), isTruncated: ids.length < all.length };
  }

  encode(text: string): number[] {
    return this.source.encode(text);
  }

  private encodeSource(text: string, language?: string): number[] {
    const { languages, language_tags: tags, max_source_positions: limit } = this.description;
    const names = Object.keys(tags);
    const only = names.length === 1 ? names[0] : languages.length === 2 ? languages[1] : undefined;
    const chosen = language ?? only;
    if (names.length && (chosen === undefined || !(chosen in tags))) throw new Error("Choose a target language.");
    const ids = [...(names.length ? [tags[chosen!]] : []), ...this.source.encode(text), this.description.source_eos];
    if (limit && ids.length > limit)
      throw new Error(`A sentence has ${ids.length} tokens; the model has learned ${limit} positions.`);
    return ids;
  }

  /** How many tokens the translation of a source may have. */
  private limitOf(row: number[]): number {
    const { max_length_ratio: ratio = 2, extra_tokens: extra = 50, max_positions: limit } = this.description;
    return Math.min(Math.ceil(ratio * row.length) + extra, limit ?? Infinity);
  }

  private async searchBatch(rows: number[][], beam: number): Promise<number[][]> {
    const { pad } = this.description.specials;
    const ones = rows.map((row) => row.map(() => 1));
    const mask = makeIds(this.runtime, ones, 0);
    const feeds = { input_ids: makeIds(this.runtime, rows, pad), attention_mask: mask };
    const encoded = await this.sessions[0].run(feeds, withoutAttention(this.sessions[0]));
    const memory: Cache = { ...encoded, encoder_attention_mask: mask };
    const limits = rows.map((row) => this.limitOf(row));
    return beam > 1 ? this.beamSearch(memory, limits, beam) : this.greedySearch(memory, limits);
  }

  private async greedySearch(memory: Cache, limits: number[]): Promise<number[][]> {
    const { bos, eos } = this.description.specials;
    const outputs: number[][] = limits.map(() => []);
    let active = limits.map((_, i) => i); // the sentence of each row
    let tokens = limits.map(() => [bos]);
    let cache = this.emptyCache(limits.length);
    while (active.length) {
      const [logits, next] = await this.step(tokens, memory, cache);
      const chosen = active.map((_, row) => chooseToken(lastRow(logits, row), this.description.suppressed));
      const kept: number[] = [];
      active.forEach((sentence, row) => {
        if (chosen[row] === eos) return;
        outputs[sentence].push(chosen[row]);
        if (outputs[sentence].length < limits[sentence]) kept.push(row);
      });
      cache = next;
      if (kept.length < active.length) {
        cache = this.select(cache, kept);
        memory = this.select(memory, kept);
      }
      active = kept.map((row) => active[row]);
      tokens = kept.map((row) => [chosen[row]]);
    }
    return outputs;
  }

  /** Beam search: a sentence stops when no open hypothesis can beat its best finished one (mean log-probability). */
  private async beamSearch(memory: Cache, limits: number[], beam: number): Promise<number[][]> {
    const { bos, eos } = this.description.specials;
    const sentences = limits.map((limit) => ({ limit, best: { score: -Infinity, ids: [] as number[] } }));
    let open = sentences.map((sentence) => ({ sentence, ids: [] as number[], sum: 0 }));
    let cache = this.emptyCache(open.length);
    while (open.length) {
      const tokens = open.map(({ ids }) => [ids.at(-1) ?? bos]);
      const [logits, next] = await this.step(tokens, memory, cache);
      const candidates = new Map<(typeof sentences)[number], { row: number; id: number; sum: number }[]>();
      open.forEach(({ sentence, sum }, row) => {
        const list = candidates.get(sentence) ?? [];
        for (const [id, logprob] of topTokens(lastRow(logits, row), this.description.suppressed, beam + 1))
          list.push({ row, id, sum: sum + logprob });
        candidates.set(sentence, list);
      });
      const extended: { row: number; state: (typeof open)[number] }[] = [];
      for (const [sentence, list] of candidates) {
        list.sort((a, b) => b.sum - a.sum);
        let free = beam; // as in Python: eos among the best `beam` candidates ends, the best `beam` others stay open
        list.forEach(({ row, id, sum }, rank) => {
          const length = open[row].ids.length + 1;
          if (id === eos || length >= sentence.limit) {
            if (rank >= beam || sum / length <= sentence.best.score) return;
            sentence.best = { score: sum / length, ids: id === eos ? open[row].ids : [...open[row].ids, id] };
          } else if (free-- > 0) {
            extended.push({ row, state: { sentence, ids: [...open[row].ids, id], sum } });
          }
        });
      }
      // The bound of the Python search: at best a hypothesis reaches its maximum length at no cost.
      const kept = extended.filter(({ state: { sentence, sum } }) => sum / sentence.limit > sentence.best.score);
      const rows = kept.map(({ row }) => row);
      cache = this.select(next, rows);
      memory = this.select(memory, rows);
      open = kept.map(({ state }) => state);
    }
    return sentences.map(({ best }) => best.ids);
  }

  private async step(tokens: number[][], memory: Cache, cache: Cache): Promise<[Tensor, Cache]> {
    const feeds = { input_ids: makeIds(this.runtime, tokens, 0), ...memory, ...cache };
    const session = this.sessions.at(-1)!;
    const { logits, ...present } = await session.run(feeds, withoutAttention(session));
    const next = Object.entries(present).map(([name, tensor]) => [name.replace("present", "past_key_values"), tensor]);
    return [logits, Object.fromEntries(next)];
  }

  private emptyCache(rows: number): Cache {
    const cache: Cache = {};
    this.description.cache.forEach(({ heads, key, value }, layer) => {
      for (const [part, size] of [
        ["key", key],
        ["value", value],
      ] as const)
        cache[`past_key_values.${layer}.${part}`] = new this.runtime.Tensor("float32", new Float32Array(), [
          rows,
          heads,
          0,
          size,
        ]);
    });
    return cache;
  }

  private select(tensors: Cache, rows: number[]): Cache {
    if (!rows.length) return tensors;
    const entries = Object.entries(tensors).map(([name, tensor]) => [name, selectRows(this.runtime, tensor, rows)]);
    return Object.fromEntries(entries);
  }
}

/** The outputs that a search needs: those that nobody fetches cost nothing. */
function withoutAttention({ outputNames }: Session): string[] {
  return outputNames.filter((name) => !isAttention(name));
}

function isAttention(output: string): boolean {
  return output.includes("_attentions.");
}

/** The weights (1, H, T, S) of the layers of a kind. */
function layersOf(outputs: Record<string, Tensor>, kind: string): AttentionWeights[] {
  const layers: AttentionWeights[] = [];
  for (let tensor; (tensor = outputs[`${kind}_attentions.${layers.length}`]);) {
    const [, heads, rows, columns] = tensor.dims;
    layers.push({ heads, rows, columns, weights: tensor.data as Float32Array });
  }
  return layers;
}

/** The logits of a row's last position, (B, T, V) -> (V). */
function lastRow(logits: Tensor, row: number): Float32Array {
  const [, length, size] = logits.dims;
  const end = (row + 1) * length * size;
  return (logits.data as Float32Array).subarray(end - size, end);
}
