// The view of positions: what the model adds or turns so that it knows the order of tokens.

import { choice, fill, h } from "../dom.ts";
import type { Decoded, Positions } from "../document.ts";
import type { Renderer } from "../renderer.ts";
import { type Theme, mixPixel, readTheme } from "../theme.ts";
import { type Context, type Mounted, Stage, type View } from "./common.ts";
import {
  type Curve,
  type Grid,
  angles,
  dotProducts,
  relativeCurves,
  sinusoidal,
  wavelengths,
} from "./positions_math.ts";

export const positions: View = {
  name: "positions",
  title: "Positions",
  level: 2,
  applies: (doc) => doc.positions.some((item) => item.kind !== "none"),
  mount,
};

const SHOWN = 64;
const KINDS: Record<Positions["kind"], string> = {
  none: "No position encoding.",
  sinusoidal: "Sinusoidal: every position has a vector of sines and cosines, from short to long wavelengths.",
  learned: "Learned: every position has a trained vector.",
  rotary:
    "Rotary: queries and keys are turned by an angle that grows with the position, so that a weight depends on the distance.",
  alibi: "ALiBi: each head subtracts slope × distance from its scores.",
  relative: "Relative: each head adds a trained bias for each distance.",
};

interface Figure {
  title: string;
  width: number;
  height: number;
  draw(renderer: Renderer, theme: Theme): void;
}

function mount({ doc, store, blobs }: Context): Mounted {
  const fact = h("p", { class: "fact" });
  const controls = h("div", { class: "controls" });
  const figures = h("div", { class: "columns figures" });
  const print = h("p", { class: "small" });
  const element = h(
    "section",
    { class: "positions", "aria-label": "Positions" },
    h("h2", {}, "How the model knows the order"),
    fact,
    controls,
    figures,
    print,
  );
  const stacks = doc.positions.map((item): [string, string] => [
    item.stack,
    item.stack === "encoder" ? "Encoder" : "Decoder",
  ]);

  function update(): void {
    const item = doc.positions.find((entry) => entry.stack === store.state.stack) ?? doc.positions[0];
    fact.textContent = KINDS[item.kind];
    fill(controls, stacks.length > 1 ? choice("Stack", stacks, item.stack, (stack) => store.set({ stack })) : null);
    const limit =
      item.max_positions === null
        ? "No length limit."
        : `At most ${item.max_positions} tokens; this text has ${item.length}.`;
    print.textContent = `Blue is above zero, purple below. ${item.kind === "none" ? "" : limit}`;
    const room = element.clientWidth;
    const width = room > 1000 ? Math.min(440, (room - 84) / 3) : Math.min(440, Math.max(240, room - 12));
    const drawn = makeFigures(item, width, (name) => blobs.read(name));
    fill(figures, ...drawn.map((figure) => show(figure, width)));
  }

  function show(figure: Figure, width: number): HTMLElement {
    const stage = new Stage(figure.title, { role: "img", tabindex: null });
    stage.draw(figure.width, figure.height, (renderer) => figure.draw(renderer, readTheme()));
    stage.overlay.remove();
    const element = h("div", {}, h("h3", {}, figure.title), stage.element);
    element.style.width = `${width}px`; // a long title wraps, so that the figures stay in one row
    return element;
  }

  return { element, update };
}

function makeFigures(item: Positions, width: number, read: (name: string) => Decoded | undefined): Figure[] {
  if (item.kind === "sinusoidal") {
    const table = sinusoidal(item, SHOWN);
    return [
      gridFigure("Vectors: rows are positions, columns dimensions", "dimension", table, width, item.length),
      gridFigure("PE·PEᵀ: how alike two positions are", "position", dotProducts(table), width, item.length),
      curveFigure(
        "Wavelength of each pair of dimensions",
        ["pair of dimensions", "tokens (log scale)"],
        [{ label: "", points: wavelengths(item.base!, item.width!) }],
        width,
        true,
      ),
    ];
  }
  if (item.kind === "learned" && item.vectors) {
    const decoded = read(item.vectors);
    if (!decoded) return [];
    const [rows, columns] = decoded.shape;
    const table = { rows, columns, values: Float64Array.from(decoded.codes, (code) => code * decoded.scale) };
    return [
      gridFigure("Vectors: rows are positions, columns dimensions", "dimension", table, width, item.length),
      gridFigure("PE·PEᵀ: how alike two positions are", "position", dotProducts(table), width, item.length),
    ];
  }
  if (item.kind === "rotary")
    return [
      gridFigure(
        "Cosine of the angle: rows are positions, columns pairs of dimensions",
        "pair of dimensions",
        angles(item, SHOWN),
        width,
        item.length,
      ),
      curveFigure(
        "Mean of cos(angle) by distance: turned vectors grow apart",
        ["distance in tokens", "cosine"],
        [{ label: "", points: relativeCurves(item, SHOWN) }],
        width,
      ),
      curveFigure(
        "Wavelength of each pair of dimensions",
        ["pair of dimensions", "tokens (log scale)"],
        [{ label: "", points: wavelengths(item.base!, item.key_dim!) }],
        width,
        true,
      ),
    ];
  if (item.kind === "alibi" && item.slopes) {
    const distances = Array.from({ length: SHOWN }, (_, distance) => distance);
    const curves = item.slopes.map((slope, head) => ({
      label: `head ${head + 1}`,
      points: distances.map((distance): [number, number] => [distance, -slope * distance]),
    }));
    return [curveFigure("Bias by distance, one line per head", ["distance in tokens", "bias"], curves, width)];
  }
  if (item.kind === "relative" && item.curves && item.offsets) {
    const decoded = read(item.curves);
    if (!decoded) return [];
    const [tables, count, offsets] = decoded.shape;
    return Array.from({ length: tables }, (_, table) => {
      const curves = Array.from({ length: count }, (_, head) => ({
        label: `head ${head + 1}`,
        points: item.offsets!.map((offset, i): [number, number] => [
          offset,
          decoded.codes[(table * count + head) * offsets + i],
        ]),
      }));
      const title =
        tables > 1
          ? `Bias by offset (column − row), layer ${table + 1}`
          : "Bias by offset (column − row), one line per head";
      return curveFigure(title, ["offset in tokens", "bias"], curves, width);
    });
  }
  return [];
}

