// Drawings of a sampling step: bars after each filter, and the race.

import type { Race } from "../document.ts";
import type { Renderer } from "../renderer.ts";
import type { Theme } from "../theme.ts";
import { fitText, showWeight } from "./common.ts";

export interface Row {
  label: string;
  /** Probability after each stage. */
  values: number[];
  isChosen: boolean;
}

interface Layout {
  width: number;
  height: number;
}

const LABEL = 96;
const COLUMN = 108;
const PITCH = 24;
const TOP = 26;

export function layoutStages(rows: number, stages: number): Layout {
  return { width: LABEL + stages * COLUMN + 4, height: TOP + rows * PITCH + 6 };
}

/** One column of bars per stage; the scale is the same in all, so that renormalizing shows. */
export function drawStages(renderer: Renderer, rows: Row[], names: string[], layout: Layout, theme: Theme): void {
  const largest = Math.max(1e-9, ...rows.flatMap((row) => row.values));
  const scale = (value: number) => (value / largest) * (COLUMN - 56);
  names.forEach((name, i) =>
    renderer.text(LABEL + i * COLUMN, 10, fitText(name, 12, theme.font, COLUMN - 6), { fill: theme.muted, size: 12 }),
  );
  rows.forEach((row, r) => {
    const y = TOP + r * PITCH + PITCH / 2;
    if (row.isChosen)
      renderer.rect(0, y - PITCH / 2 + 1, layout.width, PITCH - 2, { fill: theme.hue, opacity: 0.16, radius: 4 });
    const label = fitText(row.label, 13, theme.font, LABEL - 14);
    renderer.text(LABEL - 8, y, label, { fill: theme.ink, weight: row.isChosen ? 700 : 400, anchor: "end" });
    row.values.forEach((value, i) => {
      const x = LABEL + i * COLUMN;
      if (value === 0) {
        renderer.text(x, y, "removed", { fill: theme.muted, size: 11 });
        return;
      }
      const length = Math.max(1.5, scale(value));
      renderer.rect(x, y - 6, length, 12, { fill: theme.hue });
      renderer.text(x + length + 5, y, showWeight(value), { fill: theme.ink, size: 11 });
    });
  });
}

export function layoutRace(rows: number): Layout {
  return { width: 360, height: TOP + rows * PITCH + 6 };
}

/** Bars of probability / wait; the longest wins. */
export function drawRace(
  renderer: Renderer,
  race: Race,
  label: (token: number) => string,
  layout: Layout,
  theme: Theme,
): void {
  const count = Math.min(8, race.tokens.length);
  const ratio = (i: number) => race.probabilities[i] / race.times[i];
  const scale = (value: number) => (value / ratio(0)) * (layout.width - LABEL - 104);
  const header = { fill: theme.muted, size: 12 };
  renderer.text(LABEL, 10, "probability / wait", header);
  renderer.text(layout.width - 52, 10, "prob.", { ...header, anchor: "end" });
  renderer.text(layout.width - 2, 10, "wait", { ...header, anchor: "end" });
  for (let i = 0; i < count; i++) {
    const y = TOP + i * PITCH + PITCH / 2;
    renderer.text(LABEL - 8, y, fitText(label(race.tokens[i]), 13, theme.font, LABEL - 14), {
      fill: theme.ink,
      anchor: "end",
      weight: i > 0 ? 400 : 700,
    });
    renderer.rect(LABEL, y - 6, Math.max(1.5, scale(ratio(i))), 12, { fill: theme.hue, opacity: i > 0 ? 0.5 : 1 });
    const small = { fill: theme.ink, size: 11, anchor: "end" as const };
    renderer.text(layout.width - 52, y, showWeight(race.probabilities[i]), small);
    renderer.text(layout.width - 2, y, showWeight(race.times[i]), small);
  }
}
