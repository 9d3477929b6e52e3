// Sinusoidal positions as an image, one row per position, and the dot product of two of them.

import { fill, h } from "../../dom.ts";
import type { Form } from "../form.ts";
import { svg } from "../svg.ts";

interface Params {
  positions: number;
  width: number;
  base: number;
}

/** Return the vector of a position: sine and cosine of each frequency side by side. */
export function encodePosition(position: number, width: number, base: number): number[] {
  return Array.from({ length: width }, (_, i) => {
    const phase = position / base ** ((i - (i % 2)) / width);
    return i % 2 ? Math.cos(phase) : Math.sin(phase);
  });
}

export const dot = (a: readonly number[], b: readonly number[]): number =>
  a.reduce((total, value, i) => total + value * b[i]!, 0);

export function wavesControl(form: Form, { positions, width, base }: Params): void {
  const rows = Array.from({ length: positions }, (_, position) => encodePosition(position, width, base));
  const canvas = h("canvas", { class: "waves", width, height: positions, role: "img" });
  canvas.setAttribute("aria-label", `Positions 0 to ${positions - 1} as rows, ${width} dimensions as columns`);
  const curve = h("div");
  fill(form.picture, canvas, h("p", { class: "small" }, "Dot product with all positions:"), curve);
  form.slider("position", "Position (row)", { min: 0, max: positions - 1, step: 1, value: 20 });
  form.slider("other", "Other position", { min: 0, max: positions - 1, step: 1, value: 21 });
  form.slider("dimension", "Dimension (column)", { min: 0, max: width - 1, step: 1, value: 0 });
  form.run(() => {
    const [p, q, i] = [form.number("position"), form.number("other"), form.number("dimension")];
    draw(canvas, rows, p, i);
    const products = rows.map((row) => dot(rows[p]!, row));
    const [least, most] = [Math.min(...products), Math.max(...products)];
    const points = products.map((value, x) => `${x},${(20 * (most - value)) / (most - least)}`);
    const mark = svg("line", { x1: q, x2: q, y1: 0, y2: 20, style: "stroke: var(--accent)" });
    const line = svg("polyline", {
      points: points.join(" "),
      style: "stroke: var(--hue)",
    });
    const label = `Dot product of position ${p} with each position, from ${least.toFixed(1)} to ${most.toFixed(1)}`;
    const view = `-1 -1 ${positions + 1} 22`;
    fill(
      curve,
      svg(
        "svg",
        { viewBox: view, role: "img", "aria-label": label, class: "curve", preserveAspectRatio: "none" },
        mark,
        line,
      ),
    );
    form.show("value", `Position ${p}, dimension ${i}`, rows[p]![i]!);
    form.show("wavelength", "Its wavelength in tokens", 2 * Math.PI * base ** ((i - (i % 2)) / width));
    form.show("dot", `Dot product of ${p} and ${q}`, products[q]!);
  });
}

/** Draw the rows, blue for positive and purple for negative values, with lines through a position and a dimension. */
function draw(canvas: HTMLCanvasElement, rows: number[][], position: number, dimension: number): void {
  const context = canvas.getContext("2d")!;
  const image = context.createImageData(canvas.width, canvas.height);
  rows.flat().forEach((value, i) => {
    image.data.set(value > 0 ? [33, 113, 181] : [190, 70, 200], 4 * i);
    image.data[4 * i + 3] = Math.round(255 * Math.abs(value));
  });
  context.putImageData(image, 0, 0);
  context.fillStyle = "rgba(230, 100, 20, 0.6)";
  context.fillRect(0, position, canvas.width, 1);
  context.fillRect(dimension, 0, 1, canvas.height);
}
