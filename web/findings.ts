// The findings of a page: sentences about what happened, each computed from the document, with the numbers it states.

import { type LookDocument, largestEffect } from "./document.ts";
import { type Output, type Story, firstGenerated, nameInput, nameplace } from "./story.ts";
import { joinTokens, showText, tokenLabel } from "./tokens.ts";
import { GROUP_TITLES, quote, showPercent } from "./views/common.ts";

export interface Finding {
  kind: string;
  text: string;
  /** What the sentence is about and the numbers that it states; tests compare them with the model. */
  numbers: Record<string, number>;
  /** The output that it is about. */
  output?: number;
  /** The view that shows more. */
  view?: string;
}

export function findFindings(doc: LookDocument, story: Story): Finding[] {
  const found = story.isWritten
    ? [findLink(doc, story), findSurest(story), ...findSurprise(doc, story), findFavorites(doc), findBeam(doc)]
    : story.outputs.length === 1
      ? [findDecision(doc, story), ...findCounting(doc, story), findChoices(doc)]
      : [findSurestPrediction(doc, story), findDoubt(doc, story), ...findCounting(doc, story).slice(0, 1)];
  return [...found, findHead(doc)].filter((item) => item !== null);
}

const indexOfLargest = (values: number[]) => values.reduce((best, value, i) => (value > values[best] ? i : best), 0);
const readingView = (doc: LookDocument, story: Story) =>
  story.evidence === "attribution"
    ? "attribution"
    : doc.picture && !story.looksBack
      ? doc.picture.kind
      : doc.hypotheses.length
        ? "alignment"
        : "heads";

/** The input with the largest share of all outputs; punctuation counts only if there is nothing else. */
function findLink(doc: LookDocument, story: Story): Finding | null {
  const pairs = story.outputs.flatMap(({ shares, isWord }, output) =>
    shares.map((share, input) => ({
      output,
      input,
      share,
      rank: isWord && story.areWords[input] ? 1 + share : share,
    })),
  );
  if (!pairs.length) return null;
  const { output, input, share } = pairs[indexOfLargest(pairs.map((pair) => pair.rank))];
  if (share <= 0) return null;
  const verb = story.looksBack ? "it looks back at" : "it reads";
  const text = `The clearest link: to write ${quote(story.outputs[output].label)} ${verb} ${nameInput(doc, story, input)} (${showPercent(share)} of the attention).`;
  const numbers = { place: story.outputs[output].places[0], column: story.inputs[input].members[0], share };
  return { kind: "link", text, numbers, output, view: readingView(doc, story) };
}

function findSurest({ outputs }: Story): Finding | null {
  const words = outputs.filter(({ isWord }) => isWord);
  const list = words.length ? words : outputs;
  if (outputs.length < 2) return null;
  const best = list[indexOfLargest(list.map((output) => output.probability))];
  const text = `Surest: ${quote(best.label)} (${showPercent(best.probability)}).`;
  const numbers = { place: best.places[0], probability: best.probability };
  return { kind: "surest", text, numbers, output: outputs.indexOf(best) };
}

/** The generated token with the lowest probability, and what the model preferred. */
function findSurprise(doc: LookDocument, { outputs }: Story): Finding[] {
  const target = doc.sequences.target!;
  const places = outputs.flatMap((output) => output.places);
  if (!places.length) return [];
  const place = places[indexOfLargest(places.map((at) => -(target[at].logprob ?? -Infinity)))];
  const [token, at] = [target[place], place - (doc.next?.first ?? 0)];
  const probability = Math.exp(token.logprob ?? -Infinity);
  const output = outputs.findIndex((item) => item.places.includes(place));
  const said = `${quote(tokenLabel(token))} (${showPercent(probability)})`;
  const base = { output, view: doc.sampling ? "sampling" : "search" };
  const [tokens, probabilities] = [doc.next?.tokens[at], doc.next?.probabilities[at]];
  if (!tokens || !probabilities || tokens.length < 2)
    return [{ kind: "surprise", text: `Least sure token: ${said}.`, numbers: { place, probability }, ...base }];
  const isFavorite = tokens[0] === token.id;
  const [other, otherProbability] = [tokens[+isFavorite], probabilities[+isFavorite]];
  const rival = `${quote(tokenLabel(doc.vocabulary[other]))} (${showPercent(otherProbability)})`;
  const text = isFavorite
    ? `Least sure token: ${said}. It was still the first choice, before ${rival}.`
    : `Most surprising token: ${said}. The model preferred ${rival}.`;
  return [{ kind: "surprise", text, numbers: { place, probability, other, otherProbability }, ...base }];
}

