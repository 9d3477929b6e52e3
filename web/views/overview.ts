// All heads of a group in one drawing: a thumbnail of each, or past 100 heads a cell colored by a statistic.

import type { Decoded, Group, LookDocument, Statistic } from "../document.ts";
import { colorCodes } from "../matrix.ts";
import type { Renderer } from "../renderer.ts";
import type { Theme } from "../theme.ts";

export interface OverviewLayout {
  /** Size of a head's cell, and the distance from one to the next. */
  cell: number;
  pitch: number;
  left: number;
  top: number;
  width: number;
  height: number;
}

export const STATISTICS: Record<Statistic, { title: string; unit: string; says: (value: string) => string }> = {
  entropy: { title: "Entropy", unit: "nats", says: (value) => `entropy ${value} nats` },
  distance: { title: "Distance", unit: "tokens", says: (value) => `mean distance ${value} tokens` },
  previous: { title: "Previous token", unit: "", says: (value) => `weight ${value} on the previous token` },
  first: { title: "First token (attention sink)", unit: "", says: (value) => `weight ${value} on the first token` },
};

const LEFT = 34; // as wide as "layer"
const TOP = 30; // "head" and its numbers

export function layoutOverview(group: Group, available: number, thumbnails: boolean): OverviewLayout {
  const left = LEFT;
  const room = (available - left) / group.heads;
  const pitch = thumbnails ? Math.max(30, Math.min(62, Math.floor(room))) : Math.max(6, Math.min(20, Math.floor(room)));
  const cell = pitch - (thumbnails ? 8 : 1);
  const top = TOP;
  return { cell, pitch, left, top, width: left + group.heads * pitch, height: top + group.layers * pitch };
}

/** Draw the heads of a group. `thumbnails` is null where a statistic colors the cells; a head of null is the layer. */
export function drawOverview(
  renderer: Renderer,
  group: Group,
  layout: OverviewLayout,
  theme: Theme,
  thumbnails: Decoded | null,
  statistic: Statistic,
  selected: { layer: number; head: number | null } | null,
): void {
  const { cell, pitch, left, top } = layout;
  const labeled = (index: number) => pitch >= 18 || index % Math.ceil(18 / pitch) === 0;
  const name = { fill: theme.muted, size: 11 };
  renderer.text(left, 6, "head", name);
  renderer.text(left - 6, TOP / 2 + 6, "layer", { ...name, anchor: "end" });
  for (let head = 0; head < group.heads; head++)
    if (labeled(head))
      renderer.text(left + head * pitch + cell / 2, TOP / 2 + 6, String(head + 1), {
        fill: theme.muted,
        size: 11,
        anchor: "middle",
      });
  for (let layer = 0; layer < group.layers; layer++)
    if (labeled(layer))
      renderer.text(left - 6, top + layer * pitch + cell / 2, String(layer + 1), {
        fill: theme.muted,
        size: 11,
        anchor: "end",
      });
  if (thumbnails) drawThumbnails(renderer, group, layout, theme, thumbnails);
  else drawStatistic(renderer, group, layout, theme, statistic);
  if (selected) {
    const [x, y] = [left + (selected.head ?? 0) * pitch, top + selected.layer * pitch];
    const width = selected.head === null ? (group.heads - 1) * pitch + cell : cell;
    const gap = thumbnails ? 2.5 : 1;
    renderer.rect(x - gap, y - gap, width + 2 * gap, cell + 2 * gap, {
      stroke: theme.accent,
      width: thumbnails ? 2.5 : 2,
      radius: thumbnails ? 3 : 0,
    });
  }
}

function drawThumbnails(renderer: Renderer, group: Group, layout: OverviewLayout, theme: Theme, thumbnails: Decoded) {
  const { cell, pitch, left, top } = layout;
  const [rows, columns] = thumbnails.shape.slice(2);
  const codes = thumbnails.codes as Uint8Array;
  for (let layer = 0; layer < group.layers; layer++)
    for (let head = 0; head < group.heads; head++) {
      const start = (layer * group.heads + head) * rows * columns;
      const one = codes.subarray(start, start + rows * columns);
      const [x, y] = [left + head * pitch, top + layer * pitch];
      renderer.pixels(x, y, cell, cell, colorCodes(one, rows, columns, theme.pixels, cell * 2, cell * 2));
      renderer.rect(x - 0.5, y - 0.5, cell + 1, cell + 1, { stroke: theme.rule, radius: 1 });
    }
}

function drawStatistic(renderer: Renderer, group: Group, layout: OverviewLayout, theme: Theme, statistic: Statistic) {
  const { cell, pitch, left, top } = layout;
  const largest = statisticRange(group, statistic);
  group.statistics[statistic].forEach((row, layer) =>
    row.forEach((value, head) => {
      const [x, y] = [left + head * pitch, top + layer * pitch];
      const fill = theme.ramp[Math.round((255 * (value ?? 0)) / largest)];
      renderer.rect(x, y, cell, cell, value === null ? { stroke: theme.rule } : { fill });
    }),
  );
}

/** The largest value, which gets the full color: 1 for weights. */
export function statisticRange(group: Group, statistic: Statistic): number {
  if (statistic === "previous" || statistic === "first") return 1;
  return Math.max(1e-9, ...group.statistics[statistic].flat().map((value) => value ?? 0));
}

export function locateInOverview(group: Group, layout: OverviewLayout, x: number, y: number) {
  const head = Math.floor((x - layout.left) / layout.pitch);
  const layer = Math.floor((y - layout.top) / layout.pitch);
  const inside = head >= 0 && head < group.heads && layer >= 0 && layer < group.layers;
  return inside ? { layer, head } : null;
}

/** What a head does, from its statistics, in one sentence. */
export function describeHead(doc: LookDocument, group: Group, layer: number, head: number): string {
  const read = (name: Statistic) => group.statistics[name]?.[layer]?.[head] ?? null;
  const [entropy, distance, previous, first] = [read("entropy"), read("distance"), read("previous"), read("first")];
  const percent = (value: number) => `${Math.round(value * 100)} %`;
  if (previous !== null && previous >= 0.5)
    return `This head reads the previous token: it gets ${percent(previous)} of the weight.`;
  if (first !== null && first >= 0.5 && group.name !== "decoder.cross" && group.column_count > 4)
    return `This head rests on the first token, an attention sink: it gets ${percent(first)} of the weight.`;
  if (entropy === null) return "";
  // exp(entropy) is the number of equally weighted tokens with this entropy.
  const effective = Math.exp(entropy);
  const number = effective < 1.5 ? "one" : String(Math.round(effective));
  const cell = doc.picture?.kind === "image" ? "patch" : doc.picture ? "time step" : "token";
  const noun =
    group.columns === "source"
      ? doc.picture
        ? cell
        : group.name === "decoder.cross"
          ? "source token"
          : cell
      : "token";
  const reader =
    group.rows === "target"
      ? group.name === "decoder.cross" && group.row_start > 0
        ? "generated token"
        : "token"
      : cell;
  const many = number === "one" ? noun : noun.endsWith("ch") ? `${noun}es` : `${noun}s`;
  const away = distance === null ? "" : `, ${distance.toFixed(1)} positions away on average`;
  return `Each ${reader} reads about ${number} ${many}${away}.`;
}
