// The box of a live page: enter another text, and one to compare it with. A saved page has none.

import { fill, h, select } from "./dom.ts";
import type { LookDocument } from "./document.ts";
import type { Live } from "./live.ts";

/** Return the box; `show` gets the document of what was entered. */
export function makeBox(doc: LookDocument, live: Live, show: (doc: LookDocument) => void): HTMLElement {
  const session = doc.session!;
  const entry = {
    text: doc.text,
    model: session.model,
    // Left empty, the other model gets what is entered above.
    against: doc.against && doc.against.text !== doc.text ? doc.against.text : "",
    against_model: session.against_model,
  };
  const status = h("p", { class: "small", role: "status" });
  const problem = h("p", { class: "problem", role: "alert" });
  const hint = session.models.length > 1 ? "The same text, or another one" : "Another text to compare with";
  const first = makeRow("Text", "text", "model", "");
  const second = makeRow("Compare with", "against", "against_model", hint);
  second.hidden = !doc.against;
  const compare = h("button", { type: "button", onclick: toggle });
  nameToggle();
  const submit = h("button", { type: "submit", class: "main" }, "Look inside");
  const form = h(
    "form",
    { class: "box", "aria-label": "Enter another text", onsubmit: send },
    first,
    second,
    h("div", { class: "controls" }, submit, compare, status),
    problem,
  );
  let isBusy = false;

  function makeRow(label: string, key: "text" | "against", model: "model" | "against_model", hint: string) {
    const field = h("textarea", {
      rows: 1,
      "aria-label": label,
      placeholder: hint,
      dir: "auto",
      spellcheck: "false",
      oninput: () => {
        entry[key] = field.value;
        grow();
      },
      onkeydown: (event: KeyboardEvent) => {
        if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
        event.preventDefault();
        form.requestSubmit();
      },
    });
    field.value = entry[key];
    const grow = () => (field.rows = Math.min(6, Math.max(field.value.split("\n").length, field.value.length / 90)));
    grow();
    const names = session.models.map((name, i): [string, string] => [String(i), name]);
    const choose = (value: string) => (entry[model] = Number(value));
    const list = names.length > 1 ? select("Model", names, String(entry[model]), choose) : null;
    return h("div", { class: "row" }, field, list);
  }

  /** Open or close the second row; closed, it compares nothing. */
  function toggle(): void {
    second.hidden = !second.hidden;
    nameToggle();
    if (!second.hidden) second.querySelector("textarea")!.focus();
  }

  function nameToggle(): void {
    compare.textContent = second.hidden ? "Compare with …" : "Without comparison";
    compare.setAttribute("aria-expanded", String(!second.hidden));
  }

  async function send(event: Event): Promise<void> {
    event.preventDefault();
    if (isBusy) return;
    isBusy = true;
    submit.setAttribute("aria-disabled", "true");
    fill(problem);
    const begin = Date.now();
    const tell = () => {
      const seconds = Math.floor((Date.now() - begin) / 1000);
      status.textContent = seconds > 0 ? `Looking inside … ${seconds} s` : "Looking inside …";
    };
    tell();
    const timer = setInterval(tell, 1000);
    try {
      show(await live.look(second.hidden ? { ...entry, against: "", against_model: entry.model } : entry));
    } catch (error) {
      problem.textContent = (error as Error).message;
    } finally {
      clearInterval(timer);
      status.textContent = "";
      submit.removeAttribute("aria-disabled");
      isBusy = false;
    }
  }

  return form;
}
