// A drawing as a picture that explains itself: title, input and output above it, a credit below.

import { download } from "./download.ts";
import { CanvasRenderer, type Renderer, SvgRenderer } from "./renderer.ts";
import { type Theme, readTheme } from "./theme.ts";
import { fitText, textWidth } from "./text.ts";

export const SCALE = 2;
export const MARGIN = 24;
const LEAST_WIDTH = 560;
const LARGEST_SIDE = 16384; // pixels of a canvas
export const CREDIT = "Made with Regard";

export interface Drawing {
  width: number;
  height: number;
  draw(renderer: Renderer, theme: Theme): void;
}

/** What stands above a drawing: its title and what the model made of its input. */
export interface Caption {
  title: string;
  lines: string[];
}

/** The caption of what the page shows now: the view's title, the input, the output and how sure the model is. */
export function readCaption(): Caption {
  const read = (selector: string) => document.querySelector(selector)?.textContent?.trim() ?? "";
  const [input, output, sure] = ["header .input", "header h1 bdi", "header .sure"].map(read);
  const result = `${input && "→ "}${output}${sure && ` (${sure})`}`;
  return { title: read("#panel h2"), lines: [input, result].filter(Boolean) };
}

/** Draw a figure on a canvas at twice its size (or `largest`), or at what a canvas can hold. */
export function drawFigure(
  drawing: Drawing,
  caption: Caption,
  theme: Theme,
  canvas = document.createElement("canvas"),
  largest = SCALE,
): HTMLCanvasElement {
  const inner = Math.max(drawing.width, LEAST_WIDTH);
  const lines = [
    ...wrap(caption.title, 18, 700, inner, 2, theme),
    ...caption.lines.flatMap((line) => wrap(line, 14, 400, inner, 3, theme)),
  ];
  const head = lines.reduce((sum, line) => sum + line.size * 1.45, 0) + 12;
  const width = Math.ceil(inner + 2 * MARGIN);
  const height = Math.ceil(head + drawing.height + 22 + 2 * MARGIN);
  const scale = Math.min(largest, LARGEST_SIDE / Math.max(width, height));
  const renderer = new CanvasRenderer(canvas, width, height, theme.font, scale);
  renderer.rect(0, 0, width, height, { fill: theme.page });
  let y = MARGIN;
  for (const { text, size, weight } of lines) {
    renderer.text(MARGIN, y + size * 0.7, text, { fill: theme.ink, size, weight });
    y += size * 1.45;
  }
  const part = document.createElement("canvas");
  drawing.draw(new CanvasRenderer(part, drawing.width, drawing.height, theme.font, scale), theme);
  renderer.image(part, MARGIN, MARGIN + head, drawing.width, drawing.height);
  renderer.text(MARGIN, height - MARGIN - 2, CREDIT, { fill: theme.muted, size: 12 });
  return canvas;
}

export function savePng(name: string, drawing: Drawing): void {
  drawFigure(drawing, readCaption(), readTheme()).toBlob((blob) => blob && download(`${name}.png`, blob), "image/png");
}

export function saveSvg(name: string, { width, height, draw }: Drawing): void {
  const theme = readTheme();
  const renderer = new SvgRenderer(width, height, theme.font, theme.page);
  draw(renderer, theme);
  const text = new XMLSerializer().serializeToString(renderer.element);
  download(`${name}.svg`, new Blob([text], { type: "image/svg+xml" }));
}

/** Break a text into at most `count` lines; the last one is shortened. */
export function wrap(text: string, size: number, weight: number, width: number, count: number, theme: Theme) {
  const font = theme.font;
  const room = weight > 500 ? width / 1.08 : width; // bold letters are wider than those that are measured
  const lines: string[] = [];
  for (const word of text.split(/\s+/).filter(Boolean)) {
    const last = lines.at(-1);
    const joined = last === undefined ? word : `${last} ${word}`;
    if (last !== undefined && (lines.length === count || textWidth(joined, size, font) <= room))
      lines[lines.length - 1] = joined;
    else lines.push(word);
    if (lines.length === count && textWidth(lines[count - 1], size, font) > room) break;
  }
  return lines.map((line) => ({ text: fitText(line, size, font, room), size, weight }));
}
