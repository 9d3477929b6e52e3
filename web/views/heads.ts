// The view of heads: all heads on the left, one of them on the right, and what it says as a sentence.

import { choice, checkbox, fill, h, select } from "../dom.ts";
import { type Group, type GroupName, Loader, type LookDocument, type Statistic } from "../document.ts";
import { type Matrix, groupTokens, makeMatrix, makeUnits, strongest } from "../matrix.ts";
import { roomBelow, zoom } from "../present.ts";
import { CanvasRenderer } from "../renderer.ts";
import type { Cell, State } from "../state.ts";
import { readTheme } from "../theme.ts";
import { BYTES, continuesWord, hasBytes } from "../tokens.ts";
import { type Context, GROUP_SUBTITLES, type Mounted, type View, headPlace, headQuestion, invite } from "./common.ts";
import { Stage, findGroup, quote, saveButton, showWeight, within } from "./common.ts";
import { hasThumbnails, makeOverview } from "./head_overview.ts";
import {
  type HeatmapLayout,
  drawHeatmap,
  drawHeatmapFocus,
  drawKey,
  layoutHeatmap,
  locateInHeatmap,
} from "./heatmap.ts";
import { drawLens, lensSize } from "./lens.ts";
import { type LinesLayout, drawLines, layoutLines, locateInLines } from "./lines.ts";
import { makeMaps } from "./maps.ts";
import { isDrawable } from "./picture.ts";
import { STATISTICS, describeHead, statisticRange } from "./overview.ts";

const REST = 80; // milliseconds
const AXES: Record<GroupName, [string, string]> = {
  "encoder.self": ["the token that attends", "what it attends to"],
  "decoder.self": ["the token that is read", "what it attends to"],
  "decoder.cross": ["the token being generated", "the source"],
};

export const heads: View = {
  name: "heads",
  title: "Look",
  applies: (doc) => doc.attention.length > 0 && !isDrawable(doc),
  mount,
};

/** Where attention is drawn over a picture, the heads are a detail. */
export const allHeads: View = {
  name: "heads",
  title: "Heads",
  level: 2,
  applies: (doc) => doc.attention.length > 0 && isDrawable(doc),
  mount,
};

