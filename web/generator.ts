// The view of a language model, in the browser (run/) and of a server (serve/): a prompt, and its continuation as it grows.

import { fill, h } from "./dom.ts";
import { report } from "./report.ts";

export interface GenerationRequest {
  prompt: string;
  maxTokens: number;
  temperature: number;
  top_p: number;
}

export interface Generation {
  /** Generate a text; call `part` with each piece of it. Ends after `stop`, too. */
  generate(request: GenerationRequest, part: (text: string) => void): Promise<void>;
  stop(): void;
}

/** Return the elements of the view. */
export function makeGenerator({ generate, stop }: Generation): Node[] {
  const input = h("textarea", { "aria-label": "Prompt", placeholder: "Begin a text", spellcheck: "false" });
  const output = h("div", { class: "output", role: "group", tabindex: "0", "aria-label": "Text" });
  const temperature = h("input", { type: "range", min: "0", max: "1.5", step: "0.1", value: "0.8" });
  const shown = h("output", {}, "0.8");
  temperature.addEventListener("input", () => (shown.textContent = Number(temperature.value).toFixed(1)));
  const speed = h("p", { class: "small", role: "status" });
  const startButton = h("button", { type: "button", class: "primary", onclick: () => void run() }, "Continue");
  const stopButton = h("button", { type: "button", disabled: true, onclick: stop }, "Stop");

  async function run(): Promise<void> {
    const prompt = input.value;
    const continuation = h("span", { class: "new" });
    fill(output, prompt, continuation);
    startButton.disabled = !(stopButton.disabled = false);
    let parts = 0;
    const start = performance.now();
    try {
      const request = { prompt, maxTokens: 200, temperature: Number(temperature.value), top_p: 0.95 };
      await generate(request, (text) => {
        parts++;
        continuation.append(text);
      });
      report(speed, `${parts} tokens in ${((performance.now() - start) / 1000).toFixed(2)} s`);
    } catch (error) {
      report(speed, (error as Error).message, true);
    }
    startButton.disabled = !(stopButton.disabled = true);
  }

  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !startButton.disabled) void run();
  });
  return [
    h("section", {}, h("h2", {}, "Prompt"), input),
    h(
      "div",
      { class: "row" },
      startButton,
      stopButton,
      h("label", { class: "small" }, "Temperature ", temperature, " ", shown),
    ),
    h("section", {}, h("h2", {}, "Text"), output),
    speed,
  ];
}
