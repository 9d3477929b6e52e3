// The dot product of two sinusoidal positions by their distance.

import { fill } from "../../dom.ts";
import type { Form } from "../form.ts";
import { svg } from "../svg.ts";

const [WIDTH, HEIGHT, MOST] = [640, 180, 50];

/** Return PE(p).PE(p + distance) in d dimensions: the sum of the cosines of the angles between them. */
export function product(d: number, distance: number): number {
  let sum = 0;
  for (let i = 0; i < d; i += 2) sum += Math.cos(distance / 10000 ** (i / d));
  return sum;
}

export function positionProductsControl(form: Form, { widths, d }: { widths: number[]; d: number }): void {
  form.choice(
    "d",
    "d: dimensions",
    widths.map((width) => [String(width), String(width)]),
    String(d),
  );
  form.slider("distance", "Distance of two positions", { min: 0, max: MOST, step: 1, value: 3 });
  form.run(() => {
    const [width, distance] = [form.number("d"), form.number("distance")];
    const products = Array.from({ length: MOST + 1 }, (_, i) => product(width, i));
    const rise = products.findIndex((value, i) => i > 0 && value > products[i - 1]!);
    const [x, y] = [
      (i: number) => 10 + (i * (WIDTH - 20)) / MOST,
      (value: number) => HEIGHT - 30 - ((HEIGHT - 50) * 2 * value) / width,
    ];
    const points = products.map((value, i) => `${x(i).toFixed(1)},${y(value).toFixed(1)}`).join(" ");
    const label = `Dot products for distances 0 to ${MOST}`;
    fill(
      form.picture,
      svg(
        "svg",
        { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "products", role: "img", "aria-label": label },
        svg("line", { x1: 0, x2: WIDTH, y1: y(0), y2: y(0) }),
        svg("polyline", { points }),
        svg("circle", { cx: x(distance), cy: y(products[distance]!), r: 6 }),
      ),
    );
    form.show("product", "PE(p)·PE(p + distance)", products[distance]!);
    form.show("share", "Relative to distance 0", products[distance]! / products[0]!);
    form.show("rise", "First distance with a larger product than the one before", rise);
  });
}
