// Perplexities of language models as one curve, with the bits and the equally likely words that they amount to.

import { fill } from "../../dom.ts";
import type { Form } from "../form.ts";
import { svg } from "../svg.ts";

interface Params {
  names: string[];
  perplexities: number[];
}

export function historyControl(form: Form, { names, perplexities }: Params): void {
  const last = names.length - 1;
  form.slider("model", "Model, oldest idea first", { min: 0, max: last, step: 1, value: last });
  const most = Math.max(...perplexities);
  const x = (i: number) => 12 + (76 * i) / last;
  const y = (value: number) => 42 - (32 * value) / most;
  form.run(() => {
    const chosen = form.number("model");
    const points = perplexities.map((value, i) => `${x(i)},${y(value)}`).join(" ");
    const marks = perplexities.flatMap((value, i) => [
      svg("circle", { cx: x(i), cy: y(value), r: i === chosen ? 1.6 : 0.9, style: "fill: var(--hue)" }),
      svg("text", { x: x(i), y: y(value) - 3 }, value.toFixed(1)),
      svg("text", { x: x(i), y: 47 }, names[i]!),
    ]);
    const line = svg("polyline", { points, style: "stroke: var(--hue)" });
    const label = `Perplexities: ${names.map((name, i) => `${name} ${perplexities[i]}`).join(", ")}`;
    fill(
      form.picture,
      svg("svg", { viewBox: "0 0 100 50", role: "img", "aria-label": label, class: "chart" }, line, ...marks),
    );
    const value = perplexities[chosen]!;
    form.show("perplexity", `${names[chosen]}: as unsure as among so many equally likely words`, value);
    form.show("bits", "Bits per word", Math.log2(value));
  });
}
