// Inputs and outputs of a control. Each has a name, so that a test can set the inputs and read the outputs.

import { fill, h } from "../dom.ts";

export interface SliderOptions {
  min: number;
  max: number;
  step: number;
  value: number;
}

export class Form {
  /** What the control draws, above its inputs. */
  readonly picture = h("div", { class: "picture" });
  private readonly inputs = h("div", { class: "inputs" });
  private readonly outputs = h("dl", { class: "outputs" });
  private readonly readers = new Map<string, () => string>();
  private readonly shown = new Map<string, HTMLElement>();
  private update = (): void => {};

  /** Add a slider for a number; `write` says how it is shown. */
  slider(name: string, label: string, options: SliderOptions, write: (value: number) => string = String): void {
    const input = h("input", { type: "range", name, ...options, value: options.value });
    const value = h("output", {}, write(options.value));
    input.addEventListener("input", () => {
      value.textContent = write(Number(input.value));
      this.update();
    });
    this.inputs.append(h("label", {}, h("span", {}, label), input, value));
    this.readers.set(name, () => input.value);
  }

  /** Add a list to choose from. */
  choice(name: string, label: string, options: [string, string][], value: string): void {
    const list = h("select", { name, onchange: () => this.update() });
    for (const [key, text] of options) list.append(h("option", { value: key }, text));
    list.value = value;
    this.inputs.append(h("label", {}, h("span", {}, label), list));
    this.readers.set(name, () => list.value);
  }

  /** Add a line to type in. */
  text(name: string, label: string, value: string): void {
    const input = h("input", { type: "text", name, value, maxlength: 200, oninput: () => this.update() });
    this.inputs.append(h("label", {}, h("span", {}, label), input));
    this.readers.set(name, () => input.value);
  }

  /** Add a button that changes the control's own state; a test clicks it by its name. */
  button(name: string, label: string, act: () => void): void {
    const click = () => {
      act();
      this.update();
    };
    const last = this.inputs.lastElementChild;
    const row = last?.className === "buttons" ? last : h("div", { class: "buttons" });
    row.append(h("button", { type: "button", name, onclick: click }, label));
    this.inputs.append(row);
  }

  number(name: string): number {
    return Number(this.string(name));
  }

  string(name: string): string {
    return this.readers.get(name)!();
  }

  /** Show a number; `text` replaces how it is written. */
  show(name: string, label: string, value: number, text: string = format(value)): void {
    let output = this.shown.get(name);
    if (!output) {
      output = h("dd", { "data-output": name });
      this.outputs.append(h("div", {}, h("dt", {}, label), output));
      this.shown.set(name, output);
    }
    output.dataset.value = String(value);
    output.textContent = text;
  }

  /** Draw now and after every change of an input. */
  run(update: () => void): void {
    this.update = update;
    update();
  }

  mount(host: HTMLElement): void {
    fill(host, this.picture, this.inputs, this.outputs);
  }
}

/** Return a number with four significant digits. */
export function format(value: number): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "NaN" : value > 0 ? "∞" : "-∞";
  if (value !== 0 && (Math.abs(value) >= 1e6 || Math.abs(value) < 1e-4))
    return value.toExponential(3).replace(/\.?0+e/, "e");
  return String(Number(value.toPrecision(4)));
}
