// The view of a comparison: two inputs and outputs side by side, their next tokens, and one head's maps A, B and B − A.

import {
  type Comparison,
  type Difference,
  type OutputWord,
  compareDocuments,
  compareNext,
  describeComparison,
  describePairs,
  generated,
  pairTokens,
  splitPosition,
  subtractMaps,
} from "../compare.ts";
import { checkbox, fill, h, select } from "../dom.ts";
import { type Decoded, type Group, type GroupName, Loader, type LookDocument, decodeBlob } from "../document.ts";
import { nameOutput } from "../headline.ts";
import { Live } from "../live.ts";
import { type Matrix, groupTokens, makeMatrix, makeUnits } from "../matrix.ts";
import type { Renderer } from "../renderer.ts";
import type { Cell, State } from "../state.ts";
import { describeUntagged, findTold } from "../tags.ts";
import { type Theme, mixPixel, readTheme } from "../theme.ts";
import { continuesWord, sequenceLabels, showText } from "../tokens.ts";
import { type Context, GROUP_TITLES, type Mounted, Stage, type View, invite } from "./common.ts";
import { quote, saveButton, showPercent, showWeight, within } from "./common.ts";
import {
  type HeatmapLayout,
  drawHeatmap,
  drawHeatmapFocus,
  drawLabels,
  layoutHeatmap,
  locateInHeatmap,
} from "./heatmap.ts";
import { makeMaps } from "./maps.ts";

export const compare: View = {
  name: "compare",
  title: "Compare",
  applies: (doc) => doc.against !== undefined,
  mount,
};

function mount(context: Context): Mounted {
  const { doc, store } = context;
  const other = doc.against!;
  const comparison = compareDocuments(doc, other);
  const blobs = new Loader<Decoded>(
    (name) => decodeBlob(other.blobs[name]),
    () => store.notify(),
  );
  // The second document of a live page is live too: its missing maps are asked for.
  const live = new Live({ ...other, live: doc.live, session: doc.session }, true);
  const maps = [makeMaps(context), makeMaps({ doc: other, store, blobs, live })];
  const next = makeNext(context, other);
  const picture = makePictures(context, other, comparison, maps);
  const element = h(
    "section",
    { class: "compare", "aria-label": "Compare" },
    h("h2", {}, title(comparison)),
    h("ul", { class: "facts" }, ...describeComparison(comparison).map((fact) => h("li", {}, fact))),
    h("div", { class: "sides" }, makeSide("A", doc, comparison), makeSide("B", other, comparison)),
    h("p", { class: "small" }, "Underlined: only on this side. Below each word of the output: its probability."),
    next?.element,
    picture.element,
  );
  return {
    element,
    update: (changed) => {
      const onlyFocus = changed.size > 0 && [...changed].every((name) => name === "hover" || name === "locked");
      if (!onlyFocus) next?.update();
      picture.update(onlyFocus);
    },
  };
}

function title({ isSameModel, isSameInput }: Comparison): string {
  if (isSameInput) return isSameModel ? "What differs between two runs?" : "What differs between two models?";
  return isSameModel ? "What differs between two inputs?" : "What differs between two models and inputs?";
}

/** The input and output of one side; what the other side does not have is marked. */
function makeSide(side: "A" | "B", doc: LookDocument, { input, output }: Comparison): HTMLElement {
  const foreign = side === "A" ? "added" : "removed";
  const pieces = input
    .filter((piece) => piece.kind !== foreign)
    .flatMap(({ kind, text }) => {
      const word = showText(text.trimStart());
      return [/^\s/.test(text) ? " " : "", kind === "same" ? word : h("mark", {}, word)];
    });
  const key = side === "A" ? "a" : "b";
  const words = output
    .filter((pair) => pair.kind !== foreign)
    .map((pair) => showWord(pair[key]!, pair.kind !== "same"));
  const others = describeUntagged(findTold(doc).untagged);
  return h(
    "div",
    { class: "card" },
    h("h3", {}, [side, showText(doc.model.name, 60)].filter(Boolean).join(": ")),
    h("p", { class: "small", dir: "auto" }, ...pieces),
    h("p", { class: "words", dir: "auto" }, ...(words.length ? words : [showText(nameOutput(doc), 200)])),
    others ? h("p", { class: "small" }, others) : null,
  );
}

