// The view of masks: which tokens may attend to which, by the terms of the mask, and the test that no future leaks.

import { checkbox, choice, fill, h } from "../dom.ts";
import type { LeakTest, MaskTerm, MaskView } from "../document.ts";
import { type Unit, groupTokens, makeUnits } from "../matrix.ts";
import type { Renderer } from "../renderer.ts";
import type { Cell, State } from "../state.ts";
import type { Theme } from "../theme.ts";
import {
  type Context,
  GROUP_TITLES,
  type Mounted,
  Stage,
  type View,
  findGroup,
  fitText,
  invite,
  quote,
  saveButton,
  textWidth,
  within,
} from "./common.ts";

const MAX_SHOWN = 40;
const LABEL = 90;

export const masks: View = {
  name: "masks",
  title: "Masks",
  level: 2,
  // That every patch attends to every other one needs no table.
  applies: (doc) =>
    doc.attention.length > 0 &&
    doc.masks.length > 0 &&
    (!doc.picture || doc.masks.some((mask) => mask.terms.length > 0)),
  mount,
};

/** What a term says, in words. */
const TERMS: Record<MaskTerm["kind"], { label: (term: MaskTerm) => string; reason: string }> = {
  causal: { label: () => "causal: no later token", reason: "it comes later" },
  window: { label: (term) => `window: fewer than ${term.width} tokens away`, reason: "it is outside the window" },
  padding: { label: () => "padding: only valid tokens", reason: "it is padding" },
  documents: { label: () => "documents: only the same text", reason: "it belongs to another text" },
};

/** Whether a term lets a row attend to a column. */
function allows(term: MaskTerm, row: number, column: number): boolean {
  if (term.kind === "causal") return column <= row;
  if (term.kind === "window") return Math.abs(row - column) < (term.width ?? Infinity);
  if (term.kind === "padding") return term.valid?.[column] ?? true;
  return term.documents?.[row] === term.documents?.[column];
}

function mount({ doc, store }: Context): Mounted {
  const fact = h("p", { class: "fact" });
  const controls = h("div", { class: "controls" });
  const readout = h("p", { class: "readout", role: "status", "aria-live": "polite" });
  const stage = new Stage("The mask. Arrow keys move.");
  const leak = h("div", { class: "card" });
  const print = h("p", { class: "small" });
  const element = h(
    "section",
    { class: "masks", "aria-label": "Masks" },
    h("h2", {}, "Who may attend to whom"),
    fact,
    controls,
    readout,
    h(
      "div",
      { class: "columns" },
      h("div", {}, h("div", { class: "scroller" }, stage.element), print),
      h("div", {}, leak),
    ),
  );
  let layout = { cell: 20, width: 0, height: 0, rows: [] as Unit[], columns: [] as Unit[] };
  const current = (): MaskView => doc.masks.find((mask) => mask.group === store.state.mask) ?? doc.masks[0];
  const active = () => store.state.locked ?? store.state.hover;

  const locate = (event: MouseEvent): Cell | null => {
    const { x, y } = stage.locate(event);
    const [row, column] = [Math.floor((y - LABEL) / layout.cell), Math.floor((x - LABEL) / layout.cell)];
    return row >= 0 && column >= 0 && row < layout.rows.length && column < layout.columns.length
      ? { row, column }
      : null;
  };
  stage.element.addEventListener("pointermove", (event) => {
    const [cell, old] = [locate(event), store.state.hover];
    if (cell?.row !== old?.row || cell?.column !== old?.column) store.set({ hover: cell });
  });
  stage.element.addEventListener("pointerleave", () => store.set({ hover: null }));
  stage.element.addEventListener("click", (event) => store.set({ locked: store.state.locked ? null : locate(event) }));
  stage.element.addEventListener("keydown", (event) => {
    if (event.key === "Escape") return store.set({ locked: null });
    const move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!move) return;
    event.preventDefault();
    const from = active();
    const clamp = (value: number, count: number) => Math.max(0, Math.min(count - 1, value));
    const cell = from
      ? {
          row: clamp(from.row + move[0], layout.rows.length),
          column: clamp((from.column ?? 0) + move[1], layout.columns.length),
        }
      : { row: 0, column: 0 };
    store.set({ locked: cell, hover: null });
  });

  function update(): void {
    const { state } = store;
    const mask = current();
    const group = findGroup(doc, mask.group);
    const tokens = groupTokens(doc, group);
    const terms = mask.terms.filter((term) => !state.hiddenTerms.includes(term.kind));
    const [rows, columns] = [
      makeUnits(tokens.rows.slice(0, MAX_SHOWN), false, true),
      makeUnits(tokens.columns.slice(0, MAX_SHOWN), false, true),
    ];
    const room = (Math.max(260, element.clientWidth) - LABEL - 20) / Math.max(1, columns.length);
    const cell = Math.max(12, Math.min(28, Math.floor(room)));
    layout = { cell, rows, columns, width: LABEL + columns.length * cell + 40, height: LABEL + rows.length * cell + 4 };
    fact.textContent = summarize(mask, state);
    const names = doc.masks.map((item): [MaskView["group"], string] => [item.group, GROUP_TITLES[item.group]]);
    fill(
      controls,
      names.length > 1
        ? choice("Attention", names, mask.group, (value) => store.set({ mask: value, hiddenTerms: [], locked: null }))
        : null,
      ...mask.terms.map((term) =>
        checkbox(TERMS[term.kind].label(term), !state.hiddenTerms.includes(term.kind), (on) =>
          store.set({
            hiddenTerms: on
              ? state.hiddenTerms.filter((kind) => kind !== term.kind)
              : [...state.hiddenTerms, term.kind],
          }),
        ),
      ),
      saveButton(
        () => `mask.${mask.group}`,
        () => layout,
        (renderer, theme) => drawMask(renderer, layout, terms, theme, null),
      ),
    );
    const at = within(active(), layout);
    stage.describe(LABEL, LABEL, cell);
    stage.draw(layout.width, layout.height, (renderer, theme) => drawMask(renderer, layout, terms, theme, at));
    stage.drawOverlay(layout.width, layout.height, () => undefined);
    readout.textContent = at
      ? sentence(rows, columns, terms, at)
      : invite("a cell", "to read whether its row may attend to its column");
    leak.hidden = mask.leak === null;
    if (mask.leak) fill(leak, ...describeLeak(mask.leak));
    const cut = Math.max(tokens.rows.length, tokens.columns.length) > MAX_SHOWN;
    print.textContent = cut ? `The first ${MAX_SHOWN} tokens are shown.` : "";
  }

  return { element, update };
}

