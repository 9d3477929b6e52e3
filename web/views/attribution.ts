// The view of attribution: how much each input token contributed to each output, by three methods.

import { choice, fill, h } from "../dom.ts";
import type { Attribution, LookDocument, Token } from "../document.ts";
import type { Matrix, Unit } from "../matrix.ts";
import type { Renderer } from "../renderer.ts";
import { roomBelow } from "../present.ts";
import type { Cell, State } from "../state.ts";
import { type Theme, mixPixel, readTheme } from "../theme.ts";
import { sequenceLabels } from "../tokens.ts";
import { type Context, type Mounted, Stage, type View, invite, quote, saveButton, within } from "./common.ts";
import { type HeatmapLayout, drawLabels, layoutHeatmap, locateInHeatmap } from "./heatmap.ts";

const METHODS: Record<string, { title: string; says: string }> = {
  occlusion: {
    title: "Occlusion",
    says: "Change of the logit if the token is there, against the mean embedding in its place.",
  },
  gradient_x_input: {
    title: "Gradient × input",
    says: "Gradient of the logit times the embedding's distance from the mean embedding.",
  },
  integrated_gradients: {
    title: "Integrated gradients",
    says: "The same gradient, averaged on the way from the mean embedding: the numbers of a row sum to the difference of the logits.",
  },
};

export const attribution: View = {
  name: "attribution",
  title: "Attribution",
  level: 2,
  applies: (doc) => (doc.attribution?.outputs.length ?? 0) > 0,
  mount,
};

/** Rows and columns with their labels; the values stand apart because they are signed. */
interface Table extends Pick<Matrix, "rows" | "columns"> {
  values: Float32Array;
  largest: number;
  /** Number of columns of the encoder. */
  sourceColumns: number;
}

function mount({ doc, store, blobs }: Context): Mounted {
  const data = doc.attribution!;
  const fact = h("p", { class: "fact" });
  const controls = h("div", { class: "controls" });
  const readout = h("p", { class: "readout", role: "status", "aria-live": "polite" });
  const stage = new Stage("Contributions of input tokens to outputs. Arrow keys move, Escape releases.");
  const print = h("p", { class: "small" });
  const element = h(
    "section",
    { class: "attribution", "aria-label": "Attribution" },
    h("h2", {}, "What each input token contributed"),
    fact,
    controls,
    readout,
    h("div", { class: "scroller" }, stage.element),
    h(
      "div",
      { class: "legend small" },
      h("span", {}, h("i", { class: "plus" }), "makes the output likelier"),
      h("span", {}, h("i", { class: "minus" }), "makes it less likely"),
      h("span", {}, "rows: outputs; columns: what the model read; numbers: change of the logit"),
    ),
    print,
  );
  let table: Table | null = null;
  let layout: HeatmapLayout | null = null;
  const active = () => store.state.locked ?? store.state.hover;
  const locate = (event: MouseEvent): Cell | null => {
    const { x, y } = stage.locate(event);
    return table && layout && locateInHeatmap(table, layout, x, y);
  };
  stage.element.addEventListener("pointermove", (event) => {
    const [cell, old] = [locate(event), store.state.hover];
    if (cell?.row !== old?.row || cell?.column !== old?.column) store.set({ hover: cell });
  });
  stage.element.addEventListener("pointerleave", () => store.set({ hover: null }));
  stage.element.addEventListener("click", (event) => store.set({ locked: store.state.locked ? null : locate(event) }));
  stage.element.addEventListener("keydown", (event) => {
    if (event.key === "Escape") return store.set({ locked: null });
    const moves: Record<string, [number, number]> = {
      ArrowUp: [-1, 0],
      ArrowDown: [1, 0],
      ArrowLeft: [0, -1],
      ArrowRight: [0, 1],
    };
    const move = moves[event.key];
    if (!move || !table) return;
    event.preventDefault();
    const clamp = (value: number, count: number) => Math.max(0, Math.min(count - 1, value));
    const from = active() ?? { row: -move[0], column: -move[1] };
    const cell = {
      row: clamp(from.row + move[0], table.rows.length),
      column: clamp((from.column ?? 0) + move[1], table.columns.length),
    };
    store.set({ locked: cell, hover: null });
  });

  function update(_: Set<keyof State>): void {
    const { state } = store;
    const theme = readTheme();
    const name = data.methods[state.method] ? state.method : Object.keys(data.methods)[0];
    const options = Object.keys(data.methods).map((key): [string, string] => [key, METHODS[key]?.title ?? key]);
    fill(
      controls,
      choice("Method", options, name, (method) => store.set({ method })),
      saveButton(
        () => `attribution.${name}`,
        () => layout!,
        (renderer) => table && drawTable(renderer, table, layout!, theme, null),
      ),
    );
    const values = blobs.read(data.methods[name]);
    if (!values) {
      readout.textContent = "Reading the numbers …";
      return;
    }
    table = makeTable(doc, data, values.codes as Float32Array);
    layout = layoutHeatmap(table, Math.max(260, element.clientWidth - 6), theme, roomBelow(stage.element));
    const cell = within(active(), table);
    stage.describe(layout.left, layout.top, layout.cell);
    stage.draw(layout.width, layout.height, (renderer) => drawTable(renderer, table!, layout!, theme, cell));
    stage.drawOverlay(layout.width, layout.height, () => undefined);
    const says = [METHODS[name]?.says, name === "integrated_gradients" && completeness(data)];
    const specials = "Special tokens are the same in the input and in the baseline, so their columns are empty.";
    print.textContent = [...says, table.columns.some((unit) => unit.special) && specials].filter(Boolean).join(" ");
    fact.textContent = summarize(table);
    readout.textContent = cell ? sentence(table, data, cell) : invite("a cell", "to read a contribution");
  }

  return { element, update };
}