function showWord(word: OutputWord, isDifferent: boolean): HTMLElement {
  const text = showText(word.text || "␣", 60);
  return h(
    "span",
    {},
    isDifferent ? h("mark", {}, text) : text,
    h("span", { class: "small" }, showPercent(word.probability)),
  );
}

/** The next tokens at one position of both outputs; null if a model did not generate. */
function makeNext({ doc, store }: Context, other: LookDocument): { element: HTMLElement; update(): void } | null {
  if (!doc.next || !other.next) return null;
  const [left, right] = [generated(doc), generated(other)];
  const count = Math.min(doc.next.tokens.length, other.next.tokens.length);
  const pairs = pairTokens(doc, other).filter(([i, j]) => i < count && j < count);
  // Where the outputs part, both continue the same text, even if what follows has no counterpart.
  const split = splitPosition(doc, other);
  if (split !== null && split < count && !pairs.some(([i]) => i === split)) {
    pairs.push([split, split]);
    pairs.sort((a, b) => a[0] - b[0]);
  }
  if (pairs.length === 0) return null;
  const opening = Math.max(
    0,
    pairs.findIndex(([i]) => i === split),
  );
  const labels = [sequenceLabels(left), sequenceLabels(right)];
  const chips = h("div", { class: "chips scroller", role: "group", "aria-label": "Output position" });
  const caption = h("p", { class: "fact" });
  const table = h("table", { class: "next" });
  const element = h("div", {}, h("h3", {}, "What each would write next"), chips, caption, table);
  const buttons = pairs.map(([i, j], at) => {
    const [a, b] = [labels[0][i], labels[1][j]];
    const choose = () => store.set({ compared: at });
    return h("button", { type: "button", onclick: choose }, a === b ? a : `${a} → ${b}`);
  });
  chips.append(...buttons);
  chips.addEventListener("keydown", (event) => {
    const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!move) return;
    event.preventDefault();
    const at = Math.max(0, Math.min(pairs.length - 1, current() + move));
    store.set({ compared: at });
    buttons[at].focus();
  });
  const current = () => Math.min(store.state.compared ?? opening, pairs.length - 1);

  function update(): void {
    const at = current();
    buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(i === at)));
    const [i, j] = pairs[at];
    const isSame = split === null || (i === j && i <= split);
    caption.textContent = `${isSame ? "Both wrote the same before this token." : "Each continues its own beginning."} –: less probable than those listed.`;
    const bar = (value: number | null) => {
      const line = h("span", { class: "bar" });
      line.style.width = `${(value ?? 0) * 60}%`;
      return h("td", {}, line, value === null ? "–" : showPercent(value));
    };
    const rows = compareNext(doc, other, pairs[at])
      .slice(0, 8)
      .map((row) => h("tr", {}, h("th", { scope: "row", dir: "auto" }, row.text), bar(row.a), bar(row.b)));
    fill(
      table,
      h("thead", {}, h("tr", {}, ...["Token", "A", "B"].map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, ...rows),
    );
  }
  return { element, update };
}

