// The view of BPE merges: the words of a text as symbols, one merge after the other.

import { fill, h } from "../dom.ts";
import type { Merges } from "../document.ts";
import type { Renderer } from "../renderer.ts";
import type { State } from "../state.ts";
import { type Theme, readTheme } from "../theme.ts";
import { showText } from "../tokens.ts";
import { type Context, type Mounted, Stage, type View, quote, saveButton, textWidth } from "./common.ts";

const SIZE = 20; // of a symbol's text
const PITCH = 46;
const LEFT = 56;
const GAP = 6;

export const merges: View = {
  name: "merges",
  title: "BPE merges",
  level: 2,
  applies: (doc) => doc.merges !== null,
  mount,
};

interface Box {
  text: string;
  x: number;
  y: number;
  width: number;
  isNew: boolean;
}

interface MergesLayout {
  boxes: Box[];
  width: number;
  height: number;
}

/** Place the symbols of all words after `step` merges; those that the last merge made are new. */
export function layoutMerges(data: Merges, step: number, theme: Theme): MergesLayout {
  const words = step === 0 ? data.start : data.steps[step - 1].words;
  const merged = step === 0 ? null : data.steps[step - 1].left + data.steps[step - 1].right;
  const boxes: Box[] = [];
  let width = 0;
  words.forEach((symbols, row) => {
    let x = LEFT;
    for (const symbol of symbols) {
      const text = showText(symbol, 24);
      const box = {
        text,
        x,
        y: row * PITCH + 4,
        width: textWidth(text, SIZE, theme.font) + 20,
        isNew: symbol === merged,
      };
      boxes.push(box);
      x += box.width + GAP;
    }
    width = Math.max(width, x);
  });
  return { boxes, width: width + 4, height: words.length * PITCH + 4 };
}

export function drawMerges(renderer: Renderer, data: Merges, layout: MergesLayout, theme: Theme): void {
  data.counts.forEach((count, row) =>
    renderer.text(LEFT - 12, row * PITCH + 4 + (PITCH - 8) / 2, `${count} ×`, { fill: theme.muted, anchor: "end" }),
  );
  for (const { text, x, y, width, isNew } of layout.boxes) {
    const middle = y + (PITCH - 8) / 2;
    renderer.rect(x, y, width, PITCH - 8, isNew ? { fill: theme.hue, opacity: 0.18, radius: 6 } : { radius: 6 });
    renderer.rect(x, y, width, PITCH - 8, { stroke: isNew ? theme.hue : theme.rule, width: 1.5, radius: 6 });
    const style = { fill: isNew ? theme.hue : theme.ink, size: SIZE, weight: isNew ? 600 : 400 };
    renderer.text(x + width / 2, middle, text, { ...style, anchor: "middle" });
  }
}

function mount({ doc, store }: Context): Mounted {
  const data = doc.merges!;
  const fact = h("p", { class: "fact" });
  const steps = h("div", { class: "chips", role: "group", "aria-label": "Merges" });
  const readout = h("p", { class: "readout", role: "status", "aria-live": "polite" });
  const stage = new Stage("Words as symbols. Right and left arrow keys go one merge on or back.");
  const go = (step: number) => store.set({ merge: Math.max(0, Math.min(data.steps.length, step)) });
  stage.element.addEventListener("keydown", (event) => {
    const move = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!move) return;
    event.preventDefault();
    go(store.state.merge + move);
  });
  stage.element.addEventListener("click", () => go(store.state.merge + 1));
  const back = h("button", { type: "button", onclick: () => go(store.state.merge - 1) }, "Back");
  const next = h("button", { type: "button", onclick: () => go(store.state.merge + 1) }, "Next merge");
  const save = saveButton(
    () => `merge.${store.state.merge}`,
    () => layoutMerges(data, store.state.merge, readTheme()),
    (renderer, theme) => drawMerges(renderer, data, layoutMerges(data, store.state.merge, theme), theme),
  );
  const element = h(
    "section",
    { class: "merges", "aria-label": "BPE merges" },
    h("h2", {}, "How a BPE vocabulary is learned"),
    fact,
    h("div", { class: "controls" }, back, next, save),
    h("div", { class: "scroller" }, stage.element),
    readout,
    h("h3", {}, "Merges in their order"),
    steps,
  );

  function update(_: Set<keyof State>): void {
    const at = store.state.merge;
    const layout = layoutMerges(data, at, readTheme());
    fact.textContent = describeMerge(data, at);
    const symbols = new Set((at === 0 ? data.start : data.steps[at - 1].words).flat());
    const total = layout.boxes.length;
    readout.textContent = `${total} symbols spell the ${data.words.length} words, ${symbols.size} of them distinct.`;
    stage.draw(layout.width, layout.height, (renderer, theme) => drawMerges(renderer, data, layout, theme));
    back.disabled = at === 0;
    next.disabled = at === data.steps.length;
    fill(
      steps,
      ...data.steps.map(({ left, right }, i) =>
        h(
          "button",
          { type: "button", "aria-pressed": String(i + 1 === at), onclick: () => go(i + 1) },
          showText(left + right, 24),
        ),
      ),
    );
  }

  return { element, update };
}

function describeMerge(data: Merges, at: number): string {
  if (at === 0) return "Before the first merge every character is a symbol; ▁ ends a word.";
  const { left, right, count } = data.steps[at - 1];
  const pair = `${quote(showText(left, 24))} + ${quote(showText(right, 24))}`;
  const times = count === 1 ? "once" : count === 2 ? "twice" : `${count} times`;
  return `Merge ${at} of ${data.steps.length}: ${pair} becomes ${quote(showText(left + right, 24))}, a most frequent pair: ${times}.`;
}