/** Signed numbers as colors: the page at zero. */
function gridFigure(title: string, columns: string, grid: Grid, width: number, length: number): Figure {
  const cell = Math.max(1, Math.min(14, (width - 40) / Math.max(grid.columns, grid.rows)));
  // A few columns are stretched, so that the names of both axes have room above them.
  const across = Math.max(grid.columns * cell, Math.min(240, width - 40));
  const [left, top] = [32, 22];
  return {
    title,
    width: left + across + 4,
    height: top + grid.rows * cell + 18,
    draw(renderer, theme) {
      const largest = grid.values.reduce((best, value) => Math.max(best, Math.abs(value)), 1e-12);
      const data = new Uint32Array(grid.values.length);
      grid.values.forEach(
        (value, i) => (data[i] = mixPixel(theme.page, value < 0 ? theme.minus : theme.hue, Math.abs(value) / largest)),
      );
      renderer.pixels(left, top, across, grid.rows * cell, {
        width: grid.columns,
        height: grid.rows,
        data,
      });
      renderer.rect(left - 0.5, top - 0.5, across + 1, grid.rows * cell + 1, { stroke: theme.rule });
      const axis = { fill: theme.muted, size: 11 };
      renderer.text(0, 9, "position ↓", axis);
      renderer.text(left + across, 9, `${columns} →`, { ...axis, anchor: "end" });
      for (let row = 0; row < grid.rows; row += 16)
        renderer.text(left - 6, top + (row + 0.5) * cell, String(row), { fill: theme.muted, size: 11, anchor: "end" });
      if (length < grid.rows) {
        const y = top + length * cell;
        renderer.path(`M${left} ${y}h${across}`, { stroke: theme.ink, width: 1, dash: "4 3" });
        renderer.text(left, top + grid.rows * cell + 11, `dashed: the last of ${length} tokens`, {
          fill: theme.muted,
          size: 11,
        });
      }
    },
  };
}

function curveFigure(
  title: string,
  [xName, yName]: [string, string],
  curves: Curve[],
  width: number,
  isLog = false,
): Figure {
  const [left, right, top, bottom, height] = [52, 58, 24, 40, 256];
  const value = (y: number) => (isLog ? Math.log10(y) : y);
  const xs = curves.flatMap((curve) => curve.points.map(([x]) => x));
  const ys = curves.flatMap((curve) => curve.points.map(([, y]) => value(y)));
  const [x0, x1, y0, y1] = [Math.min(...xs), Math.max(...xs), Math.min(...ys, isLog ? Infinity : 0), Math.max(...ys)];
  const px = (x: number) => left + ((x - x0) / (x1 - x0 || 1)) * (width - left - right);
  const py = (y: number) => top + (1 - (value(y) - y0) / (y1 - y0 || 1)) * (height - top - bottom);
  return {
    title,
    width,
    height,
    draw(renderer, theme) {
      const small = { fill: theme.muted, size: 11 };
      renderer.text(4, 8, yName, small);
      renderer.text(width - right, height - 8, `${xName} →`, { ...small, anchor: "end" });
      for (let i = 0; i <= 4; i++) {
        const level = y0 + ((y1 - y0) * i) / 4;
        const y = top + (1 - i / 4) * (height - top - bottom);
        renderer.path(`M${left} ${y}H${width - right}`, { stroke: theme.rule });
        const text = isLog
          ? Math.round(10 ** level).toLocaleString("en")
          : Number(level.toPrecision(2)).toString().replace("-", "−");
        renderer.text(left - 6, y, text, { ...small, anchor: "end" });
        const x = x0 + ((x1 - x0) * i) / 4;
        renderer.text(px(x), height - 26, String(Math.round(x)).replace("-", "−"), { ...small, anchor: "middle" });
      }
      let lowest = -Infinity;
      const labeled = curves
        .map((curve) => ({ curve, end: py(curve.points[curve.points.length - 1][1]) }))
        .sort((a, b) => a.end - b.end);
      labeled.forEach(({ curve, end }, i) => {
        const data = curve.points
          .map(([x, y], j) => `${j ? "L" : "M"}${px(x).toFixed(1)} ${py(y).toFixed(1)}`)
          .join("");
        renderer.path(data, { stroke: theme.hue, width: 2, opacity: 0.45 + (0.55 * (i + 1)) / curves.length });
        if (!curve.label || end - lowest < 12) return; // labels that would overlap are left out
        lowest = end;
        renderer.text(width - right + 6, end, curve.label, small);
      });
    },
  };
}
