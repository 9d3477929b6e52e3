// Places of the candidates of a search: x is the step, y the rank.

import type { Search } from "../document.ts";

export interface Node {
  candidate: number;
  x: number;
  y: number;
  /** Rank among the candidates of its step, 1 is the best; those that the search kept come first. */
  rank: number;
}

export interface BeamLayout {
  nodes: Map<number, Node>;
  /** Candidates of each step, by rank. */
  steps: number[][];
  lastStep: number;
  /** Pixels from one step to the next, and of a node. */
  step: number;
  node: number;
  width: number;
  height: number;
}

const [MIN_STEP, MAX_STEP] = [78, 140]; // pixels from one step to the next
const SPACE = 16; // between them
export const NODE_HEIGHT = 38;
const ROW = 44;
const LEFT = 8;
const TOP = 26;

/** Whether the search went on from a candidate or finished it, rather than drop it at once. */
export function isKept(search: Search, candidate: number): boolean {
  return search.status[candidate] !== "dropped";
}

/** Steps are as wide as the page allows. */
export function layoutBeam(search: Search, lastStep: number, available = 0): BeamLayout {
  const pitch = Math.floor(Math.max(MIN_STEP, Math.min(MAX_STEP, (available - 16) / (lastStep + 1))));
  const node = pitch - SPACE;
  const steps: number[][] = Array.from({ length: lastStep + 1 }, () => []);
  search.step.forEach((step, candidate) => {
    if (step <= lastStep) steps[step].push(candidate);
  });
  const total = (candidate: number) => search.total[candidate] ?? -Infinity;
  const nodes = new Map<number, Node>();
  let height = 0;
  steps.forEach((candidates, step) => {
    candidates.sort((a, b) => Number(isKept(search, b)) - Number(isKept(search, a)) || total(b) - total(a));
    let y = TOP;
    candidates.forEach((candidate, i) => {
      // A gap parts the hypotheses that live from those that were dropped.
      if (i > 0 && !isKept(search, candidate) && isKept(search, candidates[i - 1])) y += 8;
      nodes.set(candidate, { candidate, x: LEFT + step * pitch, y, rank: i + 1 });
      y += ROW;
    });
    height = Math.max(height, y);
  });
  const width = LEFT + lastStep * pitch + node + 8;
  return { nodes, steps, lastStep, step: pitch, node, width, height: height + 4 };
}

/** A candidate and its ancestors, the root first. */
export function lineage(search: Search, candidate: number): number[] {
  const path = [candidate];
  while (search.step[path[0]] > 0) path.unshift(search.parent[path[0]]);
  return path;
}

export function locateInBeam(layout: BeamLayout, x: number, y: number): number | null {
  const step = Math.floor((x - LEFT) / layout.step);
  const found = layout.steps[step]?.find((candidate) => {
    const node = layout.nodes.get(candidate)!;
    return x >= node.x && x <= node.x + layout.node && y >= node.y && y <= node.y + NODE_HEIGHT;
  });
  return found ?? null;
}

/** The candidate that an arrow key leads to. */
export function neighbor(search: Search, layout: BeamLayout, candidate: number, key: string): number | null {
  const step = search.step[candidate];
  const row = layout.steps[step];
  const at = row.indexOf(candidate);
  if (key === "ArrowUp") return row[Math.max(0, at - 1)];
  if (key === "ArrowDown") return row[Math.min(row.length - 1, at + 1)];
  if (key === "ArrowLeft") return search.parent[candidate];
  if (key === "ArrowRight")
    return layout.steps[step + 1]?.find((next) => search.parent[next] === candidate) ?? candidate;
  return null;
}
