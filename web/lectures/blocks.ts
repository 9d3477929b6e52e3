// How each block is drawn.

import { h } from "../dom.ts";
import { CONTROLS } from "./controls/index.ts";
import type { Block, Cell, ControlBlock, Quiz, Table } from "./document.ts";
import { Form } from "./form.ts";
import { inline } from "./inline.ts";

/** Draw a block. */
export function drawBlock(block: Block): HTMLElement {
  switch (block.kind) {
    case "text":
      return h("p", {}, ...inline(block.text));
    case "formula":
      return h(
        "div",
        { class: "formula" },
        h("div", { class: "math" }, block.formula),
        h("p", {}, ...inline(block.text)),
      );
    case "table":
      return drawTable(block);
    case "command":
      return h(
        "div",
        { class: "command" },
        h(
          "pre",
          { tabindex: 0, "aria-label": "Command and output" },
          h("b", {}, `$ ${block.command}`),
          `\n${block.output}`,
        ),
        block.stored && h("p", { class: "small" }, `Stored output: ${block.stored}`),
      );
    case "control":
      return drawControl(block);
    case "look":
      return drawLook(block);
    case "quiz":
      return drawQuiz(block, undefined, () => {});
  }
}

/** Draw a question; a click shows the consequence of the chosen option. */
export function drawQuiz(quiz: Quiz, chosen: number | undefined, answer: (option: number) => void): HTMLElement {
  const consequence = h("p", { class: "consequence", role: "status" });
  const buttons = quiz.options.map((option, i) =>
    h("button", { type: "button", "aria-pressed": "false", onclick: () => pick(i) }, ...inline(option.text)),
  );
  const pick = (i: number) => {
    show(i);
    answer(i);
  };
  const show = (i: number) => {
    const option = quiz.options[i]!;
    buttons.forEach((button, j) => button.setAttribute("aria-pressed", String(i === j)));
    consequence.replaceChildren(
      h("strong", {}, option.is_right ? "Right. " : "Not quite. "),
      ...inline(option.consequence),
    );
    consequence.dataset.right = String(option.is_right);
  };
  if (chosen !== undefined && quiz.options[chosen]) show(chosen);
  return h(
    "div",
    { class: "quiz", role: "group", "aria-label": quiz.question },
    h("p", { class: "question" }, ...inline(quiz.question)),
    h("div", { class: "options" }, ...buttons),
    consequence,
  );
}

function drawControl(block: ControlBlock): HTMLElement {
  const make = CONTROLS[block.control];
  if (!make) return h("p", { class: "error", role: "alert" }, `This page has no control "${block.control}".`);
  const form = new Form();
  const body = h("div");
  make(form, block.params);
  form.mount(body);
  return h(
    "section",
    { class: "control-block", "data-control": block.control, "aria-label": block.title },
    h("h3", {}, block.title),
    body,
  );
}

function drawLook(block: Extract<Block, { kind: "look" }>): HTMLElement {
  const address = `look/${block.name}.html${block.view && `#${block.view}`}`;
  return h(
    "figure",
    {},
    h("iframe", { src: address, title: block.title, loading: "lazy", style: `height: ${block.height}px` }),
    h("figcaption", { class: "small" }, block.title, " ", h("a", { href: address }, "Open alone")),
  );
}

function drawTable(table: Table): HTMLElement {
  const numbers = table.rows.flat().filter((cell): cell is number => typeof cell === "number");
  const most = Math.max(...numbers.map(Math.abs), 1e-9);
  const cell = (value: Cell) => {
    if (typeof value === "string") return h("td", {}, ...inline(value));
    const share = table.shaded ? Math.round((60 * Math.abs(value)) / most) : 0;
    const style = share ? `background: color-mix(in srgb, var(--hue) ${share}%, var(--page))` : undefined;
    const text = Number.isInteger(value) ? value.toLocaleString("en") : value.toFixed(table.digits);
    return h("td", { class: "number", style }, text);
  };
  return h(
    "div",
    { class: "table", tabindex: 0, role: "group", "aria-label": table.title },
    h(
      "table",
      {},
      h("caption", {}, ...inline(table.title)),
      h("thead", {}, h("tr", {}, ...table.columns.map((name) => h("th", { scope: "col" }, ...inline(name))))),
      h("tbody", {}, ...table.rows.map((row) => h("tr", {}, ...row.map(cell)))),
    ),
  );
}