/** One head of each side as maps, and their difference. */
function makePictures(
  { doc, store }: Context,
  other: LookDocument,
  { isSameModel }: Comparison,
  maps: ReturnType<typeof makeMaps>[],
): { element: HTMLElement; update(onlyFocus: boolean): void } {
  const names = doc.attention.map((group) => group.name).filter((name) => findByName(other, name));
  if (names.length === 0) {
    const none = h("p", { class: "fact" }, "The two models have no attention of the same kind to compare.");
    return { element: none, update: () => undefined };
  }
  const controls = h("div", { class: "controls" });
  const readout = h("p", { class: "readout", role: "status", "aria-live": "polite" });
  const note = h("p", { class: "small" });
  const stages = ["A", "B", "B − A"].map(
    (name) =>
      new Stage(`Weights of ${name}. Arrow keys move, Escape releases.`, name === "B − A" ? {} : { tabindex: -1 }),
  );
  const captions = stages.map(() => h("h3"));
  const columns = stages.map((stage, i) => h("div", {}, captions[i], h("div", { class: "scroller" }, stage.element)));
  const row = h("div", { class: "maps" }, ...columns);
  const legend = h(
    "div",
    { class: "legend small" },
    h("span", {}, h("i", { class: "plus" }), "more weight in B"),
    h("span", {}, h("i", { class: "minus" }), "more weight in A"),
  );
  const element = h("div", {}, h("h3", {}, "What one head reads"), controls, readout, row, legend, note);
  let matrices: (Matrix | null)[] = [null, null];
  let layouts: HeatmapLayout[] = [];
  let difference: Difference | null = null;
  const active = () => (difference ? within(store.state.locked ?? store.state.hover, difference) : null);

  /** The cell of the difference that a cell of map A, B or B − A belongs to. */
  const toPair = (cell: Cell | null, map: number): Cell | null => {
    if (!cell || !difference || map === 2) return cell;
    const find = (pairs: [number, number][], place: number) => pairs.findIndex((pair) => pair[map] === place);
    const found = find(difference.rowPairs, cell.row);
    const column = cell.column === null ? null : find(difference.columnPairs, cell.column);
    return found < 0 ? null : { row: found, column: column !== null && column < 0 ? null : column };
  };
  stages.forEach((stage, map) => {
    const locate = (event: MouseEvent): Cell | null => {
      const { x, y } = stage.locate(event);
      const units = map === 2 ? difference : matrices[map];
      return units && layouts[map] ? toPair(locateInHeatmap(units, layouts[map], x, y), map) : null;
    };
    stage.element.addEventListener("pointermove", (event) => {
      const [cell, old] = [locate(event), store.state.hover];
      if (cell?.row !== old?.row || cell?.column !== old?.column) store.set({ hover: cell });
    });
    stage.element.addEventListener("pointerleave", () => store.set({ hover: null }));
    stage.element.addEventListener("click", (event) =>
      store.set({ locked: store.state.locked ? null : locate(event) }),
    );
  });
  stages[2].element.addEventListener("keydown", (event) => {
    if (event.key === "Escape") return store.set({ locked: null });
    const moves: Record<string, [number, number]> = {
      ArrowUp: [-1, 0],
      ArrowDown: [1, 0],
      ArrowLeft: [0, -1],
      ArrowRight: [0, 1],
    };
    const move = moves[event.key];
    if (!move || !difference) return;
    event.preventDefault();
    const clamp = (value: number, length: number) => Math.max(0, Math.min(length - 1, value));
    const from = active() ?? { row: -move[0], column: -move[1] };
    const cell = {
      row: clamp(from.row + move[0], difference.rows.length),
      column: clamp((from.column ?? 0) + move[1], difference.columns.length),
    };
    store.set({ locked: cell, hover: null });
  });

  /** Group, layer and head of each side. B has the head of A if it is the same model, else its own. */
  function chosen(state: State): { group: Group; layer: number; head: number }[] {
    const name = names.includes(state.group) ? state.group : names[0];
    const [left, right] = [findByName(doc, name)!, findByName(other, name)!];
    const [layer, head] = name === state.group ? [state.layer, state.head] : left.default_head;
    const own = state.againstHead;
    const isThere = own !== null && own[0] < right.layers && own[1] < right.heads;
    const [otherLayer, otherHead] = isSameModel ? [layer, head] : isThere ? own : right.default_head;
    return [
      { group: left, layer, head },
      { group: right, layer: otherLayer, head: otherHead },
    ];
  }

  function makeControls(state: State): (HTMLElement | null)[] {
    const sides = chosen(state);
    const clear = { hover: null, locked: null };
    const heads = ({ group }: { group: Group }) =>
      Array.from({ length: group.layers * group.heads }, (_, i): [string, string] => {
        const [layer, head] = [Math.floor(i / group.heads), i % group.heads];
        return [`${layer}.${head}`, `layer ${layer + 1}, head ${head + 1}`];
      });
    const list = (label: string, i: number, choose: (layer: number, head: number) => void) =>
      select(label, heads(sides[i]), `${sides[i].layer}.${sides[i].head}`, (value) => {
        const [layer, head] = value.split(".").map(Number);
        choose(layer, head);
      });
    const setGroup = (name: GroupName) => {
      const [layer, head] = findByName(doc, name)!.default_head;
      store.set({ group: name, layer, head, againstHead: null, ...clear });
    };
    const hasWords = [doc, other].some((item) =>
      Object.values(item.sequences).some((tokens) => tokens.some((_, i) => continuesWord(tokens, i))),
    );
    const { group } = sides[0];
    return [
      names.length > 1
        ? select(
            "Attention",
            names.map((name): [GroupName, string] => [name, GROUP_TITLES[name]]),
            group.name,
            setGroup,
          )
        : null,
      list(isSameModel ? "Head" : "Head of A", 0, (layer, head) =>
        store.set({ group: group.name, layer, head, ...clear }),
      ),
      isSameModel ? null : list("Head of B", 1, (layer, head) => store.set({ againstHead: [layer, head], ...clear })),
      hasWords ? checkbox("Words", state.words, (words) => store.set({ words, ...clear })) : null,
      saveButton(
        () => `compare.${group.name}.${sides[0].layer}.${sides[0].head}`,
        () => layouts[2] ?? { width: 0, height: 0 },
        (renderer, theme) => difference && drawDifference(renderer, difference, layouts[2], theme, null),
      ),
    ];
  }

  function update(onlyFocus: boolean): void {
    const { state } = store;
    const theme = readTheme();
    if (!onlyFocus) {
      const sides = chosen(state);
      fill(controls, ...makeControls(state));
      const documents = [doc, other];
      const codes = sides.map(({ group, layer, head }, i) => maps[i].read(group, layer, head));
      matrices = sides.map(({ group }, i) => {
        const map = codes[i];
        if (!map) return null;
        const tokens = groupTokens(documents[i], group);
        const units = (list: typeof tokens.rows) => makeUnits(list, state.words, true);
        return makeMatrix(map.codes as Uint8Array, map.shape[1], units(tokens.rows), units(tokens.columns));
      });
      const [a, b] = matrices;
      difference = a && b ? subtractMaps(a, b) : null;
      const isMissing = codes.some((map) => map === null);
      const problem = sides.map(({ group, layer, head }, i) => maps[i].problem(group, layer, head)).find(Boolean);
      note.textContent =
        problem ??
        (isMissing
          ? "This file does not have the maps of this head on both sides; choose another head."
          : difference && a && b
            ? describePairs(difference, a, b)
            : "");
      const isNarrow = row.clientWidth < 820;
      const available = Math.max(240, isNarrow ? row.clientWidth - 6 : (row.clientWidth - 48) / 3);
      // On a large screen all rows are in the window.
      const room = window.innerHeight - row.getBoundingClientRect().top - window.scrollY - 56;
      const rows = Math.max(0, ...[a, b, difference].map((units) => units?.rows.length ?? 0));
      const height = state.present || isNarrow ? 640 : Math.min(640, Math.max(room, 24 * rows + 90));
      const shown = [a, b, difference];
      stages.forEach((stage, i) => {
        const units = shown[i];
        columns[i].hidden = !units;
        if (!units) return;
        captions[i].textContent = ["A", "B", "B − A"][i];
        layouts[i] = layoutHeatmap(units, available, theme, height);
        stage.describe(layouts[i].left, layouts[i].top, layouts[i].cell);
        stage.draw(layouts[i].width, layouts[i].height, (renderer) => {
          if (i === 2) drawDifference(renderer, difference!, layouts[2], theme, null);
          else
            drawHeatmap(renderer, shown[i] as Matrix, layouts[i], theme, {
              pixelRatio: window.devicePixelRatio || 1,
            });
        });
      });
      legend.hidden = !difference;
    }
    const cell = active();
    stages.forEach((stage, i) => {
      const layout = layouts[i];
      if (columns[i].hidden || !layout) return;
      stage.drawOverlay(layout.width, layout.height, (renderer) => {
        if (!cell || !difference) return;
        if (i === 2) return drawDifferenceFocus(renderer, difference, layout, theme, cell);
        const own = {
          row: difference.rowPairs[cell.row][i],
          column: cell.column === null ? null : difference.columnPairs[cell.column][i],
        };
        drawHeatmapFocus(renderer, matrices[i]!, layout, theme, own, state.locked !== null);
      });
    });
    readout.textContent = difference
      ? cell
        ? sentence(difference, matrices as Matrix[], cell)
        : largest(difference, matrices as Matrix[])
      : "Reading the maps …";
    if (!difference && note.textContent) readout.textContent = note.textContent;
  }
  return { element, update };
}

