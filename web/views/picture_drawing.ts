// An image or a spectrogram tinted by attention weights, and the weights themselves: pure functions of numbers.

import type { Decoded, Picture } from "../document.ts";
import type { Pixels, Renderer } from "../renderer.ts";
import { type Theme, inkOn, mixPixel } from "../theme.ts";
import { showWeight } from "./common.ts";

export interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface PictureLayout {
  /** Where the picture is drawn, and where its weights. */
  picture: Box;
  weights: Box;
  /** Size of a cell; the last one of a spectrogram may be cut off. */
  cell: { width: number; height: number };
  width: number;
  height: number;
}

const GAP = 32;
const TINT = 0.75; // opacity at the largest weight: the picture stays visible below it
const BARS = 96;

/** Choose sizes for a width and a height. `shape` is that of the pixels: height, width, channels. */
export function layoutPicture(picture: Picture, shape: number[], available: number, room = 640): PictureLayout {
  const [height, width] = shape;
  if (picture.kind === "spectrogram") {
    const tall = Math.max(100, Math.min(220, 3 * height));
    const share = Math.max(0.6, Math.min(1.3, (room - 58) / (tall + BARS)));
    const bars = BARS * share;
    const box = {
      x: 46,
      y: 8,
      width: Math.min(available - 54, 1500),
      height: tall * share,
    };
    return {
      picture: box,
      weights: { ...box, y: box.y + box.height + 34, height: bars },
      cell: { width: (picture.cell[1] * box.width) / width, height: box.height },
      width: box.x + box.width + 8,
      height: box.y + box.height + 34 + bars + 8,
    };
  }
  const [left, top] = [22, 38];
  const beside = available >= 560;
  const side = beside ? (available - GAP) / 2 - left : available - left - 4;
  const scale = Math.min(side / width, (room - top - 6) / height);
  const box = { x: left, y: top, width: width * scale, height: height * scale };
  const second = beside ? { ...box, x: left + box.width + GAP + left } : { ...box, y: top + box.height + GAP + top };
  return {
    picture: box,
    weights: second,
    cell: { width: picture.cell[1] * scale, height: picture.cell[0] * scale },
    width: second.x + box.width + 4,
    height: second.y + box.height + 4,
  };
}

/** Choose sizes for the picture alone, in a square of this side. */
export function layoutThumbnail(picture: Picture, [height, width]: number[], side: number): PictureLayout {
  const scale = side / Math.max(width, height);
  const box = { x: 0, y: 0, width: width * scale, height: height * scale };
  const cell = { width: picture.cell[1] * scale, height: picture.cell[0] * scale };
  return { picture: box, weights: box, cell, width: box.width, height: box.height };
}

/** Draw the picture and the weights of its cells, scaled to `largest`. */
export function drawPicture(
  renderer: Renderer,
  picture: Picture,
  pixels: Decoded,
  weights: Float32Array,
  largest: number,
  layout: PictureLayout,
  theme: Theme,
): void {
  drawTinted(renderer, picture, pixels, weights, largest, layout, theme);
  if (picture.kind === "image") drawGrid(renderer, picture, weights, largest, layout, theme);
  else drawBars(renderer, picture, weights, largest, layout, theme);
}

/** Draw the picture alone, with the weights of its cells. */
export function drawTinted(
  renderer: Renderer,
  picture: Picture,
  pixels: Decoded,
  weights: Float32Array,
  largest: number,
  layout: PictureLayout,
  theme: Theme,
): void {
  const { x, y, width, height } = layout.picture;
  renderer.pixels(x, y, width, height, toPixels(picture, pixels, theme));
  // An image is tinted where it is read. A spectrogram fades where it is not, so that one sees what is read.
  const isImage = picture.kind === "image";
  const isRead = weights.some((weight) => weight > 0);
  weights.forEach((weight, index) => {
    const share = Math.sqrt(weight / largest);
    const opacity = isImage ? TINT * share : isRead ? TINT * (1 - share) : 0;
    const cell = locateCell(picture, layout, layout.picture, index);
    const fill = isImage ? theme.tint : theme.page;
    if (opacity > 0.01) renderer.rect(cell.x, cell.y, cell.width, cell.height, { fill, opacity });
  });
  outline(renderer, layout.picture, theme);
}

