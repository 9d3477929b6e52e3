// Attention without parameters, Y = softmax(X X^T) X, over points of the plane that the reader drags.

import { fill, h, setAttributes } from "../../dom.ts";
import type { Form } from "../form.ts";
import { drawMatrix, type Matrix, multiply, scale, softmaxRows, transpose } from "../matrix.ts";
import { svg } from "../svg.ts";

interface Params {
  points: number[][];
  most: number; // largest coordinate
}

/** Return the weights softmax(X X^T). */
export const weigh = (x: Matrix): number[][] => softmaxRows(multiply(x, transpose(x)));

/** Return softmax(X X^T) X. */
export const attend = (x: Matrix): number[][] => multiply(weigh(x), x);

export function pointsControl(form: Form, { points, most }: Params): void {
  const names = points.map((_, i) => `x${i + 1}`);
  points.forEach((point, i) =>
    ["x", "y"].forEach((axis, j) =>
      form.slider(`${axis}_${i}`, `${names[i]}, ${axis}`, { min: -most, max: most, step: 0.05, value: point[j]! }),
    ),
  );
  const size = 1.2 * most;
  const polygon = svg("polygon", { fill: "var(--raised)", stroke: "var(--rule)", "stroke-width": size / 150 });
  const draw = (radius: number, attributes: Record<string, string>) =>
    points.map(() => svg("circle", { r: radius * size, ...attributes }));
  const inputs = draw(0.05, { fill: "var(--accent)", style: "cursor: grab; touch-action: none" });
  const outputs = draw(0.035, { fill: "none", stroke: "var(--hue)", "stroke-width": String(size / 60) });
  const labels = points.map((_, i) => svg("text", { "font-size": 0.1 * size, fill: "var(--ink)" }, names[i]!));
  const axes = svg("path", {
    d: `M${-size} 0H${size}M0 ${-size}V${size}`,
    stroke: "var(--rule)",
    "stroke-width": size / 200,
  });
  const picture = svg(
    "svg",
    {
      viewBox: `${-size} ${-size} ${2 * size} ${2 * size}`,
      style: "width: min(100%, 360px); display: block",
      role: "img",
      "aria-label": "Orange: the points x. Blue circles: the outputs y, inside the triangle of the points.",
    },
    ...[axes, polygon, ...outputs, ...inputs, ...labels],
  );
  inputs.forEach((circle, i) => {
    circle.addEventListener("pointerdown", (event) => circle.setPointerCapture(event.pointerId));
    circle.addEventListener("pointermove", (event) => {
      if (!circle.hasPointerCapture(event.pointerId)) return;
      const box = picture.getBoundingClientRect();
      const place = (share: number) => (2 * share - 1) * size;
      setSlider(form, `x_${i}`, place((event.clientX - box.left) / box.width));
      setSlider(form, `y_${i}`, -place((event.clientY - box.top) / box.height));
    });
  });
  const tables = h("div");
  fill(
    form.picture,
    h("div", { style: "display: flex; flex-wrap: wrap; gap: 8px 24px; align-items: center" }, picture, tables),
  );
  form.run(() => {
    const x = points.map((_, i) => [form.number(`x_${i}`), form.number(`y_${i}`)]);
    const [weights, y, doubled] = [weigh(x), attend(x), attend(scale(x, 2))];
    const put = (circle: SVGElement, [a, b]: number[]) => setAttributes(circle, { cx: a, cy: -b! });
    x.forEach((point, i) => {
      put(inputs[i]!, point);
      put(outputs[i]!, y[i]!);
      setAttributes(labels[i]!, { x: point[0]! + 0.07 * size, y: -point[1]! - 0.05 * size });
    });
    setAttributes(polygon, { points: x.map(([a, b]) => `${a},${-b!}`).join(" ") });
    fill(
      tables,
      drawMatrix(
        "Weights: row n says what yₙ takes from each point",
        weights,
        names.map((name) => name.replace("x", "y")),
        names,
      ),
    );
    y.forEach(([a, b], i) => {
      form.show(`out_x_${i}`, `y${i + 1}, x`, a!);
      form.show(`out_y_${i}`, `y${i + 1}, y`, b!);
    });
    form.show("sum", "Largest sum of a row of weights", Math.max(...weights.map((row) => row.reduce((a, b) => a + b))));
    form.show(
      "nonlinear",
      "Largest element of f(2X) - 2 f(X); 0 if linear",
      Math.max(...doubled.flat().map((value, i) => Math.abs(value - 2 * y.flat()[i]!))),
    );
  });
}

/** Move a slider as the reader would, so that its label follows. */
function setSlider(form: Form, name: string, value: number): void {
  const input = form.picture.parentElement!.querySelector<HTMLInputElement>(`[name="${name}"]`)!;
  input.value = String(value);
  input.dispatchEvent(new Event("input"));
}
