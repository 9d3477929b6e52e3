// An edit box for a better translation of a sentence. The server stores it, and `regard tune --suggestions` learns it.

import { fill, h } from "../dom.ts";
import { report } from "../report.ts";
import { request, type Model } from "./api.ts";

/** A sentence of the source and its translation. */
export interface Pair {
  source: string;
  text: string;
}

interface Box {
  /** Opens the box; hidden until the server says that it stores corrections. */
  button: HTMLButtonElement;
  form: HTMLFormElement;
}

/** Return the box; `find` gives the sentence to correct, `keep` gets the correction that was stored. */
export function makeCorrectionBox(
  model: Model,
  find: () => Pair | undefined,
  target: () => string,
  keep: (source: string, text: string) => void,
): Box {
  const button = h("button", { type: "button", hidden: true, onclick: open }, "Correct");
  const form = h("form", { class: "correction", hidden: true, onsubmit: (event) => void send(event) });
  const status = h("p", { class: "small", role: "status" });
  const text = h("textarea", { id: "correction", rows: "3", dir: "auto" });
  let source = "";
  void request("frontend/settings").then(async (response) => {
    button.hidden = !(await response.json()).suggestions;
  });

  function open(): void {
    const pair = find();
    if (!pair) return;
    source = pair.source;
    text.value = pair.text;
    report(status, "");
    const send = h("button", { class: "primary" }, "Send");
    const cancel = h("button", { type: "button", onclick: close }, "Cancel");
    const label = h("label", { for: "correction" }, `A better translation of “${source}”`);
    fill(form, label, text, h("div", { class: "row" }, status, cancel, send));
    form.hidden = false;
    text.focus();
  }

  function close(): void {
    form.hidden = true;
    button.focus();
  }

  async function send(event: Event): Promise<void> {
    event.preventDefault();
    const correction = text.value.trim();
    const body = { q: source, s: correction, source: model.languages[0] ?? "auto", target: target(), model: model.id };
    report(status, "Sending …");
    try {
      await request("suggest", body);
      close();
      keep(source, correction);
    } catch (error) {
      report(status, (error as Error).message, true);
    }
  }

  form.addEventListener("keydown", (event) => event.key === "Escape" && close());
  return { button, form };
}
