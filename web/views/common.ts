// What every view gets, and what several views share.

import { h } from "../dom.ts";
import type { Decoded, Group, GroupName, Loader, LookDocument } from "../document.ts";
import { savePng, saveSvg } from "../figure.ts";
import type { Live } from "../live.ts";
import { zoom } from "../present.ts";
import { CanvasRenderer, type Renderer } from "../renderer.ts";
import type { Cell, State, Store } from "../state.ts";
import { type Theme, readTheme } from "../theme.ts";
import { areCharacters } from "../tokens.ts";

export { fitText, textWidth } from "../text.ts";

export interface Context {
  doc: LookDocument;
  store: Store;
  blobs: Loader<Decoded>;
  live: Live;
}

export interface View {
  name: string;
  title: string;
  /** 2: a detail, whose tab is behind "More". */
  level?: 1 | 2;
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

/** What a head of a group shows, as a question that its map answers. */
export function headQuestion(doc: LookDocument, group: Group): string {
  if (group.columns === "source" && doc.picture) {
    const [one, many] = doc.picture.kind === "image" ? ["patch", "patches"] : ["time step", "time steps"];
    return group.rows === "source"
      ? `Which ${many} each ${one} reads`
      : `Which ${many} it reads for each ${doc.picture.kind === "image" ? "word" : "token"}`;
  }
  const words = areCharacters(doc.sequences[group.columns] ?? []) ? "characters" : "words";
  if (group.name === "decoder.cross")
    return group.row_start > 0 ? `Which source ${words} it reads` : "Which keys it reads";
  return group.name === "decoder.self"
    ? `Which earlier ${words} it reads`
    : `Which ${words} each ${words.slice(0, -1)} reads`;
}

/** The place of a head, counted from 1. */
export function headPlace(group: Group, layer: number, head: number): string {
  return `layer ${layer + 1} of ${group.layers}, head ${head + 1} of ${group.heads}`;
}

/** Layer and head, counted from 1, e.g. at the start of a sentence. */
export function headName(group: GroupName, layer: number, head: number): string {
  return `${GROUP_TITLES[group]}, layer ${layer + 1}, head ${head + 1}`;
}

/** Whether a reader has a pointer that can rest on something, and so most likely keys as well. */
export const hasPointer = () => matchMedia("(any-hover: hover)").matches;

/** How to choose something: with a pointer by resting on it, with a finger by tapping. */
export function invite(what: string, aim: string, click = "Click to pin it"): string {
  return hasPointer() ? `Point at ${what} ${aim}. ${click}; arrow keys move.` : `Tap ${what} ${aim}.`;
}

export function findGroup(doc: LookDocument, name: GroupName): Group {
  return doc.attention.find((group) => group.name === name) ?? doc.attention[0];
}

/** The cell if a map of this size has it. */
export function within(cell: Cell | null, map: { rows: unknown[]; columns: unknown[] }): Cell | null {
  return cell && cell.row < map.rows.length && (cell.column ?? 0) < map.columns.length ? cell : null;
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
    return { x: (event.clientX - box.left) / zoom(), y: (event.clientY - box.top) / zoom() };
  }
}

/** Buttons that save a drawing: as a picture with its caption, and as a vector figure. */
export function saveButton(
  name: () => string,
  size: () => { width: number; height: number },
  draw: (renderer: Renderer, theme: Theme) => void,
): HTMLElement {
  const drawing = () => ({ width: size().width, height: size().height, draw });
  const button = (label: string, name: string, save: () => void) =>
    h("button", { type: "button", class: "quiet", "aria-label": name, onclick: save }, label);
  return h(
    "span",
    { class: "saves" },
    button("Save as PNG", "Save as PNG", () => savePng(name(), drawing())),
    button("SVG", "Save as SVG", () => saveSvg(name(), drawing())),
  );
}

/** A weight or probability with two significant places, but never "0.00" for something above zero. */
export function showWeight(value: number): string {
  if (value >= 0.01) return value.toFixed(2);
  return value === 0 ? "0" : value < 0.001 ? "< 0.001" : value.toFixed(3);
}

/** A probability as a percentage with about two significant digits. */
export function showPercent(value: number): string {
  const percent = value * 100;
  if (percent > 0 && percent < 0.01) return "< 0.01 %";
  const digits = percent >= 99.95 || percent === 0 ? 0 : percent >= 99 ? 1 : percent >= 10 ? 0 : percent >= 1 ? 1 : 2;
  return `${percent.toFixed(digits)} %`;
}

export function quote(label: string): string {
  return `“${label}”`;
}