function mount(context: Context): Mounted {
  const { doc, store, blobs, live } = context;
  const drawsThumbnails = hasThumbnails(context);
  const maps = makeMaps(context);
  // Exact weights of the row under the pointer, which a live page asks for once the pointer rests.
  const exactRows = new Loader<number[]>(
    (key) => {
      const [group, layer, head, row] = key.split("|");
      return live.row(group, Number(layer), Number(head), Number(row));
    },
    () => store.notify(["hover"]),
    64,
  );
  let resting: ReturnType<typeof setTimeout> | undefined;

  const statisticList = h("div");
  const readOverview = h("p", { class: "small", role: "status" });
  const overviews = doc.attention.map((group) => makeOverview(context, group, subtitle(group), readOverview));
  const aside = h("div", { class: "overview" }, statisticList, ...overviews.map((item) => item.element), readOverview);

  const title = h("h2");
  const fact = h("p", { class: "fact" });
  const controls = h("div", { class: "controls" });
  const stage = new Stage("Attention of the chosen head. Arrow keys move, Enter pins, Escape releases.");
  const scroller = h("div", { class: "scroller" }, stage.element);
  const lens = h("canvas", { class: "lens", "aria-hidden": "true" });
  const stageRow = h("div", { class: "stage-row" }, scroller, lens);
  const key = h("canvas", { role: "img" });
  const axes = h("span", { class: "small" });
  const keyRow = h("div", { class: "key" }, key, axes);
  const readout = h("p", { class: "readout", role: "status", "aria-live": "polite" });
  const print = h("p", { class: "small" });
  const detail = h("div", { class: "detail" }, title, fact, controls, readout, stageRow, keyRow, print);
  const element = h("section", { class: "heads", "aria-label": "Heads" }, aside, detail);

  let matrix: Matrix | null = null;
  let heatmap: HeatmapLayout | null = null;
  let lines: LinesLayout | null = null;
  let available = 0;

  const active = (): Cell | null => store.state.locked ?? store.state.hover;
  const drawingOptions = () => ({ stretched: store.state.stretched, numbers: store.state.numbers });
  const locate = (event: MouseEvent): Cell | null => {
    const { x, y } = stage.locate(event);
    if (!matrix) return null;
    if (store.state.drawing === "lines") return lines && locateInLines(matrix, lines, y);
    return heatmap && locateInHeatmap(matrix, heatmap, x, y);
  };
  stage.element.addEventListener("pointermove", (event) => {
    const [cell, old] = [locate(event), store.state.hover];
    if (cell?.row !== old?.row || cell?.column !== old?.column) store.set({ hover: cell });
  });
  stage.element.addEventListener("pointerleave", () => store.set({ hover: null }));
  stage.element.addEventListener("click", (event) => {
    const [cell, locked] = [locate(event), store.state.locked];
    const isSame = cell && locked && cell.row === locked.row && cell.column === locked.column;
    store.set({ locked: isSame ? null : cell });
  });
  stage.element.addEventListener("keydown", (event) => {
    if (!matrix || !matrix.rows.length) return;
    const cell = moveCell(active(), event.key, matrix, store.state.drawing === "lines");
    if (cell === undefined) return;
    event.preventDefault();
    store.set({ locked: cell, hover: null });
  });

  function readMap(group: Group, state: State): { codes: Uint8Array; columns: number; isThumbnail: boolean } | null {
    const map = maps.read(group, state.layer, state.head);
    if (map === undefined) return null;
    if (map) return { codes: map.codes as Uint8Array, columns: map.shape[1], isThumbnail: false };
    const thumbnails = blobs.read(group.thumbnails);
    if (!thumbnails) return null;
    const [rows, columns] = thumbnails.shape.slice(2);
    const start = (state.layer * group.heads + state.head) * rows * columns;
    const codes = (thumbnails.codes as Uint8Array).subarray(start, start + rows * columns);
    return { codes, columns, isThumbnail: true };
  }

  function rebuild(state: State, group: Group): boolean {
    const map = readMap(group, state);
    if (!map) {
      matrix = null;
      return false;
    }
    if (map.isThumbnail) {
      const unit = (count: number) =>
        Array.from({ length: count }, (_, i) => ({ label: "", special: false, members: [i] }));
      matrix = makeMatrix(map.codes, map.columns, unit(map.codes.length / map.columns), unit(map.columns));
      return true;
    }
    const tokens = groupTokens(doc, group);
    matrix = makeMatrix(
      map.codes,
      map.columns,
      makeUnits(tokens.rows, state.words, state.specials),
      makeUnits(tokens.columns, state.words, state.specials),
    );
    return false;
  }

  function update(changed: Set<keyof State>): void {
    const state = store.state;
    const group = findGroup(doc, state.group);
    const onlyFocus = changed.size > 0 && [...changed].every((name) => name === "hover" || name === "locked");
    if (!onlyFocus) {
      available = Math.max(260, detail.clientWidth);
      const isThumbnail = rebuild(state, group);
      overviews.forEach((item, i) =>
        item.draw(aside.clientWidth, drawsThumbnails ? blobs.read(doc.attention[i].thumbnails) : null),
      );
      if (!drawsThumbnails) fill(statisticList, statisticChoice(context));
      title.textContent = `${headQuestion(doc, group)} (${headPlace(group, state.layer, state.head)})`;
      fact.textContent = describeHead(doc, group, state.layer, state.head);
      fill(controls, ...makeControls(context, saveCurrent));
      const [rows, columns] = AXES[isGenerating(group) || group.name !== "decoder.cross" ? group.name : "encoder.self"];
      axes.textContent = `${scaleName(state)}. Rows: ${rows}. Columns: ${columns}.`;
      const problem = maps.problem(group, state.layer, state.head);
      fill(print, ...smallPrint(doc, group, state, isThumbnail, problem));
      drawBase(state, isThumbnail);
    }
    drawFocus(state, group);
  }

  function drawBase(state: State, isThumbnail: boolean): void {
    const theme = readTheme();
    keyRow.hidden = state.drawing === "lines";
    drawKey(new CanvasRenderer(key, 256, 30, theme.font), theme, 256, state.stretched ? null : 1);
    key.setAttribute("aria-label", `Color key: ${scaleName(state)}`);
    if (!matrix) return;
    const isLarge = Math.max(matrix.rows.length, matrix.columns.length) > 96;
    const lensWidth = isLarge && state.drawing === "heatmap" && available > 760 ? lensSize : 0;
    lens.hidden = lensWidth === 0;
    const room = available - (lensWidth ? lensWidth + 16 : 0);
    const height = roomBelow(stageRow, 44 * matrix.rows.length);
    heatmap = isThumbnail
      ? { ...layoutHeatmap(matrix, room, theme, height), labeled: false, left: 12, top: 12 }
      : layoutHeatmap(matrix, Math.min(room, isLarge ? 720 : room), theme, height);
    if (state.drawing !== "heatmap") return;
    stage.describe(heatmap.left, heatmap.top, heatmap.cell);
    stage.draw(heatmap.width, heatmap.height, (renderer) =>
      drawHeatmap(renderer, matrix!, heatmap!, theme, {
        ...drawingOptions(),
        pixelRatio: (window.devicePixelRatio || 1) * zoom(),
      }),
    );
  }

  function drawFocus(state: State, group: Group): void {
    const theme = readTheme();
    const cell = matrix && within(active(), matrix);
    if (cell) refineRow(state, group, cell.row);
    if (matrix && state.drawing === "lines") {
      lines = layoutLines(matrix, available - 6, state.locked);
      stage.draw(lines.width, lines.height, (renderer) => drawLines(renderer, matrix!, lines!, theme, cell));
      stage.drawOverlay(lines.width, lines.height, () => undefined);
    } else if (matrix && heatmap) {
      stage.drawOverlay(heatmap.width, heatmap.height, (renderer) => {
        if (cell) drawHeatmapFocus(renderer, matrix!, heatmap!, theme, cell, state.locked !== null, drawingOptions());
      });
      if (!lens.hidden) drawLens(lens, matrix, cell ?? { row: 0, column: 0 }, theme);
    }
    readout.textContent = cell ? sentence(group, matrix!, cell) : matrix ? invitation(matrix) : "Reading the map …";
  }

  /** Replace the 8-bit values of a row by exact ones: at once if they are here, else once the pointer rests. */
  function refineRow(state: State, group: Group, row: number): void {
    clearTimeout(resting);
    if (!live.available || !matrix || matrix.isExact(row)) return;
    const keys = matrix.rows[row].members.map((member) => `${group.name}|${state.layer}|${state.head}|${member}`);
    if (keys.every((key) => exactRows.has(key))) {
      const weights = keys.map((key) => exactRows.read(key));
      if (weights.every((list) => list !== undefined)) matrix.refine(row, weights);
    } else resting = setTimeout(() => keys.forEach((key) => exactRows.read(key)), REST);
  }

  function saveCurrent() {
    return saveButton(
      () => `${store.state.group}.${store.state.layer}.${store.state.head}`,
      () => (store.state.drawing === "lines" ? lines! : heatmap!),
      (renderer, theme) => {
        if (!matrix) return;
        if (store.state.drawing === "lines") drawLines(renderer, matrix, lines!, theme, active());
        else drawHeatmap(renderer, matrix, heatmap!, theme, drawingOptions());
      },
    );
  }

  return { element, update };
}

