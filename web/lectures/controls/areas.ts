// The attention of an encoder-decoder as areas: N x N of the encoder, M x M of the decoder, M x N between them.

import { fill } from "../../dom.ts";
import type { Form } from "../form.ts";
import { svg } from "../svg.ts";

interface Params {
  source: number;
  target: number;
  flops: number; // of one query-key pair, in all layers
}

/** Return the query-key pairs of the three attentions. */
export function countPairs(source: number, target: number): [number, number, number] {
  return [source * source, target * target, source * target];
}

export function areasControl(form: Form, { source, target, flops }: Params): void {
  form.slider("source", "N, tokens of the passage", { min: 10, max: 4000, step: 10, value: source });
  form.slider("target", "M, tokens of the summary", { min: 10, max: 4000, step: 10, value: target });
  form.run(() => {
    const [n, m] = [form.number("source"), form.number("target")];
    const pairs = countPairs(n, m);
    const total = pairs[0] + pairs[1] + pairs[2];
    const size = n + m;
    const areas: [string, string, number, number, number, number][] = [
      ["N²", "--hue", 0, 0, n, n],
      ["M²", "--accent", n, n, m, m],
      ["N M", "--minus", 0, n, n, m],
    ];
    const drawn = areas.flatMap(([label, color, x, y, width, height]) => {
      const area = svg("rect", { x, y, width, height, style: `fill: var(${color}); stroke: var(--page)` });
      if (Math.min(width, height) < size / 12) return [area];
      const place = { x: x + width / 2, y: y + height / 2, "text-anchor": "middle", "font-size": size / 20 };
      return [area, svg("text", { ...place, "dominant-baseline": "central", style: "fill: var(--page)" }, label)];
    });
    const label = `Square of N + M tokens: the encoder's N², the decoder's M² and N M between them are ${total} pairs`;
    fill(
      form.picture,
      svg("svg", { viewBox: `0 0 ${size} ${size}`, class: "areas", role: "img", "aria-label": label }, ...drawn),
    );
    const names = ["source_source", "target_target", "target_source"];
    const labels = ["Encoder self-attention, N²", "Decoder self-attention, M²", "Cross-attention, N M"];
    pairs.forEach((count, i) => form.show(names[i]!, `${labels[i]}: GFLOP`, (count * flops) / 1e9));
    form.show("cross_share", "Share of cross-attention", pairs[2] / total, `${((100 * pairs[2]) / total).toFixed(1)}%`);
  });
}
