// Powers of a 2 x 2 matrix M whose eigenvalues have a size and an angle: the positions M^t P(0).

import { fill } from "../../dom.ts";
import type { Form } from "../form.ts";
import { svg } from "../svg.ts";

interface Params {
  size: number;
  angle: number;
  steps: number;
}

/** Return M^t (1, 0): M turns by an angle and stretches by a size. */
export const turn = (size: number, angle: number, t: number): [number, number] => [
  size ** t * Math.cos(angle * t),
  size ** t * Math.sin(angle * t),
];

export function eigenvalueControl(form: Form, { size, angle, steps }: Params): void {
  form.slider("size", "Size of the eigenvalues", { min: 0.98, max: 1.02, step: 0.001, value: size });
  form.slider("angle", "Angle of the eigenvalues", { min: 0, max: 3.14, step: 0.01, value: angle });
  form.slider("t", "Position t", { min: 0, max: steps, step: 1, value: 100 });
  form.run(() => {
    const [r, a, t] = [form.number("size"), form.number("angle"), form.number("t")];
    const points = Array.from({ length: t + 1 }, (_, i) => turn(r, a, i));
    fill(form.picture, draw(points));
    const [x, y] = turn(r, a, t);
    form.show("x", "First element of P(t)", x);
    form.show("y", "Second element", y);
    form.show("length", "Length of P(t)", r ** t);
    const distance = Math.min(...points.slice(1).map(([u, v]) => Math.hypot(u - 1, v)));
    form.show("return", "Smallest distance of a later position to P(0)", distance);
  });
}

function draw(points: [number, number][]): SVGSVGElement {
  const dots = points.map(([x, y], i) => {
    const style = `fill: var(${i === points.length - 1 ? "--accent" : "--hue"}); opacity: ${i === points.length - 1 ? 1 : 0.5}`;
    return svg("circle", { cx: 100 * x, cy: -100 * y, r: i === points.length - 1 ? 6 : 3, style });
  });
  const circle = svg("circle", { r: 100, style: "fill: none; stroke: var(--rule)" });
  const size = { viewBox: "-170 -125 340 250", width: "100%", style: "max-height: 300px" };
  return svg("svg", { ...size, role: "img", "aria-label": "Positions 0 to t in the plane, and the unit circle" }, circle, ...dots); // prettier-ignore
}
