// Switches that choose a row of measured numbers.

import { drawBars } from "../bars.ts";
import type { Form } from "../form.ts";

interface Params {
  inputs: { name: string; label: string; options: [string, string][] }[];
  outputs: { name: string; label: string }[];
  rows: Record<string, number[]>; // by the chosen options, joined by commas
  bars?: boolean; // the outputs are shares: draw them
}

export function switchesControl(form: Form, { inputs, outputs, rows, bars }: Params): void {
  for (const { name, label, options } of inputs) form.choice(name, label, options, options[0]![0]);
  form.run(() => {
    const row = rows[inputs.map(({ name }) => form.string(name)).join(",")]!;
    if (bars)
      drawBars(
        form.picture,
        outputs.map(({ label }) => label),
        row,
      );
    outputs.forEach(({ name, label }, i) => form.show(name, label, row[i]!));
  });
}