/** Mark the cell that attends in the picture, and the cell under the pointer wherever it is drawn. */
export function drawPictureFocus(
  renderer: Renderer,
  picture: Picture,
  layout: PictureLayout,
  theme: Theme,
  query: number | null,
  pointed: number | null,
): void {
  const mark = (box: Box, index: number, stroke: string, width: number) => {
    const cell = locateCell(picture, layout, box, index);
    renderer.rect(cell.x, cell.y, cell.width, cell.height, { stroke, width });
  };
  for (const box of [layout.picture, layout.weights]) {
    if (query !== null) {
      mark(box, query, theme.page, 5); // a rim, so that the mark is seen on any picture
      mark(box, query, theme.accent, 2.5);
    }
    if (pointed === null) continue;
    mark(box, pointed, theme.page, 3);
    mark(box, pointed, theme.ink, 1);
  }
}

/** Draw a line through a spectrogram and its weights at a time. */
export function drawPlayhead(
  renderer: Renderer,
  picture: Picture,
  layout: PictureLayout,
  theme: Theme,
  seconds: number,
): void {
  const { x, width } = layout.picture;
  const at = x + Math.min(width, (seconds / (picture.seconds ?? 1)) * layout.cell.width);
  const [top, bottom] = [layout.picture.y, layout.weights.y + layout.weights.height];
  renderer.path(`M${at} ${top}V${bottom}`, { stroke: theme.page, width: 5 });
  renderer.path(`M${at} ${top}V${bottom}`, { stroke: theme.ink, width: 2 });
}

/** The cell at a point, of the picture or of its weights. */
export function locateInPicture(picture: Picture, layout: PictureLayout, x: number, y: number): number | null {
  for (const box of [layout.picture, layout.weights]) {
    if (x < box.x || y < box.y || x >= box.x + box.width || y >= box.y + box.height) continue;
    const column = Math.min(picture.grid[1] - 1, Math.floor((x - box.x) / layout.cell.width));
    const row = picture.grid[0] === 1 ? 0 : Math.min(picture.grid[0] - 1, Math.floor((y - box.y) / layout.cell.height));
    return row * picture.grid[1] + column;
  }
  return null;
}

/** Where a cell is drawn. */
export function locateCell(picture: Picture, layout: PictureLayout, box: Box, index: number): Box {
  const column = index % picture.grid[1];
  const row = Math.floor(index / picture.grid[1]);
  const x = box.x + column * layout.cell.width;
  const height = picture.grid[0] === 1 ? box.height : layout.cell.height;
  return { x, y: box.y + row * height, width: Math.min(layout.cell.width, box.x + box.width - x), height };
}

/** An image in its own colors; a spectrogram in ink on the page, so that loud sounds stand out. */
function toPixels(picture: Picture, { codes, shape }: Decoded, theme: Theme): Pixels {
  const [height, width, channels] = shape;
  const data = new Uint32Array(width * height);
  const grays = Uint32Array.from({ length: 256 }, (_, level) =>
    picture.kind === "image" ? 0xff000000 | (level * 0x10101) : mixPixel(theme.page, theme.ink, level / 255),
  );
  for (let i = 0; i < data.length; i++)
    data[i] =
      channels < 3
        ? grays[codes[i * channels]]
        : 0xff000000 | (codes[i * channels + 2] << 16) | (codes[i * channels + 1] << 8) | codes[i * channels];
  return { width, height, data };
}

