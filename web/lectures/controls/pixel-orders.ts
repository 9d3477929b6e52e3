// Bits of each pixel of a 2 x 2 image given the pixels before it, in any order.

import { drawBars } from "../bars.ts";
import type { Form } from "../form.ts";

interface Params {
  counts: number[]; // of the 16 images; bit 3 of the number is pixel 1
  orders: string[];
}

/** Return the bits of each pixel given those before it. */
export function measureOrder(counts: readonly number[], order: readonly number[]): number[] {
  const sum = counts.reduce((total, count) => total + count, 0);
  const entropies = [0, 1, 2, 3, 4].map((known) => {
    const groups = new Map<number, number>();
    const mask = order.slice(0, known).reduce((bits, pixel) => bits | (8 >> (pixel - 1)), 0);
    counts.forEach((count, image) => groups.set(image & mask, (groups.get(image & mask) ?? 0) + count));
    return [...groups.values()].reduce(
      (bits, count) => (count ? bits - (count / sum) * Math.log2(count / sum) : bits),
      0,
    );
  });
  return entropies.slice(1).map((entropy, i) => entropy - entropies[i]!);
}

export function pixelOrdersControl(form: Form, { counts, orders }: Params): void {
  form.choice(
    "order",
    "Order of the pixels",
    orders.map((order) => [order, [...order].join(" ")]),
    orders[0]!,
  );
  form.run(() => {
    const order = [...form.string("order")].map(Number);
    const bits = measureOrder(counts, order);
    const name = (i: number) => `pixel ${order[i]}${i ? `, given ${order.slice(0, i).join(" ")}` : ""}`;
    drawBars(
      form.picture,
      bits.map((_, i) => name(i)),
      bits,
    );
    bits.forEach((value, i) =>
      form.show(`bits_${i}`, `Bits of the ${["first", "second", "third", "fourth"][i]}`, value),
    );
    form.show(
      "sum",
      "Sum: bits of the image",
      bits.reduce((total, value) => total + value, 0),
    );
  });
}
