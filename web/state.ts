// One store holds everything that a reader chose. Views read it and are updated after each change.

import type { GroupName, Statistic } from "./document.ts";

/** A cell of a map, or a whole row if `column` is null. */
export interface Cell {
  row: number;
  column: number | null;
}

export interface State {
  view: string;
  /** Step of the story; null: the last one, when everything is written. */
  beat: number | null;
  group: GroupName;
  layer: number;
  head: number;
  /** Draw the mean of the layer's heads over the picture. */
  meanOfHeads: boolean;
  /** The row of the map whose weights are drawn over the picture, or the mean of all; null: that of the opening. */
  query: number | "mean" | null;
  drawing: "heatmap" | "lines";
  statistic: Statistic;
  words: boolean;
  specials: boolean;
  /** Print every weight in its cell. */
  numbers: boolean;
  /** Stretch every row so that its largest weight has the full color. */
  stretched: boolean;
  hover: Cell | null;
  locked: Cell | null;
  /** The candidate of the search that was clicked, and the one under the pointer. */
  candidate: number | null;
  pointed: number | null;
  /** Show the steps of the search that follow the winner's end. */
  unfolded: boolean;
  hypothesis: number;
  alignment: "ribbons" | "matrix";
  /** Heads whose mean the alignment shows, as "layer.head"; empty: all heads of the document's alignment layer. */
  alignedHeads: string[];
  /** Show the alignment of tokens rather than words. */
  alignedTokens: boolean;
  /** Heads that are switched off, as "group.layer.head". */
  headsOff: string[];
  /** Method of attribution. */
  method: string;
  step: number;
  filters: Record<string, number | null>;
  /** Number of BPE merges that are done. */
  merge: number;
  mask: GroupName;
  /** Terms of the mask that are switched off. */
  hiddenTerms: string[];
  stack: string;
  /** Comparison: layer and head of the other model, null: its opening head; and the pair of output tokens. */
  againstHead: [number, number] | null;
  compared: number | null;
  /** Show the page as a slide. */
  present: boolean;
}

export class Store {
  private listeners: ((changed: Set<keyof State>) => void)[] = [];
  private pending: Set<keyof State> | null = null;

  constructor(public state: State) {}

  /** Change some values; listeners are called once after all changes of this turn, before the next frame. */
  set(patch: Partial<State>): void {
    const changed = Object.keys(patch).filter((key) => patch[key as keyof State] !== this.state[key as keyof State]);
    if (changed.length === 0) return;
    this.state = { ...this.state, ...patch };
    this.notify(changed as (keyof State)[]);
  }

  /** Call the listeners, e.g. because data arrived. */
  notify(keys: (keyof State)[] = []): void {
    if (this.pending) {
      for (const key of keys) this.pending.add(key);
      return;
    }
    this.pending = new Set(keys);
    queueMicrotask(() => {
      const changed = this.pending!;
      this.pending = null;
      for (const listener of this.listeners) listener(changed);
    });
  }

  subscribe(listener: (changed: Set<keyof State>) => void): void {
    this.listeners.push(listener);
  }
}
