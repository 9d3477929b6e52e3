// The story of an input: it plays what the model read, wrote and nearly wrote, and says what is worth knowing about it.

import { type Animation, animationButton } from "../animation.ts";
import { fill, h } from "../dom.ts";
import { type Group, type LookDocument, largestEffect } from "../document.ts";
import { readCaption } from "../figure.ts";
import { type Finding, findFindings } from "../findings.ts";
import type { State } from "../state.ts";
import { MAX_OUTPUTS, type Story, firstGenerated, hasStory, makeStory } from "../story.ts";
import { readTheme } from "../theme.ts";
import { type Context, type Mounted, Stage, type View, saveButton } from "./common.ts";
import { type StoryLayout, drawStory, layoutStory } from "./story_drawing.ts";

const PACE = 700; // milliseconds per step
const READING = 1400; // milliseconds per step of an animation, whose sentences have to be read
const ANIMATION_WIDTH = 1000;
const GROWTH = 260; // milliseconds in which ribbons and bars grow

export const story: View = { name: "story", title: "Story", applies: hasStory, mount };

let hasPlayed = false;
const prefersStill = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

function mount({ doc, store, blobs }: Context): Mounted {
  let told: Story = makeStory(doc, (name) => blobs.read(name));
  const caption = h("p", { class: "fact caption", role: "status" });
  const stage = new Stage("The story. Arrow keys step, Space plays and pauses, Home and End go to the ends.");
  const count = h("span", { class: "small count" });
  const back = h("button", { type: "button", "aria-label": "Back", onclick: () => walk(-1) }, "◀");
  const next = h("button", { type: "button", "aria-label": "Next", onclick: () => walk(1) }, "▶|");
  const play = h("button", { type: "button", class: "play", onclick: () => toggle() });
  const speeds = [0.5, 1].map((value) => h("button", { type: "button", onclick: () => setSpeed(value) }, `${value}×`));
  const strip = h("div", { class: "strip", role: "group", "aria-label": "The model" });
  const findings = h("ul", { class: "findings" });
  const transcript = h("ol");
  const animation = animationButton(animate);
  const player = h(
    "div",
    { class: "controls" },
    h("div", { class: "player" }, back, play, next),
    h("div", { class: "choice", role: "group", "aria-label": "Speed" }, ...speeds),
    count,
    saveButton(
      () => `story.${at() + 1}`,
      () => layout!,
      (renderer, theme) => layout && drawStory(renderer, doc, told, told.steps[at()], pixels(), layout, theme),
    ),
    animation,
  );
  const telling = h("div", { class: "telling" }, player, caption, h("div", { class: "scroller" }, stage.element));
  // Beside the drawing where there is room: see style.css.
  const isSmall = doc.picture?.kind === "image" && !told.looksBack;
  const element = h(
    "section",
    { class: isSmall ? "story small-picture" : "story", "aria-label": "Story" },
    telling,
    h("div", { class: "aside" }, strip, h("h2", {}, "What happened"), findings),
    h("details", { class: "transcript" }, h("summary", {}, "Transcript"), transcript),
    h("p", { class: "small" }, `Darker words: the model was surer. ${evidenceNote(told)}`),
  );

  let layout: StoryLayout | null = null;
  let [speed, isPlaying, isWaiting] = [1, false, false];
  let timer: ReturnType<typeof setTimeout> | undefined;
  let frame = 0;
  const pixels = () => (doc.picture ? blobs.read(doc.picture.pixels) : undefined);
  const last = () => told.steps.length - 1;
  const at = () => Math.min(store.state.beat ?? last(), last());
  const go = (step: number) => store.set({ beat: step >= last() ? null : Math.max(0, step) });
  const walk = (by: number) => {
    pause();
    go(at() + by);
  };

  function tick(): void {
    clearTimeout(timer);
    if (!isPlaying || !element.isConnected) return pause();
    timer = setTimeout(() => {
      go(at() + 1);
      if (at() >= last()) pause();
      else tick();
    }, PACE / speed);
  }

  function pause(): void {
    clearTimeout(timer);
    isPlaying = isWaiting = false;
    showControls();
  }

  function start(): void {
    isPlaying = true;
    if (at() >= last()) go(0);
    showControls();
    tick();
  }

  const toggle = () => (isPlaying ? pause() : start());
  const setSpeed = (value: number) => {
    speed = value;
    showControls();
    if (isPlaying) tick();
  };

  function showControls(): void {
    play.textContent = isPlaying ? "Pause" : "Play";
    speeds.forEach((button, i) => button.setAttribute("aria-pressed", String([0.5, 1][i] === speed)));
    count.textContent = `Step ${at() + 1} of ${told.steps.length}`;
    back.disabled = at() <= 0;
    next.disabled = at() >= last();
  }

  const press = (event: KeyboardEvent) => {
    if (!element.isConnected) return document.removeEventListener("keydown", press);
    const target = event.target as Element;
    const isHere = target === document.body || element.contains(target);
    if (!isHere || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === " " && target.closest("button, summary, a")) return;
    const moves: Record<string, () => void> = {
      ArrowRight: () => walk(1),
      ArrowLeft: () => walk(-1),
      Home: () => walk(-Infinity),
      End: () => walk(Infinity),
      " ": toggle,
    };
    if (!Object.hasOwn(moves, event.key)) return;
    event.preventDefault();
    moves[event.key]();
  };
  document.addEventListener("keydown", press);

  function update(changed: Set<keyof State>): void {
    if (changed.size === 0) {
      told = makeStory(doc, (name) => blobs.read(name));
      const list = findFindings(doc, told);
      fill(findings, ...list.map(makeFinding));
      fill(transcript, ...told.steps.map((step) => h("li", {}, step.text)));
      layout = layoutStory(doc, told, pixels(), Math.max(260, telling.clientWidth - 4), readTheme());
    } else if (!changed.has("beat")) return;
    showControls();
    animation.hidden = told.steps.length < 2;
    const step = told.steps[at()];
    caption.textContent = step.text;
    fill(strip, ...makeStrip());
    cancelAnimationFrame(frame);
    if (changed.has("beat") && !prefersStill()) grow(performance.now());
    else draw(1);
    if (!hasPlayed) {
      hasPlayed = isWaiting = store.state.beat === null && !prefersStill() && told.steps.length > 1;
      hasPlayed = true;
    }
    // It starts by itself once, as soon as there is something to show.
    if (isWaiting && told.outputs[0].shares.length > 0) {
      isWaiting = false;
      start();
    }
  }

  function grow(begin: number): void {
    const share = Math.min(1, (performance.now() - begin) / GROWTH);
    draw(1 - (1 - share) ** 3);
    if (share < 1) frame = requestAnimationFrame(() => grow(begin));
  }

  function draw(progress: number): void {
    const shown = layout!;
    const step = told.steps[at()];
    stage.draw(shown.width, shown.height, (renderer, theme) =>
      drawStory(renderer, doc, told, step, pixels(), shown, theme, progress),
    );
  }

  /** All steps, at a size that does not depend on the window. */
  function animate(): Animation {
    const [shown, picture] = [told, pixels()];
    const place = layoutStory(doc, shown, picture, ANIMATION_WIDTH, readTheme());
    return {
      name: "story",
      caption: readCaption(),
      width: place.bars.x + place.bars.width,
      height: place.height,
      count: shown.steps.length,
      delay: READING,
      draw: (i, renderer, theme) => drawStory(renderer, doc, shown, shown.steps[i], picture, place, theme),
      tell: (i) => shown.steps[i].text,
    };
  }

  function makeFinding(item: Finding): HTMLElement {
    const step = told.steps.findIndex(({ output, isWritten }) => output === item.output && isWritten);
    const buttons = [
      item.output !== undefined && told.outputs.length > 1
        ? h("button", { type: "button", onclick: () => (pause(), go(step)) }, "Show")
        : null,
      item.view && hasView(item.view)
        ? h("button", { type: "button", onclick: () => open(item.view!) }, "Details")
        : null,
    ];
    return h("li", { "data-kind": item.kind }, h("span", { dir: "auto" }, item.text), ...buttons);
  }

  /** Open a view; Break it without the head that matters most. */
  function open(view: string): void {
    const found = view === "break" ? largestEffect(doc, doc.attention) : null;
    const headsOff = found ? [[found.group.name, ...found.place].join(".")] : store.state.headsOff;
    store.set({ view, hover: null, locked: null, headsOff });
  }

  /** The boxes of the model, each with the shape of what passes through it now. */
  function makeStrip(): HTMLElement[] {
    const { width, layers, vocabulary } = doc.model;
    const output = told.outputs[told.steps[at()].output];
    const first = firstGenerated(doc);
    const boxes = Object.entries(layers).map(([stack, depth]) => {
      const group =
        doc.attention.find(({ name }) => name === `${stack}.cross`) ??
        doc.attention.find(({ name }) => name === `${stack}.self`);
      const rows = stack === "encoder" ? (doc.sequences.source?.length ?? 0) : (output.places[0] ?? first);
      const name = `${depth} ${depth === 1 ? "layer" : "layers"}`;
      return box(stack, `${rows} × ${width}`, name, group ? () => openGroup(group) : null);
    });
    const prediction = doc.predictions[0];
    const isGap = prediction?.position != null && doc.sequences.source?.[prediction.position]?.role === "special";
    const size = told.isWritten || isGap ? (vocabulary["target"] ?? vocabulary["source"]) : prediction?.labels.length;
    const view = ["predictions", "sampling", "search"].find(hasView);
    const unit = told.isWritten || isGap ? "tokens" : "labels";
    boxes.push(box("softmax", (size ?? 0).toLocaleString("en"), unit, view ? () => open(view) : null));
    return boxes.flatMap((item, i) => (i > 0 ? [h("span", { "aria-hidden": "true" }, "→"), item] : [item]));
  }

  function openGroup(group: Group): void {
    const view = doc.picture && group.columns === "source" ? doc.picture.kind : "heads";
    const [layer, head] = group.default_head;
    store.set({ view, group: group.name, layer, head, query: null, hover: null, locked: null });
  }

  const hasView = (view: string) => SHOWN[view]?.(doc) ?? doc.attention.length > 0;

  return { element, update };
}

/** Whether a document has what a view shows. */
const SHOWN: Record<string, (doc: LookDocument) => boolean> = {
  search: (doc) => doc.search !== null && doc.search.step.length > 1,
  sampling: (doc) => (doc.sampling?.steps.length ?? 0) > 0,
  predictions: (doc) => doc.predictions.length > 0,
  ablation: (doc) => doc.ablation !== null,
  attribution: (doc) => doc.attribution !== null,
};

function evidenceNote({ evidence, outputs }: Story): string {
  const cut = outputs.length === MAX_OUTPUTS ? ` The story has the first ${MAX_OUTPUTS} words.` : "";
  if (evidence === "attribution")
    return `Ribbons show how much a word raises (blue) or lowers (purple) the result, by integrated gradients.${cut}`;
  return `Ribbons show attention: where the model looked, not why it decided.${cut}`;
}

function box(name: string, shape: string, note: string, open: (() => void) | null): HTMLElement {
  const parts = [h("b", {}, name), h("span", {}, shape), h("span", { class: "small" }, note)];
  return open ? h("button", { type: "button", onclick: open }, ...parts) : h("div", {}, ...parts);
}