const findByName = (doc: LookDocument, name: GroupName) => doc.attention.find((group) => group.name === name);

function drawDifference(
  renderer: Renderer,
  difference: Difference,
  layout: HeatmapLayout,
  theme: Theme,
  active: Cell | null,
): void {
  const { cell, left, top } = layout;
  const [rows, columns] = [difference.rows.length, difference.columns.length];
  // Full color is a difference of 1, as in the maps: the two scales can be compared.
  const data = Uint32Array.from(difference.values, (value) =>
    mixPixel(theme.page, value < 0 ? theme.minus : theme.hue, Math.abs(value) < 0.002 ? 0 : Math.sqrt(Math.abs(value))),
  );
  if (rows && columns) renderer.pixels(left, top, columns * cell, rows * cell, { width: columns, height: rows, data });
  renderer.rect(left - 0.5, top - 0.5, columns * cell + 1, rows * cell + 1, { stroke: theme.rule });
  drawLabels(renderer, difference, layout, theme, active);
}

function drawDifferenceFocus(
  renderer: Renderer,
  difference: Difference,
  layout: HeatmapLayout,
  theme: Theme,
  active: Cell,
): void {
  const y = layout.top + active.row * layout.cell;
  const width = difference.columns.length * layout.cell;
  renderer.rect(layout.left, y, width, layout.cell, { stroke: theme.accent, width: 1.5 });
  if (active.column !== null)
    renderer.rect(layout.left + active.column * layout.cell, y, layout.cell, layout.cell, {
      stroke: theme.accent,
      width: 2.5,
    });
}