/** How many tokens were the model's first choice. */
function findFavorites(doc: LookDocument): Finding | null {
  const [first, target] = [firstGenerated(doc), doc.sequences.target!];
  if (!doc.next) return null;
  const rows = doc.next.tokens.map((tokens, i) => tokens[0] === target[first + i]?.id);
  const [favorites, total] = [rows.filter(Boolean).length, rows.length];
  const others = total - favorites;
  const why = doc.sampling ? "the dice decided" : "the search gave them up for a likelier text";
  const text =
    others === 0
      ? `Every token was the model's first choice${doc.sampling ? ", although it was drawn at random" : ""}.`
      : `${others} of ${total} tokens ${others === 1 ? "was" : "were"} not the model's first choice: ${others === 1 && !doc.sampling ? "the search gave it up for a likelier text" : why}.`;
  return { kind: "favorites", text, numbers: { favorites, total }, view: doc.sampling ? "sampling" : "search" };
}

/** The last step of the search after which another beginning was ahead of the winner's. */
function findBeam(doc: LookDocument): Finding | null {
  const { search } = doc;
  if (!search || !(Number(search.settings["beam_size"]) > 1)) return null;
  const total = (candidate: number) => search.total[candidate] ?? -Infinity;
  const path = (candidate: number): number[] =>
    candidate === 0 ? [] : [...path(search.parent[candidate]), search.token[candidate]];
  const name = (candidate: number) =>
    quote(
      joinTokens(
        path(candidate).map((id) => doc.vocabulary[id]),
        60,
      ) || "…",
    );
  for (let step = search.winner_step - 1; step >= 1; step--) {
    const winner = search.lineage[step];
    const rivals = search.step.flatMap((at, candidate) =>
      at === step && search.status[candidate] !== "finished" && total(candidate) > total(winner) ? [candidate] : [],
    );
    if (!rivals.length) continue;
    const leader = rivals.reduce((best, candidate) => (total(candidate) > total(best) ? candidate : best));
    const [probability, leaderProbability] = [Math.exp(total(winner)), Math.exp(total(leader))];
    const after = step === 1 ? "1 token" : `${step} tokens`;
    const [more, less] = [showPercent(leaderProbability), showPercent(probability)];
    const ahead = more === less ? `was just ahead of ${name(winner)}` : `(${more}) was ahead of ${name(winner)}`;
    const text = `The search changed its mind: after ${after} ${name(leader)} ${ahead} (${more === less ? "both " : ""}${less}).`;
    const numbers = { step, rank: rivals.length + 1, probability, leaderProbability };
    return { kind: "beam", text, numbers, view: "search" };
  }
  if (search.winner_step < 2) return null;
  const text = "The search never changed its mind: the winner was ahead after every token.";
  return { kind: "beam", text, numbers: { step: 0 }, view: "search" };
}

/** The label, gap or tag, and the second choice. */
function tellChoice({ bars, label, probability }: Output): { text: string; numbers: Record<string, number> } {
  const said = `${quote(label)} (${showPercent(probability)})`;
  if (bars.length < 2) return { text: said, numbers: { probability } };
  const second = bars[1].probability;
  const ratio = probability / second;
  const times = ratio >= 9.95 ? Math.round(ratio).toLocaleString("en") : ratio.toFixed(1);
  const text = `${said}, ${times} times as probable as ${quote(bars[1].label)} (${showPercent(second)})`;
  return { text, numbers: { probability, second } };
}

function findDecision(doc: LookDocument, { outputs: [output] }: Story): Finding {
  const { text, numbers } = tellChoice(output);
  const [place] = output.places;
  const isGap = place !== undefined && doc.sequences.source?.[place]?.role === "special";
  const start =
    place === undefined ? "It says" : isGap ? `In ${nameplace(doc, place)} it puts` : `${nameplace(doc, place)} is`;
  return { kind: "decision", text: `${start} ${text}.`, numbers, output: 0, view: "predictions" };
}

function findSurestPrediction(doc: LookDocument, { outputs }: Story): Finding {
  const output = indexOfLargest(outputs.map((item) => item.probability));
  const { label, places, probability, prediction } = outputs[output];
  const text = `Surest: ${nameplace(doc, places[0])} is ${quote(label)} (${showPercent(probability)}).`;
  return { kind: "surest", text, numbers: { prediction, probability }, output, view: "predictions" };
}

function findDoubt(doc: LookDocument, { outputs }: Story): Finding {
  const output = indexOfLargest(outputs.map((item) => -item.probability));
  const { text, numbers } = tellChoice(outputs[output]);
  const place = nameplace(doc, outputs[output].places[0]);
  const sentence = `Least sure: ${place} is ${text}.`;
  return {
    kind: "doubt",
    text: sentence,
    numbers: { prediction: outputs[output].prediction, ...numbers },
    output,
    view: "predictions",
  };
}

