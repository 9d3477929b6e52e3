// Break it as a figure: what switching off each head of a group changes, for "Save as SVG" and "Save as PNG".

import type { Ablation, Group, GroupName } from "../document.ts";
import { cellText } from "../effects.ts";
import type { Renderer } from "../renderer.ts";
import type { Theme } from "../theme.ts";
import type { OverviewLayout } from "./overview.ts";

/** "group.layer.head" in parts. */
export function parseHead(key: string): { group: GroupName; layer: number; head: number } {
  const parts = key.split(".");
  return { group: parts.slice(0, -2).join(".") as GroupName, layer: Number(parts.at(-2)), head: Number(parts.at(-1)) };
}

export function layoutSwitches(group: Group, available: number): OverviewLayout {
  const left = 40;
  const room = Math.floor((available - left) / group.heads);
  const pitch = Math.max(9, Math.min(112, room));
  return {
    pitch,
    cell: pitch - (pitch > 20 ? 4 : 1),
    left,
    top: TOP,
    width: left + group.heads * pitch,
    height: TOP + group.layers * rowPitch(pitch),
  };
}

// Cells are flat, so that numbers fit and many layers stay on the screen.
const rowPitch = (pitch: number) => (pitch > 80 ? 46 : Math.min(pitch, 36));
const TOP = 32; // "head" and its numbers

export function drawSwitches(
  renderer: Renderer,
  data: Ablation,
  group: Group,
  layout: OverviewLayout,
  theme: Theme,
  off: string[],
): void {
  const { left, top, pitch, cell } = layout;
  const [step, height] = [rowPitch(pitch), rowPitch(pitch) - (pitch - cell)];
  const largest = Math.max(
    1e-9,
    ...Object.values(data.delta)
      .flat(2)
      .map((value) => Math.abs(value ?? 0)),
  );
  const small = { fill: theme.muted, size: 11 };
  renderer.text(left, 7, "head", small);
  renderer.text(left - 8, 23, "layer", { ...small, anchor: "end" });
  for (let head = 0; head < group.heads; head++)
    if (pitch >= 18 || head % 4 === 0)
      renderer.text(left + head * pitch + cell / 2, 23, String(head + 1), { ...small, anchor: "middle" });
  data.delta[group.name].forEach((row, layer) => {
    const y = top + layer * step;
    if (step >= 14 || layer % 2 === 0)
      renderer.text(left - 8, y + height / 2, String(layer + 1), { ...small, anchor: "end" });
    row.forEach((value, head) => {
      const x = left + head * pitch;
      if (value === null) return renderer.rect(x, y, cell, height, { stroke: theme.rule });
      const opacity = (0.62 * Math.abs(value)) / largest; // the number stays readable on it
      renderer.rect(x, y, cell, height, { fill: value < 0 ? theme.hue : theme.minus, opacity });
      renderer.rect(x + 0.5, y + 0.5, cell - 1, height - 1, { stroke: theme.rule });
      if (pitch >= 40)
        renderer.text(x + cell / 2, y + height / 2, cellText(value), {
          fill: theme.ink,
          size: pitch > 80 ? 15 : 12,
          anchor: "middle",
        });
    });
  });
  for (const { group: name, layer, head } of off.map(parseHead))
    if (name === group.name)
      renderer.rect(left + head * pitch, top + layer * step, cell, height, { stroke: theme.accent, width: 3 });
}
