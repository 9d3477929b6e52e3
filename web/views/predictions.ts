// The view of predictions of an encoder: candidates for a gap, a label or the tag of a word, with their probabilities.

import { h } from "../dom.ts";
import type { LookDocument, Prediction } from "../document.ts";
import { showText, tokenLabel } from "../tokens.ts";
import { type Context, type Mounted, type View, quote, showWeight } from "./common.ts";

const MAX_SHOWN = 200;

export const predictions: View = {
  name: "predictions",
  title: "Predictions",
  applies: (doc) => doc.predictions.length > 0,
  mount: ({ doc }: Context): Mounted => {
    const cards = doc.predictions.slice(0, MAX_SHOWN).map((prediction) => card(doc, prediction));
    const element = h(
      "section",
      { class: "predictions", "aria-label": "Predictions" },
      h("h2", {}, "What the model predicted"),
      h("p", { class: "fact" }, describeSurest(doc)),
      h("div", { class: "cards" }, ...cards),
    );
    return { element, update: () => undefined };
  },
};

/** The prediction with the largest probability, as a sentence. */
function describeSurest(doc: LookDocument): string {
  const surest = doc.predictions.reduce((a, b) => ((b.probabilities[0] ?? 0) > (a.probabilities[0] ?? 0) ? b : a));
  if (!surest.labels.length) return "Candidates with their probabilities, best first.";
  const label = quote(showText(surest.labels[0].trim() || "␣", 24));
  const more = doc.predictions.length > 1 ? `The surest of ${doc.predictions.length} predictions` : "The prediction";
  return `${more}: ${label}, probability ${showWeight(surest.probabilities[0])}.`;
}

function card(doc: LookDocument, prediction: Prediction): HTMLElement {
  const rows = prediction.labels.map((label, i) => {
    const bar = h("span", { class: "bar" });
    bar.style.width = `${Math.max(1, prediction.probabilities[i] * 100)}px`;
    const name = h("dt", { dir: "auto" }, showText(label.trim() || "␣", 24));
    return [name, h("dd", {}, bar, showWeight(prediction.probabilities[i]))];
  });
  return h("div", { class: "card" }, h("h3", {}, title(doc, prediction.position)), h("dl", {}, ...rows.flat()));
}

function title(doc: LookDocument, position: number | null): string {
  if (position === null) return doc.picture ? `The ${doc.picture.kind}` : "The whole text";
  const token = doc.sequences.source?.[position];
  return `Position ${position}: ${quote(tokenLabel(token))}`;
}
