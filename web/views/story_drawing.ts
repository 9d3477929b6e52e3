// The drawing of a story: what is read above, what is written below, ribbons between them, and the model's choices.

import { down } from "../curve.ts";
import type { Decoded, LookDocument } from "../document.ts";
import type { Renderer } from "../renderer.ts";
import type { Step, Story } from "../story.ts";
import type { Theme } from "../theme.ts";
import { fitText, showPercent, textWidth } from "./common.ts";
import {
  type Box,
  type PictureLayout,
  drawTinted,
  layoutPicture,
  layoutThumbnail,
  locateCell,
} from "./picture_drawing.ts";

export interface StoryLayout {
  /** Font size of words. */
  size: number;
  /** Boxes of inputs (null: not drawn), of outputs, and of the bars. */
  inputs: (Box | null)[];
  outputs: Box[];
  bars: Box;
  headings: [string, number, number][];
  picture: PictureLayout | null;
  width: number;
  height: number;
}

const LARGE = 1240; // a drawing this wide has large words
const MAX_INPUTS = 160; // words that are drawn; of a longer text the last ones
const BAR_PITCH = 25;
const MAX_BARS = 9;
const HEADING = 26;
const HEADING_END = 70; // pixels: right of "It reads"

/** Place words in lines. */
function flow(labels: string[], size: number, left: number, top: number, width: number, pitch: number, font: string) {
  let [x, y] = [left, top];
  const boxes = labels.map((label): Box => {
    const wide = Math.max(size, Math.min(width, textWidth(label, size, font) * 1.1 + size * 0.6));
    if (x > left && x + wide > left + width) [x, y] = [left, y + pitch];
    const box = { x, y, width: wide, height: size * 1.6 };
    x += wide + size * 0.4;
    return box;
  });
  return { boxes, bottom: boxes.length ? y + size * 1.6 : top };
}

/** The largest size at which what is read and what is written have one line each; long texts have several. */
function chooseSize(lines: { label: string }[][], available: number, width: number, font: string): number {
  if (available < 700) return 17;
  const fits = (size: number) =>
    lines.every(
      (units) =>
        units.length <= 40 &&
        units.reduce((sum, unit) => sum + textWidth(unit.label, size, font) * 1.1 + size, 0) <= width,
    );
  return (available >= LARGE ? [36, 30, 26, 22] : [28, 24, 20]).find(fits) ?? (available >= LARGE ? 22 : 20);
}

export function layoutStory(
  doc: LookDocument,
  story: Story,
  pixels: Decoded | undefined,
  available: number,
  theme: Theme,
): StoryLayout {
  const isWide = available >= 760;
  const barWidth = isWide ? Math.min(460, available * 0.34) : Math.min(420, available - 4);
  const width = isWide ? available - barWidth - 48 : available - 4;
  const isPicture = doc.picture !== undefined && !story.looksBack;
  const units = [isPicture ? [] : story.inputs, story.outputs];
  const size = chooseSize(units, available, width, theme.font);
  const headings: [string, number, number][] = [];
  let inputs: (Box | null)[] = [];
  let picture: PictureLayout | null = null;
  let bottom = 0;
  const hasInputs = story.inputs.length > 0;
  if (hasInputs) headings.push([story.looksBack ? "It looks back at" : "It reads", 2, 10]);
  if (isPicture && pixels) {
    const source = doc.picture!;
    picture =
      source.kind === "image"
        ? layoutThumbnail(source, pixels.shape, Math.min(available >= LARGE ? 520 : 360, width))
        : layoutPicture(source, pixels.shape, width);
    const { kind } = source;
    picture = { ...picture, picture: { ...picture.picture, x: kind === "image" ? 2 : 46, y: HEADING } };
    inputs = story.inputs.map((_, cell) => locateCell(source, picture!, picture!.picture, cell));
    bottom = HEADING + picture.picture.height;
  } else if (hasInputs && !isPicture) {
    const hidden = Math.max(0, story.inputs.length - MAX_INPUTS);
    const labels = story.inputs.slice(hidden).map((unit) => unit.label);
    const lines = flow(labels, size, 2, HEADING, width, size * 2, theme.font);
    inputs = [...Array<null>(hidden).fill(null), ...lines.boxes];
    bottom = lines.bottom;
  }
  const gap = hasInputs ? 56 : 0;
  headings.push([story.isWritten ? "It writes" : "It decides", 2, bottom + gap + 10]);
  const labels = story.outputs.map((output) => output.label);
  const lines = flow(labels, size, 2, bottom + gap + HEADING, width, size * 2.6, theme.font);
  bottom = lines.bottom + size * 1.1;
  const count = Math.min(MAX_BARS, Math.max(1, ...story.outputs.map((output) => output.bars.length)));
  const barHeight = HEADING + count * BAR_PITCH + 22;
  const shown = [...(picture ? [picture.picture] : inputs), ...lines.boxes];
  const right = Math.max(...shown.map((box) => (box ? box.x + box.width : 0)));
  const bars = isWide
    ? { x: Math.min(width, Math.max(right, 420)) + 44, y: 0, width: barWidth, height: barHeight }
    : { x: 2, y: bottom + 20, width: barWidth, height: barHeight };
  const height = Math.max(bottom, bars.y + bars.height) + 6;
  return { size, inputs, outputs: lines.boxes, bars, headings, picture, width: available, height };
}