function scaleName({ stretched }: State): string {
  return stretched ? "Share of the row's largest weight, square-root scale" : "Weight from 0 to 1, square-root scale";
}

function statisticChoice({ doc, store }: Context): HTMLElement {
  const options = (Object.keys(STATISTICS) as Statistic[])
    .filter((name) => doc.attention.some((group) => group.statistics[name]?.flat().some((value) => value !== null)))
    .map((name): [Statistic, string] => [name, STATISTICS[name].title]);
  const { statistic } = store.state;
  const largest = Math.max(...doc.attention.map((group) => statisticRange(group, statistic)));
  const range = `Page color: 0. Full color: ${largest.toFixed(largest === 1 ? 0 : 1)} ${STATISTICS[statistic].unit}`;
  return h(
    "div",
    {},
    select("Color", options, statistic, (value) => store.set({ statistic: value })),
    h("p", { class: "small" }, `${range.trim()}.`),
  );
}

function makeControls({ doc, store }: Context, saveCurrent: () => HTMLElement): (HTMLElement | null)[] {
  const state = store.state;
  const clear = { hover: null, locked: null };
  const sequences = Object.values(doc.sequences);
  // Patches of an image are no parts of words, and a sound has no special tokens: no switch without an effect.
  const hasWords = sequences.some((tokens) => tokens.some((_, i) => continuesWord(tokens, i)));
  const hasSpecials = sequences.flat().some((token) => token.role === "special");
  return [
    choice(
      "Drawing",
      [
        ["heatmap", "Heatmap"],
        ["lines", "Lines"],
      ],
      state.drawing,
      (drawing) => store.set({ drawing }),
    ),
    hasWords ? checkbox("Words", state.words, (words) => store.set({ words, ...clear })) : null,
    hasSpecials ? checkbox("Special tokens", state.specials, (specials) => store.set({ specials, ...clear })) : null,
    checkbox("Numbers", state.numbers, (numbers) => store.set({ numbers })),
    checkbox("Stretch rows", state.stretched, (stretched) => store.set({ stretched })),
    saveCurrent(),
  ];
}

