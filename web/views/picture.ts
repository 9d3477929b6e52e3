// The views of an image and of a spectrogram: what a head attends to, drawn over what the model read.

import { makePlayControl } from "../audio.ts";
import { checkbox, choice, fill, h } from "../dom.ts";
import { type Decoded, type Group, type LookDocument, type Picture, SQUARES, encodeSqrt } from "../document.ts";
import { groupTokens, makeUnits } from "../matrix.ts";
import { roomBelow } from "../present.ts";
import { CanvasRenderer } from "../renderer.ts";
import type { State } from "../state.ts";
import { readTheme } from "../theme.ts";
import { tokenLabel } from "../tokens.ts";
import {
  type Context,
  GROUP_TITLES,
  type Mounted,
  Stage,
  type View,
  headPlace,
  headQuestion,
  quote,
  saveButton,
  showWeight,
} from "./common.ts";
import { hasThumbnails, makeOverview } from "./head_overview.ts";
import { drawKey } from "./heatmap.ts";
import { makeMaps } from "./maps.ts";
import {
  type PictureLayout,
  drawPicture,
  drawPictureFocus,
  drawPlayhead,
  drawTinted,
  layoutPicture,
  layoutThumbnail,
  locateInPicture,
} from "./picture_drawing.ts";

type Query = number | "mean";

const THUMBNAIL = 72; // pixels of the larger side of a word's picture

/** Groups whose columns are the cells of the picture. */
const drawable = (doc: LookDocument) => doc.attention.filter((group) => group.columns === "source");

/** Whether attention can be drawn over what the model read. */
export const isDrawable = (doc: LookDocument): boolean => !!doc.picture && drawable(doc).length > 0;

const makeView = (kind: Picture["kind"]): View => ({
  name: kind,
  title: "Look",
  applies: (doc) => doc.picture?.kind === kind && isDrawable(doc),
  mount,
});

export const image = /* @__PURE__ */ makeView("image");
export const spectrogram = /* @__PURE__ */ makeView("spectrogram");