/** Draw a step. `progress` from 0 to 1: ribbons and bars grow. */
export function drawStory(
  renderer: Renderer,
  doc: LookDocument,
  story: Story,
  step: Step,
  pixels: Decoded | undefined,
  layout: StoryLayout,
  theme: Theme,
  progress = 1,
): void {
  const output = story.outputs[step.output];
  drawInputs(renderer, doc, story, step, pixels, layout, theme);
  const to = layout.outputs[step.output];
  for (const input of step.inputs) {
    const box = layout.inputs[input];
    if (!box) continue;
    const share = output.shares[input];
    const start: [number, number] = layout.picture
      ? [box.x + box.width / 2, box.y + box.height / 2]
      : [box.x + box.width / 2, box.y + box.height];
    const data = down(start, [to.x + to.width / 2, to.y]);
    const style = { stroke: share > 0 ? (layout.picture ? theme.tint : theme.hue) : theme.minus };
    const size = Math.abs(share) * progress;
    renderer.path(data, { ...style, width: 1 + 13 * size, opacity: 0.15 + 0.55 * size });
  }
  for (const [text, x, y] of layout.headings) renderer.text(x, y, text, { fill: theme.muted, size: 13 });
  drawOutputs(renderer, story, step, layout, theme);
  if (step.isWritten) drawBars(renderer, story, step, layout, theme, progress);
}

function drawInputs(
  renderer: Renderer,
  doc: LookDocument,
  story: Story,
  step: Step,
  pixels: Decoded | undefined,
  layout: StoryLayout,
  theme: Theme,
): void {
  const { shares, places } = story.outputs[step.output];
  if (layout.picture && pixels) {
    const weights = Float32Array.from(story.inputs, (_, cell) =>
      step.isWritten || step.inputs.includes(cell) ? Math.max(0, shares[cell] ?? 0) : 0,
    );
    const largest = Math.max(1e-9, ...shares);
    drawTinted(renderer, doc.picture!, pixels, weights, largest, layout.picture, theme);
    if (doc.picture!.kind === "spectrogram") drawPlayhead(renderer, story, step, shares, layout, theme);
    return;
  }
  story.inputs.forEach(({ label, members }, input) => {
    const box = layout.inputs[input];
    if (!box || (story.looksBack && members[0] >= places[0])) return;
    const share = step.inputs.includes(input) ? (shares[input] ?? 0) : 0;
    if (share !== 0) {
      const fill = share > 0 ? theme.hue : theme.minus;
      renderer.rect(box.x, box.y, box.width, box.height, { fill, opacity: 0.1 + 0.35 * Math.abs(share), radius: 6 });
    }
    word(renderer, label, box, layout.size, theme, { fill: theme.ink, weight: share !== 0 ? 600 : 400 });
  });
}

