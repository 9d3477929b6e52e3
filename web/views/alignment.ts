// The view of alignment: which source words a hypothesis was generated from, as the mean of heads that are named.

import { choice, checkbox, fill, h, select } from "../dom.ts";
import { type Decoded, type Hypothesis, SQUARES, encodeSqrt } from "../document.ts";
import { type Matrix, makeMatrix, makeUnits, strongest } from "../matrix.ts";
import { roomBelow } from "../present.ts";
import type { Cell, State } from "../state.ts";
import { readTheme } from "../theme.ts";
import { showText } from "../tokens.ts";
import {
  type Context,
  type Mounted,
  Stage,
  type View,
  invite,
  quote,
  saveButton,
  showWeight,
  within,
} from "./common.ts";
import { type HeatmapLayout, drawHeatmap, drawHeatmapFocus, layoutHeatmap, locateInHeatmap } from "./heatmap.ts";
import { type RibbonLayout, drawRibbons, layoutRibbons, locateInRibbons } from "./ribbons.ts";

const MAX_BUTTONS = 200;

export const alignment: View = {
  name: "alignment",
  title: "Alignment",
  level: 2,
  applies: (doc) => doc.hypotheses.length > 0 && (doc.sequences.source?.length ?? 0) > 0,
  mount,
};

function mount({ doc, store, blobs }: Context): Mounted {
  const fact = h("p", { class: "fact" });
  const controls = h("div", { class: "controls" });
  const headGrid = h("div", { class: "slide-hidden" });
  const stage = new Stage("Alignment. Arrow keys move along the generated words, Enter pins, Escape releases.");
  const readout = h("p", { class: "readout", role: "status", "aria-live": "polite" });
  const print = h("p", { class: "small" });
  const element = h(
    "section",
    { class: "alignment", "aria-label": "Alignment" },
    h("h2", {}, "Which source words each word comes from"),
    fact,
    controls,
    readout,
    h("div", { class: "scroller" }, stage.element),
    headGrid,
    print,
  );

  let matrix: Matrix | null = null;
  let ribbons: RibbonLayout | null = null;
  let heatmap: HeatmapLayout | null = null;
  const active = (): Cell | null => store.state.locked ?? store.state.hover;
  const locate = (event: MouseEvent): Cell | null => {
    const { x, y } = stage.locate(event);
    if (!matrix) return null;
    if (store.state.alignment === "matrix") return heatmap && locateInHeatmap(matrix, heatmap, x, y);
    const row = ribbons && locateInRibbons(ribbons, x, y);
    return row === null ? null : { row, column: null };
  };
  stage.element.addEventListener("pointermove", (event) => {
    const [cell, old] = [locate(event), store.state.hover];
    if (cell?.row !== old?.row || cell?.column !== old?.column) store.set({ hover: cell });
  });
  stage.element.addEventListener("pointerleave", () => store.set({ hover: null }));
  stage.element.addEventListener("click", (event) => {
    const cell = locate(event);
    store.set({ locked: cell && cell.row === store.state.locked?.row ? null : cell });
  });
  stage.element.addEventListener("keydown", (event) => {
    if (!matrix?.rows.length) return;
    if (event.key === "Escape") return store.set({ locked: null });
    const move = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1, Enter: 0 }[event.key];
    if (move === undefined) return;
    event.preventDefault();
    const row = active() === null ? 0 : Math.max(0, Math.min(matrix.rows.length - 1, active()!.row + move));
    store.set({ locked: { row, column: null }, hover: null });
  });

  function update(changed: Set<keyof State>): void {
    const { state } = store;
    const hypothesis = doc.hypotheses[state.hypothesis] ?? doc.hypotheses[0];
    const onlyFocus = changed.size > 0 && [...changed].every((name) => name === "hover" || name === "locked");
    const cross = blobs.read(hypothesis.cross);
    if (!onlyFocus) {
      const chosen = chosenHeads(state, hypothesis, cross);
      fact.textContent = nameHeads(chosen, state);
      fill(controls, ...makeControls(hypothesis));
      fill(headGrid, cross ? makeHeadGrid(cross, chosen) : null);
      matrix = cross ? buildMatrix(hypothesis, cross, chosen, state) : null;
      print.textContent =
        "Attention is not an explanation by itself: it shows where the decoder attended, not why. Special tokens are left out." +
        (state.alignment === "ribbons"
          ? " A word shows its strongest weights until they cover 75 %; weights below 0.03 are left out."
          : "");
    }
    if (!matrix) {
      readout.textContent = "Reading the attention …";
      return;
    }
    draw(matrix, onlyFocus);
    const cell = within(active(), matrix);
    readout.textContent = cell ? sentence(matrix, cell) : invite("a generated word", "to see where it comes from");
  }

  function draw(shown: Matrix, onlyFocus: boolean): void {
    const theme = readTheme();
    const { state } = store;
    const available = Math.max(260, element.clientWidth);
    const cell = within(active(), shown);
    if (state.alignment === "ribbons") {
      ribbons = layoutRibbons(shown, available - 6, theme);
      stage.draw(ribbons.width, ribbons.height, (renderer) =>
        drawRibbons(renderer, shown, ribbons!, theme, cell?.row ?? null),
      );
      stage.drawOverlay(ribbons.width, ribbons.height, () => undefined);
      return;
    }
    heatmap = layoutHeatmap(shown, available, theme, roomBelow(stage.element, 44 * shown.rows.length));
    if (!onlyFocus)
      stage.draw(heatmap.width, heatmap.height, (renderer) => drawHeatmap(renderer, shown, heatmap!, theme));
    stage.drawOverlay(heatmap.width, heatmap.height, (renderer) => {
      if (cell) drawHeatmapFocus(renderer, shown, heatmap!, theme, cell, state.locked !== null);
    });
  }

  function buildMatrix(hypothesis: Hypothesis, cross: Decoded, chosen: [number, number][], state: State): Matrix {
    const [, heads, rows, columns] = cross.shape;
    const codes = cross.codes as Uint8Array;
    const mean = new Float32Array(rows * columns);
    for (const [layer, head] of chosen) {
      const start = (layer * heads + head) * rows * columns;
      for (let i = 0; i < mean.length; i++) mean[i] += SQUARES[codes[start + i]] / chosen.length;
    }
    const words = !state.alignedTokens;
    return makeMatrix(
      Uint8Array.from(mean, encodeSqrt),
      columns,
      makeUnits(hypothesis.tokens.slice(0, rows), words, false),
      makeUnits(doc.sequences.source!.slice(0, columns), words, false),
    );
  }

  function makeControls(hypothesis: Hypothesis): (HTMLElement | null)[] {
    const { state } = store;
    const clear = { hover: null, locked: null };
    const names = doc.hypotheses.map((item, i): [string, string] => [
      String(i),
      `${i + 1}. ${showText(item.text, 60)} (${item.score.toFixed(2)})`,
    ]);
    return [
      choice(
        "Drawing",
        [
          ["ribbons", "Ribbons"],
          ["matrix", "Matrix"],
        ],
        state.alignment,
        (alignment) => store.set({ alignment, ...clear }),
      ),
      checkbox("Tokens instead of words", state.alignedTokens, (alignedTokens) =>
        store.set({ alignedTokens, ...clear }),
      ),
      names.length > 1
        ? select("Hypothesis", names, String(state.hypothesis), (value) =>
            store.set({ hypothesis: Number(value), ...clear }),
          )
        : null,
      saveButton(
        () => `alignment.${doc.hypotheses.indexOf(hypothesis)}`,
        () => (state.alignment === "ribbons" ? ribbons! : heatmap!),
        (renderer, theme) => {
          if (!matrix) return;
          if (state.alignment === "ribbons") drawRibbons(renderer, matrix, ribbons!, theme, active()?.row ?? null);
          else drawHeatmap(renderer, matrix, heatmap!, theme);
        },
      ),
    ];
  }

  function makeHeadGrid(cross: Decoded, chosen: [number, number][]): HTMLElement {
    const [layers, heads] = cross.shape;
    const names = new Set(chosen.map(([layer, head]) => `${layer}.${head}`));
    const set = (list: string[]) => store.set({ alignedHeads: list });
    const grid = h("div", { class: "head-grid", role: "group", "aria-label": "Average of these heads" });
    grid.style.gridTemplateColumns = `auto repeat(${Math.min(heads, MAX_BUTTONS)}, 30px)`;
    if (layers * heads <= MAX_BUTTONS)
      for (let layer = 0; layer < layers; layer++) {
        grid.append(h("span", { class: "small" }, `layer ${layer + 1}`));
        for (let head = 0; head < heads; head++) {
          const name = `${layer}.${head}`;
          const toggle = () => {
            const next = names.has(name) ? [...names].filter((item) => item !== name) : [...names, name];
            set(next);
          };
          const attributes = {
            "aria-pressed": String(names.has(name)),
            "aria-label": `Layer ${layer + 1}, head ${head + 1}`,
            onclick: toggle,
          };
          grid.append(h("button", { type: "button", ...attributes }, String(head + 1)));
        }
      }
    const all = Array.from({ length: layers * heads }, (_, i) => `${Math.floor(i / heads)}.${i % heads}`);
    const presets = h(
      "div",
      { class: "controls" },
      h("button", { type: "button", onclick: () => set([]) }, "Heads that align best"),
      h("button", { type: "button", onclick: () => set(all) }, "All heads"),
    );
    return h("div", {}, h("h3", {}, "Average of these heads"), h("div", { class: "scroller" }, grid), presets);
  }

  return { element, update };
}