function drawMask(
  renderer: Renderer,
  layout: { cell: number; rows: Unit[]; columns: Unit[] },
  terms: MaskTerm[],
  theme: Theme,
  active: Cell | null,
): void {
  const { cell, rows, columns } = layout;
  rows.forEach((unit, row) => {
    const y = LABEL + row * cell;
    const fill = row === active?.row ? theme.accent : theme.muted;
    renderer.text(LABEL - 6, y + cell / 2, fitText(unit.label, 12, theme.font, LABEL - 10), {
      fill,
      size: 12,
      anchor: "end",
    });
    columns.forEach((_, column) => {
      const open = terms.every((term) => allows(term, row, column));
      const x = LABEL + column * cell;
      if (open) renderer.rect(x + 1, y + 1, cell - 2, cell - 2, { fill: theme.hue, radius: 2 });
      else renderer.rect(x + cell / 2 - 1.5, y + cell / 2 - 1.5, 3, 3, { fill: theme.rule, radius: 1.5 });
    });
  });
  columns.forEach((unit, column) => {
    const fill = column === active?.column ? theme.accent : theme.muted;
    const label = fitText(unit.label, 12, theme.font, LABEL - 10);
    const [x, isNarrow] = [LABEL + (column + 0.5) * cell, textWidth(label, 12, theme.font) <= cell - 2];
    if (isNarrow) renderer.text(x, LABEL - 10, label, { fill, size: 12, anchor: "middle" });
    else renderer.text(x, LABEL - 6, label, { fill, size: 12, angle: -53 });
  });
  if (active && active.column !== null)
    renderer.rect(LABEL + active.column * cell, LABEL + active.row * cell, cell, cell, {
      stroke: theme.accent,
      width: 2.5,
    });
}

function summarize(mask: MaskView, state: State): string {
  if (mask.terms.length === 0) return "No mask: every row attends to every column.";
  const off = mask.terms.filter((term) => state.hiddenTerms.includes(term.kind));
  if (off.length) return `What if: no ${off.map((term) => term.kind).join(", no ")} mask (the model does use it).`;
  if (mask.terms.length === 1 && mask.terms[0].kind === "causal")
    return "Causal: a token attends to itself and to earlier tokens only.";
  return `A row attends to a column if all terms allow it: ${mask.terms.map((term) => term.kind).join(", ")}.`;
}

function sentence(rows: Unit[], columns: Unit[], terms: MaskTerm[], cell: Cell): string {
  const [row, column] = [cell.row, cell.column ?? 0];
  const blocking = terms.filter((term) => !allows(term, row, column));
  const names = [quote(rows[row].label), quote(columns[column].label)];
  if (blocking.length === 0) return `${names[0]} may attend to ${names[1]}.`;
  return `${names[0]} may not attend to ${names[1]}: ${blocking.map((term) => TERMS[term.kind].reason).join(" and ")}.`;
}

function describeLeak(leak: LeakTest): HTMLElement[] {
  const show = (value: number) => (value < 1e-3 ? value.toExponential(1) : value.toFixed(2));
  const verdict =
    leak.later_change === 0
      ? "The test shows nothing: replacing later tokens changed no prediction."
      : leak.change < 1e-4
        ? "No future leaks."
        : "The future leaks!";
  const first = leak.prefix === 1 ? "First prediction" : `First ${leak.prefix} predictions`;
  const kept =
    leak.change === 0
      ? `${first} unchanged when the rest is replaced`
      : `${first} ${leak.change < 1e-4 ? "unchanged" : "changed"} when the rest is replaced (by up to ${show(leak.change)})`;
  return [
    h("p", {}, h("strong", {}, `Leak test: ${verdict}`)),
    h("p", {}, `${kept}.`),
    h(
      "p",
      { class: "small" },
      `The model read the same beginning with ${leak.replaced} other tokens after it; their own predictions changed by up to ${show(leak.later_change)}. Numbers are changes of a log-probability.`,
    ),
  ];
}
