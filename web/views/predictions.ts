// The view of predictions of an encoder: candidates for a gap, a label or the tag of a word, with their probabilities.

import { h } from "../dom.ts";
import type { LookDocument, Prediction } from "../document.ts";
import { describeUntagged, findTold } from "../tags.ts";
import { showText, tokenLabel } from "../tokens.ts";
import { type Context, type Mounted, type View, quote, showWeight } from "./common.ts";

const MAX_SHOWN = 200;
const MAX_LABELS = 5; // of each of several predictions; the rest unfolds

export const predictions: View = {
  name: "predictions",
  title: "Predictions",
  applies: (doc) => doc.predictions.length > 0,
  mount: ({ doc }: Context): Mounted => {
    const { told, untagged } = findTold(doc);
    const cards = (places: number[]) => {
      const shown = places.slice(0, MAX_SHOWN).map((i) => card(doc, doc.predictions[i]));
      return h("div", { class: "cards" }, ...shown);
    };
    const others = doc.predictions.map((_, i) => i).filter((i) => !told.includes(i));
    const element = h(
      "section",
      { class: "predictions", "aria-label": "Predictions" },
      h("h2", {}, "What the model predicted"),
      h("p", { class: "fact" }, describeSurest(doc)),
      cards(told),
      untagged > 0
        ? h("details", { class: "transcript" }, h("summary", {}, describeUntagged(untagged)), cards(others))
        : null,
    );
    return { element, update: () => undefined };
  },
};

/** The prediction with the largest probability, as a sentence. */
function describeSurest(doc: LookDocument): string {
  const { told } = findTold(doc);
  const list = told.map((i) => doc.predictions[i]);
  const surest = list.reduce((a, b) => ((b.probabilities[0] ?? 0) > (a.probabilities[0] ?? 0) ? b : a));
  if (!surest.labels.length) return "Candidates with their probabilities, best first.";
  const label = quote(showText(surest.labels[0].trim() || "␣", 24));
  const more = list.length > 1 ? `The surest of ${list.length} predictions` : "The prediction";
  return `${more}: ${label}, probability ${showWeight(surest.probabilities[0])}.`;
}

function card(doc: LookDocument, prediction: Prediction): HTMLElement {
  const rows = prediction.labels.map((label, i) => {
    const bar = h("span", { class: "bar" });
    bar.style.width = `max(1px, calc(${prediction.probabilities[i]} * (100% - 56px)))`;
    const name = h("dt", { dir: "auto" }, showText(label.trim() || "␣", 24));
    return [name, h("dd", {}, bar, showWeight(prediction.probabilities[i]))];
  });
  // A lone prediction has room for all of its labels, and one more line is no longer than "1 more".
  const limit = doc.predictions.length === 1 || rows.length <= MAX_LABELS + 1 ? rows.length : MAX_LABELS;
  const more = rows.slice(limit);
  return h(
    "div",
    { class: "card" },
    h("h3", {}, title(doc, prediction.position)),
    h("dl", {}, ...rows.slice(0, limit).flat()),
    more.length
      ? h("details", {}, h("summary", { class: "small" }, `${more.length} more`), h("dl", {}, ...more.flat()))
      : null,
  );
}

function title(doc: LookDocument, position: number | null): string {
  if (position === null) return doc.picture ? `The ${doc.picture.kind}` : "The whole text";
  const token = doc.sequences.source?.[position];
  return `Position ${position}: ${quote(tokenLabel(token))}`;
}
