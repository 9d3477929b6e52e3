// What the model read for each word of a translation: the story and the heads of `regard look`, without Python.

import { type Decoded, Loader } from "../document.ts";
import { fill, h } from "../dom.ts";
import { commandOf } from "../headline.ts";
import { Live } from "../live.ts";
import { openingState } from "../opening.ts";
import { type State, Store } from "../state.ts";
import { makeTabs } from "../tabs.ts";
import { showText } from "../tokens.ts";
import type { Mounted } from "../views/common.ts";
import { heads } from "../views/heads.ts";
import { story } from "../views/story.ts";
import { type Inside, makeInside } from "./look_document.ts";
import type { Description } from "./model.ts";
import type { Replay } from "./replay.ts";
import { splitSentences } from "./sentences.ts";

const VIEWS = [story, heads];
const INVITATION = "Type a sentence to see what the model reads for each word that it writes.";
const HEAD: (keyof State)[] = ["group", "layer", "head"];
const KEPT: (keyof State)[] = ["drawing", "statistic", "words", "specials", "numbers", "stretched"];

/** Exact rows come from memory: the views ask for them as they ask a server. */
class Memory extends Live {
  constructor(private inside: Inside) {
    super(inside.doc);
  }
  override async row(group: string, layer: number, head: number, row: number): Promise<number[]> {
    return this.inside.row(group, layer, head, row);
  }
}

export interface LookPanel {
  element: HTMLElement;
  /** Show the sentence in which the caret stands, if it is another one or has another translation. */
  show(text: string, caret: number, options: { beam: number; language?: string }): Promise<void>;
}

/** `ask` returns the replay of a sentence. `shown` is called with what is drawn. */
export function makeLook(
  description: Description,
  ask: (request: Record<string, unknown>) => Promise<Replay>,
  shown: (inside: Inside | null) => void,
): LookPanel {
  let opening: State | null = null;
  let store: Store | null = null;
  let mounted: Mounted | null = null;
  let view = story.name;
  let asked = ""; // the sentence and its options that are wanted
  let drawn = ""; // those that are shown
  let repeat: () => void = () => {};

  const tabs = makeTabs(VIEWS, (name) => {
    view = name;
    if (store) store.set({ view, hover: null, locked: null });
    else tabs.mark(view);
  });
  const list = h("select", { onchange: () => repeat() });
  const choice = h("label", { class: "control", hidden: true }, "Sentence", list);
  const panel = h("div", { id: "panel", role: "tabpanel", "aria-labelledby": `tab-${view}` }, h("p", {}, INVITATION));
  const note = h("p", { class: "small" });
  tabs.mark(view);
  describe(null);
  const heading = h("h2", {}, "Watch the attention");
  const element = h(
    "section",
    { class: "inside", "aria-label": "Attention" },
    heading,
    choice,
    ...tabs.elements,
    panel,
    note,
  );

  function describe(doc: Inside["doc"] | null): void {
    const command = doc ? commandOf(doc) : "regard look MODEL";
    fill(
      note,
      "These are the weights of the model in this page. Switching heads off and attribution need Python: ",
      h("code", { dir: "auto" }, showText(command)),
    );
  }

  function clear(message: string): void {
    store = mounted = null;
    asked = drawn = "";
    fill(panel, h("p", { role: "status" }, message));
    describe(null);
    shown(null);
  }

  /** Draw a document; what the reader chose before stays chosen. */
  function draw(next: Inside): void {
    const { doc, blobs } = next;
    const fresh = openingState(doc, view);
    const state: Record<string, unknown> = { ...fresh, beat: Infinity }; // typing is no moment to start playing
    if (store && opening) {
      const differs = (key: keyof State) => store!.state[key] !== opening![key];
      for (const key of HEAD.some(differs) ? HEAD : []) state[key] = store.state[key];
      for (const key of KEPT) if (differs(key)) state[key] = store.state[key];
    }
    [opening, store] = [fresh, new Store(state as unknown as State)];
    const current = store;
    const arrays = new Loader<Decoded>(
      async (name) => blobs.get(name)!,
      () => current.notify(),
    );
    const context = { doc, store, blobs: arrays, live: new Memory(next) };
    let shownView = "";
    const update = (changed: Set<keyof State>) => {
      if (current !== store) return; // another sentence is shown now
      if (shownView !== current.state.view) {
        shownView = view = current.state.view;
        mounted = VIEWS.find((item) => item.name === view)!.mount(context);
        fill(panel, mounted.element);
        panel.setAttribute("aria-labelledby", `tab-${view}`);
        tabs.mark(view);
        changed = new Set();
      }
      mounted!.update(changed);
    };
    store.subscribe(update);
    describe(doc);
    update(new Set());
    shown(next);
  }

  const redraw = () => store?.notify();
  let width = window.innerWidth;
  window.addEventListener("resize", () => {
    if (window.innerWidth !== width) redraw(); // a phone's address bar changes the height only
    width = window.innerWidth;
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);

  async function load(sentence: string, options: { beam: number; language?: string }): Promise<void> {
    const key = JSON.stringify([sentence, options]);
    asked = key;
    if (key === drawn) return; // one that was asked for is asked for again: the worker drops old requests
    try {
      const replay = await ask({ sentence, ...options });
      if (key !== asked || key === drawn) return;
      draw(makeInside(replay, description));
      drawn = key;
    } catch (error) {
      if (key === asked) clear((error as Error).message);
    }
  }

  async function show(text: string, caret: number, options: { beam: number; language?: string }): Promise<void> {
    const pairs = splitSentences(text);
    let end = 0;
    const places = pairs.flatMap(([sentence, space]) => {
      end += sentence.length + space.length;
      return sentence.trim() ? [{ sentence, end }] : [];
    });
    if (!places.length) {
      choice.hidden = true;
      return clear(INVITATION);
    }
    const found = places.findIndex((place) => caret <= place.end);
    fill(list, ...places.map(({ sentence }, i) => h("option", { value: i }, showText(sentence, 60))));
    list.value = String(found < 0 ? places.length - 1 : found);
    choice.hidden = places.length === 1;
    repeat = () => void load(places[Number(list.value)].sentence, options);
    await load(places[Number(list.value)].sentence, options);
  }

  return { element, show };
}
