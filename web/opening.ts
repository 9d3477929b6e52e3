// What a page shows first: the head that its output needs most, and the rest as most readers want it.

import { type Effect, type LookDocument, largestEffect } from "./document.ts";
import type { State } from "./state.ts";
import { mostSurprisingStep } from "./views/sampling.ts";

/** The state in which a page opens. */
export function openingState(doc: LookDocument, view: string): State {
  // The head that the output needs most. A picture can show only heads that read it.
  const groups = doc.picture ? doc.attention.filter((item) => item.columns === "source") : doc.attention;
  const needed = largestEffect(doc, groups);
  const group = needed?.group ?? doc.attention.find((item) => item.name === "decoder.cross") ?? doc.attention[0];
  const [layer, head] = (needed && sharedHead(doc, needed)) ?? group?.default_head ?? [0, 0];
  return {
    view,
    beat: null,
    group: group?.name ?? "encoder.self",
    layer,
    head,
    meanOfHeads: false,
    query: null,
    drawing: "heatmap",
    statistic: "entropy",
    words: doc.against !== undefined, // words of two texts stand for each other more often than tokens
    specials: true,
    numbers: group !== undefined && group.row_count * group.column_count <= 36,
    stretched: false,
    hover: null,
    locked: null,
    candidate: null,
    pointed: null,
    unfolded: false,
    hypothesis: 0,
    alignment: "ribbons",
    alignedHeads: [],
    alignedTokens: false,
    headsOff: [],
    method: "integrated_gradients",
    step: mostSurprisingStep(doc.sampling?.steps ?? []),
    filters: { ...(doc.sampling?.filters ?? {}) },
    merge: doc.merges?.steps.length ? 1 : 0,
    mask: (doc.masks.find((mask) => mask.terms.length > 0) ?? doc.masks[0])?.group ?? "decoder.self",
    hiddenTerms: [],
    present: false,
    stack: doc.positions[0]?.stack ?? "decoder",
    againstHead: null,
    compared: null,
  };
}

/** The head that two inputs of one model are compared by: of a group, the one that matters most to either output. */
function sharedHead({ against, model }: LookDocument, own: Effect): [number, number] | null {
  const group = against?.attention.find(({ name }) => name === own.group.name);
  if (!against || !group || against.model.sha256 !== model.sha256) return null;
  const other = largestEffect(against, [group]);
  return other && Math.abs(other.delta) > Math.abs(own.delta) ? other.place : own.place;
}
