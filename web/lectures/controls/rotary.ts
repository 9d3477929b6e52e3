// A query and a key that turn with their positions: their product depends on the distance of the positions only.

import { fill } from "../../dom.ts";
import type { Form } from "../form.ts";
import { svg } from "../svg.ts";

type Vector = [number, number];

interface Params {
  query: Vector;
  key: Vector;
}

/** Turn a pair of dimensions by an angle of 1 per position, as the first pair of RoPE. */
export const rotate = ([x, y]: Vector, position: number): Vector => [
  x * Math.cos(position) - y * Math.sin(position),
  y * Math.cos(position) + x * Math.sin(position),
];

export function rotaryControl(form: Form, { query, key }: Params): void {
  form.slider("m", "Position m of the query", { min: 0, max: 30, step: 1, value: 5 });
  form.slider("n", "Position n of the key", { min: 0, max: 30, step: 1, value: 3 });
  form.slider("shift", "Shift of both", { min: 0, max: 1000, step: 1, value: 0 });
  form.run(() => {
    const [m, n, shift] = [form.number("m"), form.number("n"), form.number("shift")];
    const q = rotate(query, m + shift);
    const k = rotate(key, n + shift);
    fill(form.picture, draw(q, k));
    form.show("product", "q · k", q[0] * k[0] + q[1] * k[1]);
    form.show("distance", "Distance m − n", m - n);
    form.show("q_0", "q, first element", q[0]);
    form.show("k_0", "k, first element", k[0]);
  });
}

function draw(q: Vector, k: Vector): SVGSVGElement {
  const arrow = ([x, y]: Vector, name: string, color: string) =>
    svg(
      "g",
      { style: `stroke: var(${color}); fill: var(${color})` },
      svg("path", { d: `M0 0L${80 * x} ${-80 * y}`, "stroke-width": 3 }),
      svg("circle", { cx: 80 * x, cy: -80 * y, r: 5 }),
      svg("text", { x: 92 * x - 4, y: -92 * y + 4, "font-size": 14, "stroke-width": 0 }, name),
    );
  const size = { viewBox: "-130 -115 260 230", width: "100%", style: "max-height: 260px" };
  const circle = svg("circle", { r: 80, style: "fill: none; stroke: var(--rule)" });
  return svg(
    "svg",
    { ...size, role: "img", "aria-label": "The turned query q and key k as arrows" },
    circle,
    arrow(q, "q", "--accent"),
    arrow(k, "k", "--hue"),
  );
}