/** What counted most: for and against a decision if effects were measured, else what was read most. */
function findCounting(doc: LookDocument, story: Story): Finding[] {
  const view = readingView(doc, story);
  const all = story.outputs.flatMap(({ shares }, output) => shares.map((share, input) => ({ output, input, share })));
  if (!all.length) return [];
  const about = ({ output, input, share }: (typeof all)[number]) => ({
    output,
    view,
    numbers: {
      prediction: story.outputs[output].prediction,
      column: story.inputs[input].members[0],
      share: Math.abs(share),
    },
  });
  const sizes = all.map((item) => item.share);
  const most = all[indexOfLargest(sizes)];
  const name = nameInput(doc, story, most.input);
  const label = quote(story.outputs[most.output].label);
  if (story.evidence === "attribution") {
    const least = all[indexOfLargest(sizes.map((share) => -share))];
    const tell = (input: number, share: number, word: string) =>
      `${nameInput(doc, story, input)} speaks most ${word} ${label}: ${showPercent(Math.abs(share))} of the effect of all words.`;
    return [
      ...(most.share > 0 ? [{ kind: "for", text: tell(most.input, most.share, "for"), ...about(most) }] : []),
      ...(least.share < 0
        ? [{ kind: "against", text: tell(least.input, least.share, "against"), ...about(least) }]
        : []),
    ];
  }
  const count = story.inputs.length;
  const units = doc.picture ? (doc.picture.kind === "image" ? "patches" : "time steps") : "words";
  const shares = story.outputs[most.output].shares;
  const sorted = [...shares].sort((a, b) => b - a);
  const half = sorted.reduce((sum, share) => sum + share, 0) / 2;
  let [needed, sum] = [0, 0];
  while (needed < count && sum < half) sum += sorted[needed++];
  return [
    {
      kind: "for",
      text: `For ${label} it reads ${name} most: ${showPercent(most.share)} of the attention.`,
      ...about(most),
    },
    {
      kind: "half",
      text: `${needed} of ${count} ${units} ${needed === 1 ? "holds" : "hold"} half of the attention on them.`,
      numbers: { needed, count },
      output: most.output,
      view,
    },
  ];
}

/** How uncertain a label is: the number of labels of a fair choice with the same entropy. */
function findChoices(doc: LookDocument): Finding | null {
  const [{ position, probabilities }] = doc.predictions;
  if (position !== null || probabilities.length < 2) return null;
  const entropy = probabilities.reduce((sum, p) => (p > 0 ? sum - p * Math.log(p) : sum), 0);
  const choices = Math.exp(entropy);
  const text = `It is as uncertain as a fair choice among ${choices.toFixed(1)} of ${probabilities.length} labels.`;
  return { kind: "choices", text, numbers: { choices }, view: "predictions" };
}

/** The head without which the output loses most. */
function findHead(doc: LookDocument): Finding | null {
  const found = largestEffect(doc, doc.attention);
  if (!found || !doc.ablation) return null;
  const { baseline, output, texts } = doc.ablation;
  const { group, place, delta } = found;
  const [layer, head] = place;
  const [before, after] = [Math.exp(baseline), Math.exp(baseline + delta)];
  const numbers = { group: doc.attention.indexOf(group), layer, head, delta, before, after };
  const base = { kind: "head", numbers, view: "break" };
  if (delta >= 0)
    return { ...base, text: `No single head is needed: without any one of them ${output} stays at least as probable.` };
  const name = `layer ${layer + 1}, head ${head + 1} of the ${GROUP_TITLES[group.name].toLowerCase()}`;
  const factor = Number(Math.exp(-delta).toPrecision(2));
  const times = factor < 1e9 ? factor.toLocaleString("en") : factor.toExponential(0);
  const [from, to] = [showPercent(before), showPercent(after)];
  if (before >= 0.001 ? from === to : factor < 1.05)
    return { ...base, text: `No single head matters much: without any one of them ${output} stays about as probable.` };
  const effect =
    before >= 0.001
      ? `the probability of ${output} falls from ${from} to ${to}`
      : `${output} is ${times} times less probable`;
  const text = texts[`${group.name}.${layer}.${head}`];
  const isNew = text !== undefined && text !== doc.output;
  const shown = isNew ? showText(text.trim(), 80) || "nothing" : "";
  const writes = isNew ? `, and it writes ${quote(shown)}` : "";
  const end = /[.!?…]$/.test(shown) ? "" : ".";
  return { ...base, text: `The head that matters most: ${name}. Without it ${effect}${writes}${end}` };
}
