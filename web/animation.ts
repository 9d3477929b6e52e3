// A story or a film as one picture that moves: every frame is a figure of the same size with a sentence below it.

import { type AnimationFrame, joinFrames } from "./apng.ts";
import { fill, h } from "./dom.ts";
import { download } from "./download.ts";
import { type Caption, drawFigure, wrap } from "./figure.ts";
import type { Renderer } from "./renderer.ts";
import { type Theme, readTheme } from "./theme.ts";

export interface Animation {
  name: string;
  caption: Caption;
  width: number;
  height: number;
  /** How many steps there are; a long animation leaves some out. */
  count: number;
  /** Milliseconds per frame. */
  delay: number;
  draw(index: number, renderer: Renderer, theme: Theme): void;
  /** What happens at a step. */
  tell(index: number): string;
}

const MAX_FRAMES = 60;
const MAX_BYTES = 4e6;
const MAX_PIXELS = 2e6;
const SCALE = 1.5;
const LAST_DELAY = 3000; // milliseconds to look at the result
const [SENTENCE, LINE] = [16, 24];

/** The steps that become frames: every k-th and the last, at most `MAX_FRAMES`. */
export function chooseFrames(count: number): { stride: number; steps: number[] } {
  const stride = Math.max(1, Math.ceil((count - 1) / (MAX_FRAMES - 1)));
  const steps = Array.from({ length: Math.ceil((count - 1) / stride) }, (_, i) => i * stride);
  return { stride, steps: [...steps, count - 1] };
}

/** Encode an animation, smaller if it has too many bytes. `report` returns whether to go on after so many frames. */
async function encode(
  animation: Animation,
  report: (done: number, all: number) => boolean,
): Promise<Uint8Array<ArrayBuffer> | null> {
  const theme = readTheme();
  const { width, height, caption, draw, tell, delay } = animation;
  const { steps } = chooseFrames(animation.count);
  const sentences = steps.map((step) => wrap(tell(step), SENTENCE, 400, width, 3, theme));
  const lines = Math.max(...sentences.map((sentence) => sentence.length));
  const whole = height + 12 + lines * LINE;
  const canvas = document.createElement("canvas");
  const context = canvas.getContext("2d", { willReadFrequently: true })!;
  for (let scale = Math.min(SCALE, Math.sqrt(MAX_PIXELS / (width * whole))); ; scale *= 0.7) {
    const frames: AnimationFrame[] = [];
    let bytes = 0;
    let before: Uint32Array | null = null;
    for (const [i, step] of steps.entries()) {
      await new Promise((resolve) => setTimeout(resolve)); // the page stays usable
      if (!report(i, steps.length)) return null;
      const figure = (renderer: Renderer) => {
        draw(step, renderer, theme);
        sentences[i].forEach(({ text }, line) =>
          renderer.text(0, height + 12 + (line + 0.5) * LINE, text, { fill: theme.ink, size: SENTENCE }),
        );
      };
      drawFigure({ width, height: whole, draw: figure }, caption, theme, canvas, scale);
      before = keepChanges(context, before);
      const blob = await new Promise<Blob | null>((resolve) => canvas.toBlob(resolve, "image/png"));
      if (!blob) throw new Error("This browser cannot encode the picture.");
      bytes += blob.size;
      if (bytes > MAX_BYTES && scale > 0.4) break;
      const png = new Uint8Array(await blob.arrayBuffer());
      frames.push({ png, delay: i === steps.length - 1 ? LAST_DELAY : delay, isOver: i > 0 });
    }
    if (frames.length === steps.length) return joinFrames(frames);
  }
}

/** Clear the pixels of a canvas that equal those before: a step changes few of them. Returns what it showed. */
function keepChanges(context: CanvasRenderingContext2D, before: Uint32Array | null): Uint32Array {
  const image = context.getImageData(0, 0, context.canvas.width, context.canvas.height);
  const changed = new Uint32Array(image.data.buffer);
  const pixels = changed.slice();
  for (let i = 0; i < pixels.length; i++) {
    pixels[i] |= 0xff000000; // an edge that a fraction of a pixel covers
    changed[i] = before?.[i] === pixels[i] ? 0 : pixels[i];
  }
  context.putImageData(image, 0, 0);
  return pixels;
}

/** What to know about a saved file of so many bytes and steps. */
export function describeSaved(bytes: number, count: number): string {
  const { stride } = chooseFrames(count);
  const left = stride > 1 ? ` Too long for ${MAX_FRAMES} frames: it has one step in ${stride}.` : "";
  return `Saved: ${Math.max(0.1, bytes / 1e6).toFixed(1)} MB.${left}`;
}

/** A button that saves an animation; while it works, it shows how far it is and cancels. */
export function animationButton(make: () => Animation | Promise<Animation>): HTMLElement {
  const label = "Save animation";
  const status = h("span", { class: "small", role: "status" });
  const button = h("button", { type: "button", class: "quiet", onclick: () => void click() }, label);
  let state: "idle" | "busy" | "canceled" = "idle";

  async function click(): Promise<void> {
    state = state === "idle" ? "busy" : "canceled";
    if (state === "canceled") return; // the encoder stops before its next frame
    fill(status);
    try {
      const animation = await make();
      const bytes = await encode(animation, (done, all) => {
        button.textContent = `Cancel (${done} of ${all})`;
        return state === "busy";
      });
      if (bytes) {
        download(`${animation.name}.png`, new Blob([bytes], { type: "image/png" }));
        fill(status, describeSaved(bytes.length, animation.count));
      }
    } catch (error) {
      fill(status, `Not saved: ${(error as Error).message}`);
    }
    state = "idle";
    button.textContent = label;
  }
  return h("span", { class: "animation slide-hidden" }, button, " ", status);
}
