// What a tagger says is worth telling: most words of a text belong to nothing, and only the others have a story.

import type { LookDocument } from "./document.ts";

const OUTSIDE = "O"; // the IOB tag of words that belong to nothing

/** The places of predictions that are told: those with a tag, or all if none or every word has one. */
export function findTold(doc: LookDocument): { told: number[]; untagged: number } {
  const all = doc.predictions.map((_, i) => i);
  const told = all.filter((i) => doc.predictions[i].position === null || doc.predictions[i].labels[0] !== OUTSIDE);
  return told.length === 0 ? { told: all, untagged: 0 } : { told, untagged: all.length - told.length };
}

/** "11 other words have no tag."; "" if there are none. */
export function describeUntagged(count: number): string {
  if (count === 0) return "";
  return count === 1 ? "1 other word has no tag." : `${count.toLocaleString("en")} other words have no tag.`;
}