function mount(context: Context): Mounted {
  const { doc, store, blobs } = context;
  const picture = doc.picture!;
  const isImage = picture.kind === "image";
  const [one, many] = isImage ? ["patch", "patches"] : ["time step", "time steps"];
  const count = picture.grid[0] * picture.grid[1];
  const groups = drawable(doc);
  const maps = makeMaps(context, 64);
  const drawsThumbnails = hasThumbnails(context);

  const status = h("p", { class: "small", role: "status" });
  const generated = isImage ? "word" : "token";
  const subtitles = { source: `${one} attends to ${many}`, target: `generated ${generated} attends to ${many}` };
  const overviews = groups.map((group) => makeOverview(context, group, subtitles[group.rows], status));
  const aside = h("div", { class: "overview" }, ...overviews.map((item) => item.element), status);

  const title = h("h2");
  const fact = h("p", { class: "fact" });
  const controls = h("div", { class: "controls" });
  const queries = h("div", { class: "chips", role: "group", "aria-label": "What attends" });
  const stage = new Stage(`Attention over the ${picture.kind}. Arrow keys move what attends, Escape returns.`);
  const key = h("canvas", { role: "img", "aria-label": "Color key of the weights, on a square-root scale" });
  const keyRow = h("div", { class: "key" }, key, h("span", { class: "small" }, "Weight, square-root scale."));
  const readout = h("p", { class: "readout", role: "status", "aria-live": "polite" });
  const print = h("p", { class: "small" });
  const detail = h(
    "div",
    { class: "detail" },
    title,
    fact,
    controls,
    h("div", { class: "scroller" }, queries),
    readout,
    h("div", { class: "scroller" }, stage.element),
    keyRow,
    print,
  );
  const element = h("section", { class: "heads", "aria-label": isImage ? "Image" : "Spectrogram" }, aside, detail);

  const player = makePlayControl(doc, blobs, () => drawFocus(store.state, group()));
  let layout: PictureLayout | null = null;
  let weights: Float32Array | null = null; // of all columns: the class token comes before the cells
  // What attends, each with its rows of the map: a word of a caption has those of all its tokens.
  const units = groups.map((item) => makeUnits(groupTokens(doc, item).rows, isImage && item.rows === "target", true));
  const unitsOf = (item: Group) => units[groups.indexOf(item)];
  const group = () => groups.find((item) => item.name === store.state.group) ?? groups[0];
  const cells = () => weights!.subarray(picture.first, picture.first + count);
  const largest = () => Math.max(1e-9, ...cells());

  /** What attends: the chosen row; else the class token, the first character of a transcript, or the mean of all. */
  const queryOf = (item: Group): Query => {
    const { query } = store.state;
    if (query !== null && item === group()) return query;
    return (item.rows === "target" ? !isImage : picture.first > 0) ? 0 : "mean";
  };
  /** The cell of the picture that attends. */
  const queryCell = (): number | null => {
    const query = queryOf(group());
    return group().rows === "target" || query === "mean" || query < picture.first ? null : query - picture.first;
  };

  const locate = (event: MouseEvent) => {
    const { x, y } = stage.locate(event);
    return layout && locateInPicture(picture, layout, x, y);
  };
  stage.element.addEventListener("pointermove", (event) => {
    const cell = locate(event);
    if (cell !== (store.state.hover?.column ?? null))
      store.set({ hover: cell === null ? null : { row: 0, column: cell } });
  });
  stage.element.addEventListener("pointerleave", () => store.set({ hover: null }));
  stage.element.addEventListener("click", (event) => {
    const cell = locate(event);
    if (cell === null || group().rows === "target") return;
    store.set({ query: cell === queryCell() ? null : picture.first + cell });
  });
  stage.element.addEventListener("keydown", (event) => {
    if (event.key === "Escape") return store.set({ query: null });
    const isText = group().rows === "target";
    const columns = isText ? 1 : picture.grid[1];
    const move = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns }[event.key];
    if (move === undefined) return;
    event.preventDefault();
    const query = queryOf(group());
    const first = isText ? 0 : picture.first;
    const at = unitsOf(group()).findIndex((unit) => unit.members[0] === query);
    const next = unitsOf(group())[at < first ? first : at + move]?.members[0];
    if (next !== undefined && next >= first) store.set({ query: next, hover: null });
  });

  /** The weights of a query in a head; null if this file has no map of it, undefined while it is read. */
  function readWeights(item: Group, layer: number, head: number, query: Query): Float32Array | null | undefined {
    const map = maps.read(item, layer, head);
    if (!map) return map;
    const columns = item.column_count;
    const result = new Float32Array(columns);
    const chosen = unitsOf(item).filter((unit) => query === "mean" || unit.members.includes(query));
    const rows = chosen.flatMap((unit) => unit.members);
    for (const row of rows)
      for (let column = 0; column < columns; column++)
        result[column] += SQUARES[map.codes[row * columns + column]] / rows.length;
    return result;
  }

  /** The weights of a query in the chosen head, or in the mean of its layer. */
  function readShown(item: Group, state: State, query: Query): Float32Array | null | undefined {
    const heads = state.meanOfHeads ? Array.from({ length: item.heads }, (_, head) => head) : [state.head];
    const parts = heads.map((head) => readWeights(item, state.layer, head, query));
    const missing = parts.find((part) => !part);
    if (parts.some((part) => !part)) return missing;
    return Float32Array.from({ length: item.column_count }, (_, column) =>
      (parts as Float32Array[]).reduce((sum, part) => sum + part[column] / parts.length, 0),
    );
  }

  /** The picture of every head, if the document has all of them; else the thumbnails of the maps. */
  function makeThumbnails(item: Group): Decoded | null | undefined {
    if (!drawsThumbnails) return null;
    if (Object.keys(item.maps).length < item.layers * item.heads) return blobs.read(item.thumbnails);
    const codes = new Uint8Array(item.layers * item.heads * count);
    for (let i = 0; i < item.layers * item.heads; i++) {
      const one = readWeights(item, Math.floor(i / item.heads), i % item.heads, queryOf(item));
      if (!one) return undefined;
      const shown = one.subarray(picture.first, picture.first + count);
      const top = Math.max(1e-9, ...shown);
      shown.forEach((weight, cell) => (codes[i * count + cell] = encodeSqrt(weight / top)));
    }
    return { shape: [item.layers, item.heads, ...picture.grid], codes, scale: 1 };
  }

  function update(changed: Set<keyof State>): void {
    const state = store.state;
    const item = group();
    if (state.group !== item.name) {
      // The attention among generated tokens, chosen elsewhere, has no place in the picture.
      return store.set({ group: item.name, layer: item.default_head[0], head: item.default_head[1], query: null });
    }
    if (changed.size === 0 || [...changed].some((name) => name !== "hover")) drawBase(state, item);
    drawFocus(state, item);
  }

  function drawBase(state: State, item: Group): void {
    const theme = readTheme();
    const pixels = blobs.read(picture.pixels);
    const shown = readShown(item, state, queryOf(item));
    weights = shown ?? null;
    overviews.forEach((overview, i) => overview.draw(aside.clientWidth, makeThumbnails(groups[i]), state.meanOfHeads));
    const place = state.meanOfHeads
      ? `layer ${state.layer + 1} of ${item.layers}, mean of ${item.heads} heads`
      : headPlace(item, state.layer, state.head);
    title.textContent = `${headQuestion(doc, item)} (${place})`;
    fill(controls, ...makeControls(item));
    fill(queries, ...makeQueries(item));
    fact.textContent = weights ? summarize() : shown === null ? "This file has no complete map of this head." : "";
    const problem = maps.problem(item, state.layer, state.head);
    print.textContent = [
      problem,
      weights &&
        (isImage
          ? `Full color is the largest weight here, ${showWeight(largest())}; in Heads it is 1.`
          : `Faded where the weight is small; clear at the largest, ${showWeight(largest())}.`),
      "Attention shows what a head read, not why the model decided.",
    ]
      .filter(Boolean)
      .join(" ");
    keyRow.hidden = !isImage || !weights;
    if (!pixels) return;
    layout = layoutPicture(picture, pixels.shape, Math.max(260, detail.clientWidth - 4), roomBelow(stage.element));
    const { x, y } = layout.picture;
    stage.describe(x, y, layout.cell.width);
    stage.draw(layout.width, layout.height, (renderer) =>
      drawPicture(
        renderer,
        picture,
        pixels,
        weights ? cells() : new Float32Array(count),
        weights ? largest() : 1,
        layout!,
        theme,
      ),
    );
    if (weights) drawKey(new CanvasRenderer(key, 256, 30, theme.font), theme, 256, largest());
  }

  function drawFocus(state: State, item: Group): void {
    const pointed = state.hover?.column ?? null;
    if (layout)
      stage.drawOverlay(layout.width, layout.height, (renderer, theme) => {
        const shown = pointed !== null && pointed < count ? pointed : null;
        drawPictureFocus(renderer, picture, layout!, theme, queryCell(), shown);
        const seconds = player?.position() ?? null;
        if (seconds !== null) drawPlayhead(renderer, picture, layout!, theme, seconds);
      });
    if (!weights || !layout) {
      readout.textContent = fact.textContent || "Reading the map …";
      return;
    }
    readout.textContent = sentence(item, pointed);
  }

  const cellName = (cell: number) => tokenLabel(doc.sequences.source?.[picture.first + cell]);

  /** The name of what attends, as the start of a sentence. */
  function nameQuery(item: Group): string {
    const query = queryOf(item);
    if (query === "mean") return item.rows === "target" ? `All generated ${generated}s (mean)` : `All ${many} (mean)`;
    const token = groupTokens(doc, item).rows[query];
    const unit = unitsOf(item).find(({ members }) => members.includes(query));
    const label = unit && unit.members.length > 1 ? unit.label : tokenLabel(token);
    if (item.rows === "target") return `Generating ${quote(label)}, the decoder`;
    return token?.role === "special" ? `The ${label}` : label[0].toUpperCase() + label.slice(1);
  }

  function summarize(): string {
    const sorted = [...cells()].sort((a, b) => b - a);
    const total = sorted.reduce((sum, weight) => sum + weight, 0);
    let [needed, sum] = [0, 0];
    while (needed < count && sum < total / 2) sum += sorted[needed++];
    const verb = needed === 1 ? "holds" : "hold";
    return `${needed} of ${count} ${count === 1 ? one : many} ${verb} half of the weight on the ${picture.kind}.`;
  }

  function sentence(item: Group, pointed: number | null): string {
    const name = nameQuery(item);
    const verb = queryOf(item) === "mean" ? "attend" : "attends";
    if (pointed !== null && pointed < count) {
      const hint = item.rows === "target" ? "" : ` Click to see what ${cellName(pointed)} attends to.`;
      return `${name} ${verb} to ${cellName(pointed)}: ${showWeight(cells()[pointed])}.${hint}`;
    }
    const best = Array.from(cells(), (weight, cell) => ({ weight, cell }))
      .sort((a, b) => b.weight - a.weight)
      .slice(0, 3)
      .map(({ weight, cell }) => `${cellName(cell)} (${showWeight(weight)})`);
    const rest =
      picture.first > 0 && item.columns === "source" ? ` The class token holds ${showWeight(weights![0])}.` : "";
    const equal = ` Equal weights would be ${showWeight(1 / item.column_count)}.`;
    return `${name} ${verb} most to ${best.join(", ")}.${rest}${equal}`;
  }

  /** A button for each query that the picture itself does not offer. */
  function makeQueries(item: Group): HTMLElement[] {
    const current = queryOf(item);
    const isText = item.rows === "target";
    const button = (query: Query, text: string) =>
      h(
        "button",
        { type: "button", "aria-pressed": String(query === current), onclick: () => store.set({ query }) },
        isImage && isText && makeThumbnail(item, query),
        text,
      );
    const all = button("mean", isText ? `All ${generated}s (mean)` : `All ${many} (mean)`);
    const named = unitsOf(item).flatMap(({ label, members: [row] }) =>
      isText || row < picture.first || row === current ? [button(row, label)] : [],
    );
    return [all, ...named];
  }

  /** The image as the decoder saw it when it wrote a word (Xu et al. 2015), scaled to its largest weight. */
  function makeThumbnail(item: Group, query: Query): HTMLElement | null {
    const pixels = blobs.read(picture.pixels);
    const shown = readShown(item, store.state, query)?.subarray(picture.first, picture.first + count);
    if (!pixels || !shown) return null;
    const theme = readTheme();
    const canvas = h("canvas", { "aria-hidden": "true" });
    const small = layoutThumbnail(picture, pixels.shape, THUMBNAIL);
    const renderer = new CanvasRenderer(canvas, small.width, small.height, theme.font);
    drawTinted(renderer, picture, pixels, shown, Math.max(1e-9, ...shown), small, theme);
    return canvas;
  }

  function makeControls(item: Group): (HTMLElement | null)[] {
    const { state } = store;
    const names = groups.map((entry): [Group["name"], string] => [entry.name, GROUP_TITLES[entry.name]]);
    return [
      player?.button ?? null,
      names.length > 1
        ? choice("Attention", names, item.name, (name) => {
            const [layer, head] = groups.find((entry) => entry.name === name)!.default_head;
            store.set({ group: name, layer, head, query: null, hover: null, locked: null });
          })
        : null,
      checkbox("Mean of the heads", state.meanOfHeads, (meanOfHeads) => store.set({ meanOfHeads })),
      saveButton(
        () => `${picture.kind}.${item.name}.${state.layer}.${state.meanOfHeads ? "mean" : state.head}`,
        () => layout!,
        (renderer, theme) => {
          const pixels = blobs.read(picture.pixels);
          if (!pixels || !weights || !layout) return;
          drawPicture(renderer, picture, pixels, cells(), largest(), layout, theme);
          drawPictureFocus(renderer, picture, layout, theme, queryCell(), null);
        },
      ),
    ];
  }

  return { element, update };
}