/** A line at the time step that is read most, or that was reached last. */
function drawPlayhead(
  renderer: Renderer,
  story: Story,
  step: Step,
  shares: number[],
  layout: StoryLayout,
  theme: Theme,
): void {
  const largest = shares.reduce((best, share, i) => (share > shares[best] ? i : best), 0);
  const cell = step.isWritten ? largest : step.inputs[step.inputs.length - 1];
  const box = layout.inputs[cell ?? 0];
  if (!box || !shares.length) return;
  const x = box.x + box.width / 2;
  renderer.path(`M${x} ${box.y - 4}v${box.height + 8}`, { stroke: theme.accent, width: 2 });
  const anchor = x < HEADING_END + 20 ? "start" : x > layout.picture!.picture.width ? "end" : "middle";
  const from = anchor === "start" ? Math.max(x, HEADING_END) : x;
  renderer.text(from, box.y - 12, story.inputs[cell].label, { fill: theme.accent, size: 12, anchor });
}

function drawOutputs(renderer: Renderer, story: Story, step: Step, layout: StoryLayout, theme: Theme): void {
  story.outputs.forEach(({ label, probability }, i) => {
    const box = layout.outputs[i];
    const bottom = box.y + box.height;
    const isCurrent = i === step.output;
    if (i > step.output || (isCurrent && !step.isWritten)) {
      renderer.path(`M${box.x + 4} ${bottom - 4}h${box.width - 8}`, { stroke: theme.rule, width: 2 });
      return;
    }
    const opacity = 0.04 + 0.4 * probability;
    renderer.rect(box.x, box.y, box.width, box.height, { fill: theme.hue, opacity, radius: 6 });
    if (isCurrent) renderer.rect(box.x, box.y, box.width, box.height, { stroke: theme.accent, width: 2, radius: 6 });
    word(renderer, label, box, layout.size, theme, { fill: theme.ink, weight: isCurrent ? 600 : 400 });
    const percent = showPercent(probability);
    if (isCurrent || textWidth(percent, 12, theme.font) <= box.width + 4)
      renderer.text(box.x + box.width / 2, bottom + 10, percent, { fill: theme.muted, size: 12, anchor: "middle" });
  });
}

function drawBars(
  renderer: Renderer,
  story: Story,
  step: Step,
  layout: StoryLayout,
  theme: Theme,
  progress: number,
): void {
  const { bars, tokens } = story.outputs[step.output];
  const { x, y, width } = layout.bars;
  const label = Math.min(150, width * 0.36);
  const room = width - label - 74;
  const title = story.isWritten ? "What could come next" : "What it could be";
  renderer.text(x, y + 10, title, { fill: theme.muted, size: 13 });
  bars.slice(0, MAX_BARS).forEach((bar, i) => {
    const middle = y + HEADING + i * BAR_PITCH + BAR_PITCH / 2;
    const weight = bar.isChosen ? 700 : 400;
    if (bar.isChosen)
      renderer.rect(x, middle - BAR_PITCH / 2 + 1, width, BAR_PITCH - 2, { fill: theme.hue, opacity: 0.14, radius: 4 });
    const text = fitText(bar.label, 15, theme.font, label - 12);
    renderer.text(x + label - 8, middle, text, { fill: theme.ink, size: 15, weight, anchor: "end" });
    const length = Math.max(1.5, room * bar.probability * progress);
    renderer.rect(x + label, middle - 7, length, 14, { fill: theme.hue });
    renderer.text(x + label + length + 7, middle, showPercent(bar.probability), { fill: theme.ink, size: 13, weight });
  });
  if (tokens.length < 2) return;
  const parts = tokens.map((token) => `${token.label} ${showPercent(token.probability)}`).join(" · ");
  const end = y + HEADING + Math.min(MAX_BARS, bars.length) * BAR_PITCH + 12;
  const text = fitText(`Its ${tokens.length} tokens: ${parts}`, 13, theme.font, width);
  renderer.text(x, end, text, { fill: theme.muted, size: 13 });
}

function word(
  renderer: Renderer,
  label: string,
  box: Box,
  size: number,
  theme: Theme,
  style: { fill: string; weight: number },
): void {
  const text = fitText(label, size, theme.font, box.width);
  renderer.text(box.x + box.width / 2, box.y + box.height / 2, text, { ...style, size, anchor: "middle" });
}
