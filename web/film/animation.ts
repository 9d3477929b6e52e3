// A film as an animated picture: the curves with the step, and one example with its output and the chosen head.

import type { Animation } from "../animation.ts";
import { wrap } from "../figure.ts";
import type { Renderer } from "../renderer.ts";
import { type Theme, readTheme } from "../theme.ts";
import { showText } from "../tokens.ts";
import { drawHeatmap } from "../views/heatmap.ts";
import type { FilmContext } from "./context.ts";
import { type Axes, drawCurves, drawStep, listLines, metricTitle } from "./curves.ts";
import { type Film, type FilmDocument, type Frame } from "./document.ts";
import { describeShot } from "./examples.ts";
import { TITLES, layoutMaps, readMap } from "./map.ts";

const TEXT_TOP = 236; // below the curves
export const CURVES = { width: 520, height: 200 };
const GAP = 40;
const MAP = { width: 460, height: 420 };

/** Where a frame is in the training. */
export function describeFrame({ step, loss }: Frame): string {
  const state = loss === null ? "before the first step" : `loss ${loss.toFixed(3)}`;
  return `Step ${step.toLocaleString("en")} · ${state}`;
}

/** The frames with the example, head and curve that the page shows. */
export async function animateFilm(
  { doc, state }: FilmContext,
  film: Film,
  axes: Axes,
  lines: string[],
  delay: number,
): Promise<Animation> {
  const { probe, layer, head, metric } = state;
  const maps = await Promise.all(film.frames.map((frame) => readMap(film, frame, probe, layer, head)));
  const hasMap = maps.some((map) => map !== null);
  const layout = layoutMaps(film, probe, MAP.width, MAP.height);
  const place = { ...layout, left: layout.left + CURVES.width + GAP, top: layout.top + 32 };
  const example = layoutExample(film, probe, readTheme());
  const title = `${TITLES[film.attention.name]} (layer ${layer + 1}, head ${head + 1})`;
  return {
    name: "film",
    caption: { title: showText(doc.text, 160), lines },
    width: CURVES.width + (hasMap ? GAP + Math.max(layout.width, 320) : 0),
    height: Math.max(example.bottom, hasMap ? layout.height + 36 : 0),
    count: film.frames.length,
    delay,
    draw: (i, renderer, theme) => {
      drawTraining(renderer, theme, doc, film, axes, metric, film.frames[i].step);
      example.draw(i, renderer);
      if (!hasMap) return;
      renderer.text(CURVES.width + GAP, 10, title, { fill: theme.muted, size: 13 });
      if (maps[i]) drawHeatmap(renderer, maps[i], place, theme, { pixelRatio: 1.5 });
    },
    tell: (i) => describeFrame(film.frames[i]),
  };
}

function drawTraining(
  renderer: Renderer,
  theme: Theme,
  doc: FilmDocument,
  film: Film,
  axes: Axes,
  metric: string,
  step: number,
): void {
  const steps = film.frames.map((frame) => frame.step);
  drawCurves(renderer, theme, listLines(doc, metric), axes, steps);
  drawStep(renderer, theme, axes, step);
  const style = { fill: theme.muted, size: 13, anchor: "end" } as const;
  renderer.text(axes.width - axes.right, axes.height + 12, `${metricTitle(metric)} by step`, style);
}

/** Input, output, reference and how likely they are; what follows the output has the same place in every frame. */
function layoutExample(film: Film, probe: number, theme: Theme) {
  const { text, reference } = film.probes[probe];
  const shots = film.frames.map((frame) => frame.probes[probe].output.trim() || "(nothing)");
  const lines = (text: string, size: number, count: number) =>
    wrap(showText(text, 300), size, 400, CURVES.width, count, theme);
  const source = lines(text, 14, 2);
  const outputs = shots.map((text) => lines(text, 19, 3));
  const references = reference ? lines(`Reference: ${reference}`, 13, 2) : [];
  const top = TEXT_TOP + source.length * 20 + 6;
  const below = top + Math.max(...outputs.map((output) => output.length)) * 27 + 6;
  const numbers = below + references.length * 19;
  return {
    bottom: numbers + 20,
    draw(frame: number, renderer: Renderer): void {
      const write = (lines: { text: string }[], y: number, pitch: number, fill: string, size: number) =>
        lines.forEach(({ text }, i) => renderer.text(0, y + (i + 0.5) * pitch, text, { fill, size }));
      write(source, TEXT_TOP, 20, theme.muted, 14);
      write(outputs[frame], top, 27, theme.ink, 19);
      write(references, below, 19, theme.muted, 13);
      write([{ text: describeShot(film, frame, probe) }], numbers, 19, theme.muted, 13);
    },
  };
}
