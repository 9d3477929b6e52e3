// Drawing of a search with any renderer, and the labels of its candidates.

import { across } from "../curve.ts";
import type { Search, TokenInfo } from "../document.ts";
import type { Renderer } from "../renderer.ts";
import type { Theme } from "../theme.ts";
import { joinTokens, tokenLabel } from "../tokens.ts";
import { type BeamLayout, NODE_HEIGHT, isKept, lineage } from "./beam_layout.ts";
import { fitText, showPercent } from "./common.ts";

const marked = new WeakMap<object, boolean>();

/** Draw all candidates; the winner last, so that it lies on top. */
export function drawBeam(
  renderer: Renderer,
  search: Search,
  vocabulary: Record<string, TokenInfo>,
  layout: BeamLayout,
  theme: Theme,
): void {
  const winner = new Set(search.lineage);
  for (let step = 1; step <= layout.lastStep; step++)
    renderer.text(layout.nodes.get(0)!.x + step * layout.step + layout.node / 2, 10, String(step), {
      fill: theme.muted,
      size: 11,
      anchor: "middle",
    });
  const order = [...layout.nodes.keys()].sort(
    (a, b) => Number(winner.has(a)) - Number(winner.has(b)) || Number(isKept(search, a)) - Number(isKept(search, b)),
  );
  for (const candidate of order) {
    if (candidate === 0) continue;
    const kept = isKept(search, candidate);
    const style = winner.has(candidate)
      ? { stroke: theme.hue, width: 3.5 }
      : kept
        ? { stroke: theme.hue, width: 1.2, opacity: 0.75 }
        : { stroke: theme.muted, width: 0.8, opacity: 0.35 };
    renderer.path(linkTo(search, layout, candidate), style);
  }
  for (const candidate of order)
    drawNode(renderer, search, vocabulary, layout, theme, candidate, winner.has(candidate));
}

/** Draw a candidate and its ancestors prominently. */
export function drawFocus(
  renderer: Renderer,
  search: Search,
  vocabulary: Record<string, TokenInfo>,
  layout: BeamLayout,
  theme: Theme,
  candidate: number,
): void {
  const path = lineage(search, candidate);
  for (const number of path.slice(1)) renderer.path(linkTo(search, layout, number), { stroke: theme.accent, width: 2 });
  for (const number of path) {
    drawNode(renderer, search, vocabulary, layout, theme, number, search.lineage.includes(number));
    const node = layout.nodes.get(number)!;
    renderer.rect(node.x - 1, node.y - 1, layout.node + 2, NODE_HEIGHT + 2, {
      stroke: theme.accent,
      width: number === candidate ? 2.5 : 1.2,
      radius: search.status[number] === "finished" ? 12 : 5,
    });
  }
}

function drawNode(
  renderer: Renderer,
  search: Search,
  vocabulary: Record<string, TokenInfo>,
  layout: BeamLayout,
  theme: Theme,
  candidate: number,
  isWinner: boolean,
): void {
  const { x, y } = layout.nodes.get(candidate)!;
  const kept = isKept(search, candidate);
  renderer.rect(x, y, layout.node, NODE_HEIGHT, {
    fill: theme.page,
    stroke: kept ? theme.hue : theme.muted,
    width: isWinner ? 3 : kept ? 1.2 : 0.8,
    dash: kept ? undefined : "3 3",
    radius: search.status[candidate] === "finished" ? NODE_HEIGHT / 2 : 4,
  });
  const fill = kept ? theme.ink : theme.muted;
  const label = candidate === 0 ? "start" : nodeLabel(search, vocabulary, candidate);
  const short = fitText(label, 12, theme.font, layout.node - 8);
  const isRoot = candidate === 0;
  renderer.text(x + layout.node / 2, y + (isRoot ? NODE_HEIGHT / 2 : 12), short, {
    fill,
    size: 12,
    anchor: "middle",
    weight: isWinner ? 700 : 400,
  });
  if (isRoot) return;
  // The probability of the token after its parent, as a number and as a bar on a track.
  const probability = Math.exp(search.logprob[candidate] ?? -Infinity);
  renderer.text(x + layout.node / 2, y + 25, showPercent(probability), {
    fill: theme.muted,
    size: 11,
    anchor: "middle",
  });
  const bar = { x: x + 8, y: y + NODE_HEIGHT - 6, width: layout.node - 16 };
  renderer.rect(bar.x, bar.y, bar.width, 3, { fill: theme.rule });
  renderer.rect(bar.x, bar.y, Math.max(1, probability * bar.width), 3, { fill: kept ? theme.hue : theme.muted });
}

/** The text of a hypothesis so far. Vocabularies of whole words have no spaces of their own. */
export function textOf(search: Search, vocabulary: Record<string, TokenInfo>, path: number[], limit = 400): string {
  const tokens = path.slice(1).map((number) => vocabulary[search.token[number]]);
  if (marksWords(vocabulary)) return joinTokens(tokens, limit);
  return joinTokens(
    tokens.map((token) => token && { ...token, text: `${token.text} ` }),
    limit,
  );
}

function nodeLabel(search: Search, vocabulary: Record<string, TokenInfo>, candidate: number): string {
  const token = vocabulary[search.token[candidate]];
  const continues = search.step[candidate] > 1 && token?.role === "text" && !token.text.startsWith(" ");
  if (!marksWords(vocabulary)) return tokenLabel(token, false, 12);
  return tokenLabel(token, continues, 12);
}

/** Whether tokens that begin a word carry a space; otherwise nothing says which tokens continue one. */
function marksWords(vocabulary: Record<string, TokenInfo>): boolean {
  if (!marked.has(vocabulary))
    marked.set(
      vocabulary,
      Object.values(vocabulary).some((token) => /\s/.test(token.text)),
    );
  return marked.get(vocabulary)!;
}

function linkTo(search: Search, layout: BeamLayout, candidate: number): string {
  const [from, to] = [layout.nodes.get(search.parent[candidate])!, layout.nodes.get(candidate)!];
  const middle = NODE_HEIGHT / 2;
  return across([from.x + layout.node, from.y + middle], [to.x, to.y + middle]);
}
