// What a page says first: the output, how sure the model is of it, and last the command that makes the page again.

import type { LookDocument, Prediction } from "./document.ts";
import { findTold } from "./tags.ts";
import { quote, showPercent } from "./views/common.ts";

/** The label of a whole text, image or clip. */
const labelOf = (doc: LookDocument): Prediction | null =>
  doc.predictions.length === 1 && doc.predictions[0].position === null && doc.predictions[0].labels.length > 0
    ? doc.predictions[0]
    : null;

/** The tagged words of a text in which other words have no tag: "it: animal"; null for all other outputs. */
function nameTags(doc: LookDocument): string | null {
  const { told, untagged } = findTold(doc);
  if (untagged === 0) return null;
  const source = doc.sequences.source ?? [];
  const named = told.map((i) => {
    const { position, labels } = doc.predictions[i];
    const word = source[position ?? 0]?.word;
    const parts = source.filter((token, i) => i === position || (word !== null && token.word === word));
    return [
      parts
        .map(({ text }) => text)
        .join("")
        .trim(),
      labels[0],
    ];
  });
  if (!named.every(([word, label]) => doc.output.includes(`${word}/${label}`))) return null;
  return named.map((pair) => pair.join(": ")).join(", ");
}

/** The output as a headline. A label that is only a number says that it is a label. */
export function nameOutput(doc: LookDocument): string {
  const tags = nameTags(doc);
  if (tags) return tags;
  const name = labelOf(doc)?.labels[0].trim();
  return name && /^\d+$/.test(name) ? `Label ${name}` : doc.output || doc.text;
}

/** How sure a model is: of a label, of its least certain prediction, of a whole sequence, or of a token on average. */
export interface Certainty {
  kind: "label" | "prediction" | "sequence" | "token";
  value: number;
}

const logprobsOf = (doc: LookDocument) =>
  (doc.sequences.target ?? []).flatMap(({ logprob }) => (logprob === undefined ? [] : [logprob ?? -Infinity]));
const sum = (numbers: number[]) => numbers.reduce((total, number) => total + number, 0);

/** The predictions that have candidates, and the least certain of them. */
function leastCertain(doc: LookDocument): { count: number; least: Prediction } | null {
  const sure = doc.predictions.filter((item) => item.probabilities.length > 0);
  if (sure.length === 0) return null;
  return { count: sure.length, least: sure.reduce((a, b) => (b.probabilities[0] < a.probabilities[0] ? b : a)) };
}

/** How sure the model is of its output, as a probability. */
export function measureCertainty(doc: LookDocument): Certainty | null {
  const label = labelOf(doc);
  if (label) return { kind: "label", value: label.probabilities[0] };
  if (doc.predictions.length > 0) {
    const found = leastCertain(doc);
    return found && { kind: "prediction", value: found.least.probabilities[0] };
  }
  const logprobs = logprobsOf(doc);
  if (logprobs.length === 0) return null;
  // Of a text that was drawn at random, only the average says something: every long one is improbable.
  if (doc.sampling) return { kind: "token", value: Math.exp(sum(logprobs) / logprobs.length) };
  return { kind: "sequence", value: Math.exp(sum(logprobs)) };
}

/** How sure the model is of its output: in a few words, and in detail. */
export function describeCertainty(doc: LookDocument): { text: string; title: string } | null {
  const certainty = measureCertainty(doc);
  if (!certainty) return null;
  const chance = showPercent(certainty.value);
  const label = labelOf(doc);
  if (label) {
    const others = label.labels
      .slice(1, 4)
      .map((name, i) => `${name.trim()} ${showPercent(label.probabilities[i + 1])}`);
    return { text: `${chance} sure`, title: others.length ? `Next: ${others.join(", ")}` : "" };
  }
  if (certainty.kind === "prediction") {
    const { count, least } = leastCertain(doc)!;
    const title = `Of ${quote(least.labels[0].trim())}, the least certain of ${count} predictions`;
    return count === 1 ? { text: `${chance} sure`, title: "" } : { text: `at least ${chance} sure`, title };
  }
  const logprobs = logprobsOf(doc);
  const each = `${showPercent(Math.exp(sum(logprobs) / logprobs.length))} per token`;
  const title = `Product of ${logprobs.length} token probabilities; on average ${each} (geometric mean)`;
  if (certainty.kind === "token") return { text: `sampled, ${each} on average`, title };
  return { text: `probability ${chance}, ${each}`, title };
}

/** The command that makes this page again; "" for a document without a model's folder. */
export function commandOf(doc: LookDocument): string {
  const { name, parameters } = doc.model;
  if (!name || parameters === 0 || doc.merges) return "";
  const word = (text: string) => (/^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
  const options = [];
  const size = doc.search?.settings["beam_size"];
  if (typeof size === "number") options.push(`--beam ${size}`);
  for (const option of ["temperature", "top_k", "top_p"]) {
    const value = doc.sampling?.filters[option];
    if (value !== null && value !== undefined) options.push(`--${option.replace("_", "-")} ${value}`);
  }
  const { against } = doc;
  if (against && against.text !== doc.text) options.unshift(`--against ${word(against.text)}`);
  if (against && against.model.sha256 !== doc.model.sha256)
    options.unshift(`--against-model ${word(against.model.name || "MODEL")}`);
  return ["regard look", word(name), word(doc.text), ...options].join(" ");
}