function drawGrid(
  renderer: Renderer,
  picture: Picture,
  weights: Float32Array,
  largest: number,
  layout: PictureLayout,
  theme: Theme,
): void {
  weights.forEach((weight, index) => {
    const cell = locateCell(picture, layout, layout.weights, index);
    const fill = theme.ramp[Math.round(255 * Math.sqrt(weight / largest))];
    renderer.rect(cell.x, cell.y, cell.width, cell.height, { fill });
    if (cell.width < 30 || cell.height < 14) return;
    const [x, y] = [cell.x + cell.width / 2, cell.y + cell.height / 2];
    const text = weight < 0.001 ? "" : showWeight(weight).slice(1);
    renderer.text(x, y, text, { fill: inkOn(fill), size: 11, anchor: "middle" });
  });
  outline(renderer, layout.weights, theme);
  const titles: [Box, string][] = [
    [layout.picture, "What the model read"],
    [layout.weights, "Weight of each patch"],
  ];
  const { width, height } = layout.cell;
  for (const [box, title] of titles) {
    renderer.text(box.x, box.y - 28, title, { fill: theme.ink, size: 13, weight: 600 });
    const style = { fill: theme.muted, size: 11 };
    const step = Math.ceil(18 / Math.min(width, height));
    for (let column = 0; column < picture.grid[1]; column += step)
      renderer.text(box.x + (column + 0.5) * width, box.y - 9, String(column), { ...style, anchor: "middle" });
    for (let row = 0; row < picture.grid[0]; row += step)
      renderer.text(box.x - 6, box.y + (row + 0.5) * height, String(row), { ...style, anchor: "end" });
  }
}

function drawBars(
  renderer: Renderer,
  picture: Picture,
  weights: Float32Array,
  largest: number,
  layout: PictureLayout,
  theme: Theme,
): void {
  const [box, bars] = [layout.picture, layout.weights];
  const style = { fill: theme.muted, size: 11, anchor: "end" as const };
  const top = (picture.rate ?? 0) / 2000;
  if (top) renderer.text(box.x - 6, box.y + 6, `${top < 10 ? Number(top.toFixed(1)) : Math.round(top)} kHz`, style);
  renderer.text(box.x - 6, box.y + box.height / 2, "mel", style);
  renderer.text(box.x - 6, box.y + box.height - 6, "0", style);
  const seconds = (box.width / layout.cell.width) * (picture.seconds ?? 1);
  const step = tickStep(seconds, box.width / 60);
  for (let tick = 0; tick * step <= seconds * 1.0001; tick++) {
    const x = box.x + (tick * step * box.width) / seconds;
    renderer.path(`M${x} ${box.y + box.height}v4`, { stroke: theme.muted });
    const anchor = x + 16 > box.x + box.width ? "end" : tick ? "middle" : "start";
    const text = `${Number((tick * step).toFixed(3))} s`;
    renderer.text(x, box.y + box.height + 13, text, { ...style, anchor });
  }
  const fill = theme.tint;
  weights.forEach((weight, index) => {
    const cell = locateCell(picture, layout, bars, index);
    const height = (weight / largest) * bars.height;
    const gap = cell.width > 4 ? 1 : 0;
    renderer.rect(cell.x, cell.y + bars.height - height, cell.width - gap, height, { fill });
  });
  renderer.path(`M${bars.x} ${bars.y + bars.height + 0.5}h${bars.width}`, { stroke: theme.muted });
  renderer.text(bars.x - 6, bars.y + 5, showWeight(largest), style);
  renderer.text(bars.x - 6, bars.y + bars.height / 2, "weight", style);
  renderer.text(bars.x - 6, bars.y + bars.height - 4, "0", style);
}

/** The smallest of 1, 2 or 5 times a power of ten that needs at most `count` steps. */
function tickStep(length: number, count: number): number {
  const power = 10 ** Math.floor(Math.log10(length / Math.max(1, count)));
  return power * ([1, 2, 5].find((factor) => factor * power * count >= length) ?? 10);
}

function outline(renderer: Renderer, { x, y, width, height }: Box, theme: Theme): void {
  renderer.rect(x - 0.5, y - 0.5, width + 1, height + 1, { stroke: theme.rule });
}