/** Whether a row carries the token that it generates, not one that it reads (as in a worked example). */
function isGenerating(group: Group): boolean {
  return group.name === "decoder.cross" && group.row_start > 0;
}

function subtitle(group: Group): string {
  const isExample = group.name === "decoder.cross" && !isGenerating(group);
  return isExample ? "query attends to keys" : GROUP_SUBTITLES[group.name];
}

function sentence(group: Group, matrix: Matrix, cell: Cell): string {
  const name = (unit: { label: string }, index: number) => (unit.label ? quote(unit.label) : `cell ${index}`);
  const row = name(matrix.rows[cell.row], cell.row);
  const show = matrix.isExact(cell.row) ? (weight: number) => weight.toFixed(4) : showWeight;
  const best = strongest(matrix, cell.row, 4)
    .filter((item) => item.weight >= 0.005)
    .map((item) => `${name(matrix.columns[item.column], item.column)} ${show(item.weight)}`);
  const start = isGenerating(group) ? `Generating ${row}` : row;
  const hidden = matrix.hidden(cell.row);
  const rest = hidden >= 0.01 ? ` Hidden special tokens hold ${show(hidden)}.` : "";
  const list = best.length ? `attends most to ${best.join(", ")}.` : "attends to nothing that is shown.";
  const join = isGenerating(group) ? ", the decoder " : " ";
  if (cell.column === null) return `${start}${join}${list}${rest}`;
  const weight = show(matrix.value(cell.row, cell.column));
  return `${start} → ${name(matrix.columns[cell.column], cell.column)}: ${weight}. The row ${list}${rest}`;
}

function invitation(matrix: Matrix): string {
  return matrix.rows.length
    ? invite("a row", "to read its weights")
    : "All tokens here are special tokens, which are hidden.";
}

function smallPrint(
  doc: LookDocument,
  group: Group,
  state: State,
  isThumbnail: boolean,
  problem: string | null,
): (HTMLElement | string)[] {
  const error = group.errors[state.layer]?.[state.head];
  const parts: (HTMLElement | string)[] = [];
  if (problem) parts.push(problem);
  if (isThumbnail)
    parts.push(
      "This file has only the thumbnail of this head: each cell is the maximum of the weights that it covers.",
    );
  if (error !== null && error !== undefined) {
    const exact = error === 0 ? "Exact." : `Exact to ${error.toExponential(0).replace("e-", "e−")}.`;
    const title = "Largest difference between weights × values and what the model computed: max |A·V − output|";
    parts.push(h("span", { title }, exact));
  }
  if (group.sampled_rows) parts.push(`Statistics and thumbnails are sampled: ${group.sampled_rows} query rows.`);
  if (state.words) parts.push("Words: columns are sums over subwords, rows are means.");
  if (hasBytes(doc)) parts.push(BYTES);
  return parts.flatMap((part) => [part, " "]);
}

/** The cell after a key; null releases it, undefined means that the key has no meaning here. */
function moveCell(cell: Cell | null, key: string, matrix: Matrix, rowsOnly: boolean): Cell | null | undefined {
  if (key === "Escape") return null;
  const moves: Record<string, [number, number]> = {
    ArrowUp: [-1, 0],
    ArrowDown: [1, 0],
    ArrowLeft: [0, -1],
    ArrowRight: [0, 1],
    PageUp: [-10, 0],
    PageDown: [10, 0],
    Enter: [0, 0],
  };
  const move = moves[key];
  if (!move) return undefined;
  if (!cell) return { row: 0, column: rowsOnly ? null : 0 };
  const clamp = (value: number, count: number) => Math.max(0, Math.min(count - 1, value));
  return {
    row: clamp(cell.row + move[0], matrix.rows.length),
    column: rowsOnly ? null : clamp((cell.column ?? 0) + move[1], matrix.columns.length),
  };
}
