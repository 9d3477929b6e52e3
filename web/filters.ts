// The filters of src/regard/decode/filters.py, in the same order, in double precision.

export type Settings = Record<string, number | null>;

export interface Stage {
  name: string;
  /** The distribution over the vocabulary after this filter; it sums to 1. */
  probabilities: Float64Array;
}

export interface Filtered {
  /** The distribution of the model, then one stage per filter that is on. */
  stages: Stage[];
  /** How close the nearest decision was: below about 1e-6, single precision may decide otherwise. */
  margin: number;
}

/** Whether a value of a filter changes the distribution. */
export function isOn(name: string, value: number | null | undefined): boolean {
  if (value === null || value === undefined) return false;
  return !((name === "temperature" || name === "repetition_penalty") && value === 1);
}

/** Apply filters one after the other to log-probabilities; each renormalizes what it keeps. */
export function applyFilters(
  logprobs: ArrayLike<number>,
  history: number[],
  settings: Settings,
  suppressed: number[] = [],
): Filtered {
  let scores = Float64Array.from(logprobs);
  for (const token of suppressed) scores[token] = -Infinity;
  let margin = Infinity;
  const near = (distance: number) => {
    if (Math.abs(distance) < margin) margin = Math.abs(distance);
  };
  const stages: Stage[] = [{ name: "model", probabilities: softmax(scores) }];
  const on = (name: string) => (isOn(name, settings[name]) ? settings[name]! : null);

  const ngram = on("no_repeat_ngram");
  if (ngram !== null) {
    for (const token of repeatedEnds(history, ngram)) scores[token] = -Infinity;
    stages.push({ name: "no_repeat_ngram", probabilities: softmax(scores) });
  }
  const penalty = on("repetition_penalty");
  if (penalty !== null) {
    for (const token of new Set(history)) scores[token] *= penalty;
    stages.push({ name: "repetition_penalty", probabilities: softmax(scores) });
  }
  const temperature = on("temperature");
  if (temperature === 0) {
    const best = byValue(scores);
    near(scores[best[0]] - scores[best[1]]);
    const probabilities = new Float64Array(scores.length);
    probabilities[best[0]] = 1;
    // The best token is all that is left: no later filter changes it.
    const later = ["temperature", "top_k", "top_p", "min_p", "typical_p"].filter((name) => on(name) !== null);
    return { stages: [...stages, ...later.map((name) => ({ name, probabilities }))], margin };
  }
  if (temperature !== null) {
    scores = scores.map((score) => score / temperature);
    stages.push({ name: "temperature", probabilities: softmax(scores) });
  }
  let current = softmax(scores);
  const keep = (name: string, kept: (token: number) => boolean) => {
    current = normalize(current.map((probability, token) => (kept(token) ? probability : 0)));
    stages.push({ name, probabilities: current });
  };

  const topK = on("top_k");
  if (topK !== null) {
    const order = byValue(scores);
    if (topK < order.length) near(scores[order[topK - 1]] - scores[order[topK]]);
    const kept = new Set(order.slice(0, topK));
    keep("top_k", (token) => kept.has(token));
  }
  const topP = on("top_p");
  if (topP !== null) {
    const kept = firstUntil(byValue(current), current, topP, near);
    keep("top_p", (token) => kept.has(token));
  }
  const minP = on("min_p");
  if (minP !== null) {
    const bound = minP * current.reduce((best, value) => Math.max(best, value), 0);
    current.forEach((value) => value > 0 && near(value - bound));
    keep("min_p", (token) => current[token] >= bound);
  }
  const typicalP = on("typical_p");
  if (typicalP !== null) {
    const entropy = current.reduce((sum, p) => sum - (p > 0 ? p * Math.log(p) : 0), 0);
    const oddness = current.map((p) => Math.abs(-Math.log(p) - entropy));
    const order = Array.from(oddness.keys()).sort((a, b) => oddness[a] - oddness[b] || a - b);
    for (let i = 1; i < order.length; i++) if (current[order[i]] > 0) near(oddness[order[i]] - oddness[order[i - 1]]);
    const kept = firstUntil(order, current, typicalP, near);
    keep("typical_p", (token) => kept.has(token));
  }
  return { stages, margin };
}

/** The tokens that would end an n-gram of the history a second time. */
function repeatedEnds(history: number[], n: number): number[] {
  const prefix = history.slice(history.length - n + 1);
  const ends: number[] = [];
  for (let i = 0; i + n <= history.length; i++)
    if (prefix.slice(0, n - 1).every((token, j) => history[i + j] === token)) ends.push(history[i + n - 1]);
  return ends;
}

/** The first tokens of an order until their probabilities sum to `mass`. A mass of 1 keeps all. */
function firstUntil(
  order: number[],
  values: Float64Array,
  mass: number,
  near: (distance: number) => void,
): Set<number> {
  if (mass >= 1) return new Set(order);
  const kept = new Set<number>();
  let before = 0;
  for (const token of order) {
    near(before - mass);
    if (before >= mass) break;
    kept.add(token);
    before += values[token];
  }
  return kept;
}

/** Tokens by falling value; of equal ones the lower number first. */
export function byValue(values: Float64Array): number[] {
  return Array.from(values.keys()).sort((a, b) => (values[a] === values[b] ? a - b : values[b] > values[a] ? 1 : -1));
}

function softmax(scores: Float64Array): Float64Array {
  const largest = scores.reduce((best, value) => Math.max(best, value), -Infinity);
  return normalize(scores.map((score) => Math.exp(score - largest)));
}

function normalize(values: Float64Array): Float64Array {
  const sum = values.reduce((total, value) => total + value, 0);
  return values.map((value) => value / sum);
}
