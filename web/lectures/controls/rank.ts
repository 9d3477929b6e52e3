// Parameters that LoRA trains: for each matrix of in x out, r (in + out) instead of in out.

import { drawBars } from "../bars.ts";
import type { Form } from "../form.ts";

interface Params {
  /** The matrices of a model: inputs, outputs, how many. */
  matrices: { attention: [number, number, number][]; all: [number, number, number][] };
  parameters: number; // of the model
}

export function rankControl(form: Form, { matrices, parameters }: Params): void {
  form.slider("rank", "Rank r", { min: 1, max: 256, step: 1, value: 8 });
  form.choice(
    "modules",
    "Adapters",
    [
      ["attention", "of attention only"],
      ["all", "of attention and feed-forward"],
    ],
    "attention",
  );
  form.run(() => {
    const chosen = matrices[form.string("modules") as "attention" | "all"];
    const rank = form.number("rank");
    const trained = chosen.reduce((sum, [inputs, outputs, count]) => sum + rank * (inputs + outputs) * count, 0);
    drawBars(
      form.picture,
      ["trained", "frozen"],
      [trained / (trained + parameters), parameters / (trained + parameters)],
    );
    form.show("trained", "Trained parameters", trained, trained.toLocaleString("en"));
    form.show(
      "share",
      "Of the model's parameters",
      trained / parameters,
      `${((100 * trained) / parameters).toFixed(2)} %`,
    );
  });
}