function makeTable(doc: LookDocument, data: Attribution, values: Float32Array): Table {
  const units = (tokens: Token[]): Unit[] =>
    sequenceLabels(tokens).map((label, i) => ({ label, special: tokens[i].role === "special", members: [i] }));
  const source = units((doc.sequences.source ?? []).slice(0, data.source_columns));
  const target = units((doc.sequences.target ?? []).slice(0, data.target_columns));
  const outputs = units(doc.sequences.target ?? doc.sequences.source ?? []);
  const rows = data.outputs.map((place) =>
    place === null ? { label: "label", special: false, members: [] } : outputs[place],
  );
  const largest = values.reduce((best, value) => Math.max(best, Math.abs(value)), 1e-9);
  return { rows, columns: [...source, ...target], values, largest, sourceColumns: source.length };
}

function drawTable(renderer: Renderer, table: Table, layout: HeatmapLayout, theme: Theme, active: Cell | null): void {
  const { cell, left, top } = layout;
  const [rows, columns] = [table.rows.length, table.columns.length];
  const data = new Uint32Array(rows * columns);
  for (let i = 0; i < data.length; i++) {
    const value = table.values[i];
    data[i] = mixPixel(theme.page, value < 0 ? theme.minus : theme.hue, shade(Math.abs(value) / table.largest));
  }
  renderer.pixels(left, top, columns * cell, rows * cell, { width: columns, height: rows, data });
  renderer.rect(left - 0.5, top - 0.5, columns * cell + 1, rows * cell + 1, { stroke: theme.rule });
  if (table.sourceColumns > 0 && table.sourceColumns < columns)
    renderer.path(`M${left + table.sourceColumns * cell} ${top - 8}V${top + rows * cell}`, {
      stroke: theme.ink,
      width: 2,
    });
  drawLabels(renderer, table, layout, theme, active);
  if (!active) return;
  const y = top + active.row * cell;
  renderer.rect(left, y, columns * cell, cell, { stroke: theme.accent, width: 1.5 });
  if (active.column !== null)
    renderer.rect(left + active.column * cell, y, cell, cell, { stroke: theme.accent, width: 2.5 });
  if (cell < 30) return;
  for (let column = 0; column < columns; column++) {
    const value = table.values[active.row * columns + column];
    if (Math.abs(value) < 0.05) continue;
    const text = value.toFixed(1).replace("-", "−");
    renderer.text(left + (column + 0.5) * cell, y + cell / 2, text, { fill: theme.ink, size: 11, anchor: "middle" });
  }
}

/** How much of its color a value gets: on a dark page less than a tenth would not be seen. */
function shade(share: number): number {
  return share < 0.002 ? 0 : 0.12 + 0.73 * Math.sqrt(share);
}

function summarize(table: Table): string {
  // What the source contributes to a word says more than what the end of the text contributes to eos.
  const columns = table.columns.length;
  const counted = table.sourceColumns || columns;
  let best: { row: number; column: number; value: number } | null = null;
  table.rows.forEach((unit, row) => {
    for (let column = 0; column < counted; column++) {
      const value = table.values[row * columns + column];
      if (!unit.special && value > (best?.value ?? 0)) best = { row, column, value };
    }
  });
  if (best === null) return "";
  const { row, column, value } = best as { row: number; column: number; value: number };
  const from = table.sourceColumns ? "source token" : "token";
  return `The ${from} that contributes most: ${quote(table.columns[column].label)} makes ${quote(table.rows[row].label)} likelier (+${value.toFixed(2)} logit).`;
}

function sentence(table: Table, data: Attribution, cell: Cell): string {
  const columns = table.columns.length;
  const value = (column: number) => table.values[cell.row * columns + column];
  const name = quote(table.rows[cell.row].label);
  const order = Array.from({ length: columns }, (_, i) => i).sort((a, b) => Math.abs(value(b)) - Math.abs(value(a)));
  const list = order.slice(0, 3).map((column) => `${quote(table.columns[column].label)} ${signed(value(column))}`);
  const logit = `Its logit is ${data.logits[cell.row].toFixed(2)}, without any input ${data.baseline_logits[cell.row].toFixed(2)}.`;
  if (cell.column === null) return `${name}: most by ${list.join(", ")}. ${logit}`;
  return `${quote(table.columns[cell.column].label)} contributes ${signed(value(cell.column))} to ${name}. Most: ${list.join(", ")}. ${logit}`;
}

function completeness(data: Attribution): string {
  const worst = Math.max(...data.completeness);
  return `Here within ${(worst * 100).toFixed(1)} % (${data.steps} steps).`;
}

function signed(value: number): string {
  return (value < 0 ? "−" : "+") + Math.abs(value).toFixed(2);
}