function sentence(difference: Difference, [a, b]: Matrix[], cell: Cell): string {
  const width = difference.columns.length;
  const values = Array.from(difference.values.subarray(cell.row * width, (cell.row + 1) * width));
  const column =
    cell.column ?? values.reduce((best, value, i) => (Math.abs(value) > Math.abs(values[best]) ? i : best), 0);
  if (width === 0) return "No column has a counterpart.";
  const [i, j] = difference.rowPairs[cell.row];
  const [k, l] = difference.columnPairs[column];
  const name = (unit: { label: string }, at: number) => (unit.label ? quote(unit.label) : `cell ${at + 1}`);
  const [before, after] = [a.value(i, k), b.value(j, l)];
  const change = `${after < before ? "−" : "+"}${showWeight(Math.abs(after - before))}`;
  return `${name(difference.rows[cell.row], cell.row)} reads ${name(difference.columns[column], column)}: ${showWeight(before)} in A, ${showWeight(after)} in B (${change}).`;
}

/** The cell that changes most, as a sentence. */
function largest(difference: Difference, matrices: Matrix[]): string {
  const { values, columns } = difference;
  if (values.length === 0) return "No token of A has a counterpart in B.";
  let best = 0;
  values.forEach((value, i) => (best = Math.abs(value) > Math.abs(values[best]) ? i : best));
  const cell = { row: Math.floor(best / columns.length), column: best % columns.length };
  return `The largest difference: ${sentence(difference, matrices, cell)} ${invite("a cell", "to compare it")}`;
}
