// Positions by a recursion: P + c, exp(c P) or P^(c t). Are they unique, and are they bounded?

import { fill } from "../../dom.ts";
import type { Form } from "../form.ts";
import { svg } from "../svg.ts";

interface Params {
  start: number;
  c: number;
  steps: number;
}

export const RULES: Record<string, (p: number, c: number, t: number) => number> = {
  add: (p, c) => p + c,
  exp: (p, c) => Math.exp(c * p),
  power: (p, c, t) => p ** (c * t),
};

/** Return P(1) to P(steps + 1). */
export function recur(rule: string, start: number, c: number, steps: number): number[] {
  const positions = [start];
  for (let t = 1; t <= steps; t++) positions.push(RULES[rule]!(positions[t - 1]!, c, t));
  return positions;
}

export function recursionControl(form: Form, { start, c, steps }: Params): void {
  const rules: [string, string][] = [
    ["add", "P(t) + c"],
    ["exp", "exp(c P(t))"],
    ["power", "P(t)^(c t)"],
  ];
  form.choice("rule", "P(t + 1)", rules, "exp");
  form.slider("c", "c", { min: 0.01, max: 1, step: 0.01, value: c });
  form.slider("start", "P(1)", { min: 0.5, max: 3, step: 0.1, value: start });
  form.run(() => {
    const positions = recur(form.string("rule"), form.number("start"), form.number("c"), steps);
    const gaps = positions.slice(1).map((position, i) => Math.abs(position - positions[i]!));
    const gap = gaps.at(-1)!;
    const distinct = gaps.filter((gap) => gap > 1e-6 && gap < Infinity).length;
    fill(form.picture, draw(positions));
    form.show("last", `P(${steps + 1})`, positions[steps]!);
    form.show("gap", "Last two positions differ by", gap, Number.isNaN(gap) ? "both infinite" : undefined);
    form.show("distinct", `Steps of more than 0.000001, of ${steps}`, distinct);
  });
}

const WIDTH = 600;
const HEIGHT = 160;
const TOP = 5; // larger positions are drawn at the upper edge

function draw(positions: number[]): SVGSVGElement {
  const dots = positions.map((value, i) => {
    const x = 6 + ((WIDTH - 12) * i) / (positions.length - 1);
    const y = HEIGHT - 6 - (HEIGHT - 12) * Math.min(1, value / TOP);
    const color = value > TOP ? "var(--accent)" : "var(--hue)";
    return svg("circle", { cx: x, cy: y, r: 3, style: `fill: ${color}` });
  });
  const label = `P(t) for t = 1 to ${positions.length}, from 0 to ${TOP}; larger values at the upper edge`;
  const size = { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: "100%" };
  const axis = svg("path", { d: `M0 ${HEIGHT - 6}H${WIDTH}`, style: "stroke: var(--rule)" });
  return svg("svg", { ...size, role: "img", "aria-label": label }, axis, ...dots);
}