/** The heads whose mean is shown: those that a reader chose, else those that align best. */
function chosenHeads(state: State, hypothesis: Hypothesis, cross: Decoded | undefined): [number, number][] {
  if (!cross) return [];
  const [layers, heads] = cross.shape;
  const chosen = state.alignedHeads
    .map((name) => name.split(".").map(Number) as [number, number])
    .filter(([layer, head]) => layer < layers && head < heads);
  return chosen.length ? chosen : hypothesis.link_heads;
}

function nameHeads(chosen: [number, number][], state: State): string {
  const names = chosen.map(([layer, head]) => `layer ${layer + 1}, head ${head + 1}`);
  const best = state.alignedHeads.length === 0;
  if (chosen.length === 1) return best ? `The head that aligns best: ${names[0]}.` : `One head: ${names[0]}.`;
  if (best) return `Average of the ${chosen.length} heads that align best: ${names.join("; ")}.`;
  return `Average of ${chosen.length} chosen heads.`;
}

function sentence(matrix: Matrix, cell: Cell): string {
  const best = strongest(matrix, cell.row, 3)
    .filter((item) => item.weight >= 0.02)
    .map((item) => `${quote(matrix.columns[item.column].label)} ${showWeight(item.weight)}`);
  const hidden = matrix.hidden(cell.row);
  const rest = hidden >= 0.01 ? ` Special tokens hold ${showWeight(hidden)}.` : "";
  return `Generating ${quote(matrix.rows[cell.row].label)}, the decoder attends to ${best.join(", ") || "no word in particular"}.${rest}`;
}
