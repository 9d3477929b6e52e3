// What every view gets, and what several views share.

import { h } from "../dom.ts";
import type { Decoded, Group, GroupName, Loader, LookDocument } from "../document.ts";
import type { Live } from "../live.ts";
import { CanvasRenderer, type Renderer, SvgRenderer, saveSvg } from "../renderer.ts";
import type { State, Store } from "../state.ts";
import { type Theme, readTheme } from "../theme.ts";

export interface Context {
  doc: LookDocument;
  store: Store;
  blobs: Loader<Decoded>;
  live: Live;
}

export interface View {
  name: string;
  title: string;
  /** Whether the document has what this view shows. */
  applies(doc: LookDocument): boolean;
  mount(context: Context): Mounted;
}

export interface Mounted {
  element: HTMLElement;
  /** Draw the state. `changed` is empty after a change of size, colors or data. */
  update(changed: Set<keyof State>): void;
}

export const GROUP_TITLES: Record<GroupName, string> = {
  "encoder.self": "Encoder self-attention",
  "decoder.self": "Decoder self-attention",
  "decoder.cross": "Cross-attention",
};

export const GROUP_SUBTITLES: Record<GroupName, string> = {
  "encoder.self": "source attends to source",
  "decoder.self": "each token attends to earlier ones",
  "decoder.cross": "generated token attends to source",
};

export function findGroup(doc: LookDocument, name: GroupName): Group {
  return doc.attention.find((group) => group.name === name) ?? doc.attention[0];
}

/** A canvas with a second one on top for what follows the pointer: the drawing below is not repeated. */
export class Stage {
  readonly base = h("canvas", { "aria-hidden": "true" });
  readonly overlay = h("canvas", { class: "overlay", "aria-hidden": "true" });
  readonly element: HTMLDivElement;

  constructor(label: string, attributes: Record<string, any> = {}) {
    this.element = h(
      "div",
      { class: "stage", tabindex: 0, role: "application", "aria-label": label, ...attributes },
      this.base,
      this.overlay,
    );
  }

  draw(width: number, height: number, draw: (renderer: Renderer, theme: Theme) => void): void {
    const theme = readTheme();
    this.element.style.width = `${width}px`;
    this.element.style.height = `${height}px`;
    draw(new CanvasRenderer(this.base, width, height, theme.font), theme);
  }

  drawOverlay(width: number, height: number, draw: (renderer: Renderer, theme: Theme) => void): void {
    const theme = readTheme();
    draw(new CanvasRenderer(this.overlay, width, height, theme.font), theme);
  }

  /** Say in the page where the cells are; tests point at them. */
  describe(left: number, top: number, cell: number): void {
    Object.assign(this.element.dataset, { left, top, cell });
  }

  /** The pointer's place on the stage. */
  locate(event: MouseEvent): { x: number; y: number } {
    const box = this.base.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }
}

/** A button that saves a drawing as a vector figure. */
export function saveButton(
  name: () => string,
  size: () => { width: number; height: number },
  draw: (renderer: Renderer, theme: Theme) => void,
): HTMLButtonElement {
  const save = () => {
    const theme = readTheme();
    const { width, height } = size();
    const renderer = new SvgRenderer(width, height, theme.font, theme.page);
    draw(renderer, theme);
    saveSvg(`${name()}.svg`, renderer);
  };
  return h("button", { type: "button", class: "quiet", onclick: save }, "Save as SVG");
}

let measuring: CanvasRenderingContext2D | null = null;

/** Width of a text in pixels. */
export function textWidth(text: string, size: number, font: string): number {
  measuring ??= document.createElement("canvas").getContext("2d")!;
  measuring.font = `${size}px ${font}`;
  return measuring.measureText(text).width;
}

/** Shorten a text until it fits. */
export function fitText(text: string, size: number, font: string, width: number): string {
  if (textWidth(text, size, font) <= width) return text;
  const characters = Array.from(text);
  while (characters.length > 1 && textWidth(characters.join("") + "…", size, font) > width) characters.pop();
  return characters.join("") + "…";
}

/** A weight or probability with two significant places, but never "0.00" for something above zero. */
export function showWeight(value: number): string {
  if (value >= 0.01) return value.toFixed(2);
  return value === 0 ? "0" : value < 0.001 ? "< 0.001" : value.toFixed(3);
}

export function quote(label: string): string {
  return `“${label}”`;
}
