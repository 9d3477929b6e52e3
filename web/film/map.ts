// The attention of the chosen head at a frame. The map keeps its place and scale while the frames change.

import { fill, h } from "../dom.ts";
import { type Matrix, type Unit, makeMatrix, makeUnits, strongest } from "../matrix.ts";
import { readTheme } from "../theme.ts";
import { Stage, hasPointer, quote, showWeight } from "../views/common.ts";
import { type HeatmapLayout, drawHeatmap, drawHeatmapFocus, layoutHeatmap, locateInHeatmap } from "../views/heatmap.ts";
import type { FilmContext, Part } from "./context.ts";
import { type Film, type Frame, decodeMaps, locateMap, mapTokens } from "./document.ts";

export const TITLES = {
  "decoder.cross": "Which source words it reads",
  "decoder.self": "Which earlier words it reads",
  "encoder.self": "Which words each word reads",
  "": "",
};

/** The layout that all frames share: that of the longest labels and of the most rows. */
export function layoutMaps(film: Film, probe: number, width: number, height?: number): HeatmapLayout {
  let [rows, columns]: [Unit[], Unit[]] = [[], []];
  const longest = (units: Unit[], others: Unit[]): Unit[] =>
    Array.from({ length: Math.max(units.length, others.length) }, (_, i) => {
      const [a, b] = [units[i], others[i]];
      return !b || (a && a.label.length >= b.label.length) ? a : b;
    });
  for (const frame of film.frames) {
    const tokens = mapTokens(film, frame, probe);
    const shape = frame.probes[probe].shape;
    rows = longest(rows, makeUnits(tokens.rows.slice(0, shape[2]), false, true));
    columns = longest(columns, makeUnits(tokens.columns.slice(0, shape[3]), false, true));
  }
  return layoutHeatmap({ rows, columns }, width, readTheme(), height);
}

/** The map of a head at a frame; null if the film does not have it. */
export async function readMap(
  film: Film,
  frame: Frame,
  probe: number,
  layer: number,
  head: number,
): Promise<Matrix | null> {
  const place = locateMap(film, frame, probe, layer, head);
  const { codes } = await decodeMaps(frame);
  if (!place) return null;
  const tokens = mapTokens(film, frame, probe);
  const map = (codes as Uint8Array).subarray(place.start, place.start + place.rows * place.columns);
  const rows = makeUnits(tokens.rows.slice(0, place.rows), false, true);
  return makeMatrix(map, place.columns, rows, makeUnits(tokens.columns.slice(0, place.columns), false, true));
}

export function makeMap(context: FilmContext): Part {
  const title = h("h2");
  const grid = h("div", { class: "head-grid", role: "group", "aria-label": "Layers and heads" });
  const readout = h("p", { class: "readout", role: "status" });
  const stage = new Stage("Attention of the chosen head", { role: "img", tabindex: null });
  const scroller = h("div", { class: "scroller", tabindex: 0, role: "region", "aria-label": "Map" }, stage.element);
  const element = h("div", { class: "detail" }, title, grid, readout, scroller);
  let [matrix, layout]: [Matrix | null, HeatmapLayout | null] = [null, null];
  let buttons: { button: HTMLButtonElement; layer: number; head: number }[] = [];
  let wanted = 0;

  function buildGrid(film: Film): void {
    const { name, layers, heads } = film.attention;
    const kept = name === "decoder.cross" ? layers : Math.min(layers, 1);
    buttons = [];
    const rows = Array.from({ length: kept }, (_, i) => layers - kept + i).map((layer) => [
      h("span", { class: "small" }, `layer ${layer + 1}`),
      ...Array.from({ length: heads }, (_, head) => {
        const label = `layer ${layer + 1}, head ${head + 1}`;
        const onclick = () => context.set({ layer, head });
        const button = h("button", { type: "button", "aria-label": label, onclick }, String(head + 1));
        buttons.push({ button, layer, head });
        return button;
      }),
    ]);
    grid.style.gridTemplateColumns = `max-content repeat(${heads}, max-content)`;
    fill(grid, ...rows.flat());
  }

  let placed: { film: Film; probe: number; width: number; layout: HeatmapLayout } | null = null;
  let built: Film | null = null;

  async function update(film: Film): Promise<void> {
    element.hidden = film.attention.layers === 0;
    if (element.hidden) return;
    const { frame: at, probe, layer, head } = context.state;
    if (built !== film) {
      built = film;
      buildGrid(film);
    }
    for (const item of buttons)
      item.button.setAttribute("aria-pressed", String(item.layer === layer && item.head === head));
    title.textContent = TITLES[film.attention.name];
    const width = element.clientWidth;
    if (placed?.film !== film || placed.probe !== probe || placed.width !== width)
      placed = { film, probe, width, layout: layoutMaps(film, probe, Math.max(240, width - 8 || 560)) };
    const frame = film.frames[at];
    const number = ++wanted;
    const found = await readMap(film, frame, probe, layer, head);
    if (number !== wanted) return; // another frame was chosen meanwhile
    layout = placed.layout;
    matrix = found;
    stage.draw(layout.width, layout.height, (renderer, theme) => {
      if (matrix) drawHeatmap(renderer, matrix, layout!, theme, { pixelRatio: window.devicePixelRatio });
    });
    stage.describe(layout.left, layout.top, layout.cell);
    stage.element.dataset["frame"] = String(at);
    point(null);
  }

  function point(event: MouseEvent | null): void {
    const cell =
      matrix && layout && event && locateInHeatmap(matrix, layout, stage.locate(event).x, stage.locate(event).y);
    if (layout)
      stage.drawOverlay(layout.width, layout.height, (renderer, theme) => {
        if (cell) drawHeatmapFocus(renderer, matrix!, layout!, theme, cell, false);
      });
    if (!matrix) readout.textContent = "The map of this head is too large for the film.";
    else if (cell) {
      const read = strongest(matrix, cell.row, 3).map(
        ({ column, weight }) => `${quote(matrix!.columns[column].label)} ${showWeight(weight)}`,
      );
      readout.textContent = `${quote(matrix.rows[cell.row].label)} reads ${read.join(", ")}.`;
    } else
      readout.textContent = hasPointer() ? "Point at a row to see what it reads." : "Tap a row to see what it reads.";
  }
  stage.element.addEventListener("pointermove", point);
  stage.element.addEventListener("pointerdown", point);
  stage.element.addEventListener("pointerleave", () => point(null));
  return { element, update };
}
