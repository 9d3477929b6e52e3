// The page: header, tabs, one view at a time. Reads the document from the element with id "document".

import { followAddress } from "./address.ts";
import { makeWords } from "./blame.ts";
import { makeBox } from "./box.ts";
import { fill, h } from "./dom.ts";
import { type Decoded, Loader, type LookDocument, completeDocument, decodeBlob } from "./document.ts";
import { type FilmDocument, isFilm } from "./film/document.ts";
import { startFilm } from "./film/page.ts";
import { readLink, writeLink } from "./link.ts";
import { Live } from "./live.ts";
import { type State, Store } from "./state.ts";
import { commandOf, describeCertainty, nameOutput } from "./headline.ts";
import { openingState } from "./opening.ts";
import { makePresent } from "./present.ts";
import { makeCopyLink } from "./share.ts";
import style from "./style.css";
import viewStyle from "./views.css";
import { makeTabs } from "./tabs.ts";
import { showText } from "./tokens.ts";
import { alignment } from "./views/alignment.ts";
import { attribution } from "./views/attribution.ts";
import { beam } from "./views/beam.ts";
import { breakIt } from "./views/break.ts";
import type { Context, Mounted, View } from "./views/common.ts";
import { compare } from "./views/compare.ts";
import { allHeads, heads } from "./views/heads.ts";
import { masks } from "./views/masks.ts";
import { merges } from "./views/merges.ts";
import { image, spectrogram } from "./views/picture.ts";
import { positions } from "./views/positions.ts";
import { predictions } from "./views/predictions.ts";
import { sampling } from "./views/sampling.ts";
import { story } from "./views/story.ts";

/** All views in the order of their tabs; the first that applies opens. */
const VIEWS: View[] = [
  compare,
  story,
  image,
  spectrogram,
  heads,
  breakIt,
  beam,
  sampling,
  predictions,
  allHeads,
  alignment,
  attribution,
  masks,
  positions,
  merges,
];

let running: AbortController | null = null;

/** Show a document instead of the one before. The address stays, as far as the new document has what it names. */
function start(doc: LookDocument, root: HTMLElement): void {
  running?.abort();
  running = new AbortController();
  const { signal } = running;
  completeDocument(doc);
  const views = VIEWS.filter((view) => view.applies(doc));
  const names = views.map((view) => view.name);
  const opening = openingState(doc, names[0] ?? "");
  const store = new Store(readLink(location.hash, opening, doc, names));
  const blobs = new Loader<Decoded>(
    (name) => (doc.blobs[name] ? decodeBlob(doc.blobs[name]) : Promise.reject(new Error(`No blob ${name}.`))),
    () => store.notify(),
  );
  const context: Context = { doc, store, blobs, live: new Live(doc) };
  const box = doc.session && context.live.available ? makeBox(doc, context.live, (next) => replace(next, root)) : null;

  // A cell of one map is no cell of another.
  const tabs = makeTabs(views, (view) => store.set({ view, hover: null, locked: null }));
  const panel = h("div", { id: "panel", role: "tabpanel", "aria-labelledby": `tab-${store.state.view}` });
  const present = makePresent(store, signal);
  const copyLink = makeCopyLink(() => writeLink(store.state, opening));
  const tools = h("div", { class: "tools" }, present, ...copyLink.elements);
  fill(root, makeHeader(doc, tools, box, context.live), h("main", {}, ...tabs.elements, panel, makeFooter(doc)));

  let mounted: Mounted | null = null;
  let shown = "";
  const update = (changed: Set<keyof State>) => {
    const { view } = store.state;
    if (view !== shown) {
      shown = view;
      mounted = views.find((item) => item.name === view)?.mount(context) ?? null;
      fill(panel, mounted?.element ?? h("p", {}, "This document has nothing to show."));
      panel.setAttribute("aria-labelledby", `tab-${view}`);
      tabs.mark(view);
      copyLink.clear();
      changed = new Set();
    }
    mounted?.update(changed);
  };
  store.subscribe(update);
  update(new Set());
  const address = followAddress(
    `#${opening.view}`,
    () => writeLink(store.state, opening),
    (fragment) => store.set({ ...readLink(fragment, opening, doc, names), hover: null }),
    signal,
  );
  store.subscribe((changed) => address.changed(changed.has("view"))); // another view is a step of Back

  const redraw = () => store.notify();
  let width = window.innerWidth;
  const resize = () => {
    if (window.innerWidth === width) return; // a phone's address bar changes the height only
    width = window.innerWidth;
    redraw();
  };
  window.addEventListener("resize", resize, { signal });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw, { signal });
}

/** Show what the reader entered. A comparison opens its view; the entered text is not put into the address. */
function replace(doc: LookDocument, root: HTMLElement): void {
  if (doc.against && !location.hash.startsWith("#compare")) history.pushState(null, "", "#compare");
  document.title = `${[doc.text, doc.output].flatMap((text) => (text ? [showText(text, 60)] : [])).join(" → ")} · Regard`;
  start(doc, root);
  root.querySelector<HTMLElement>(".box textarea")?.focus();
}

function makeHeader(doc: LookDocument, tools: HTMLElement, box: HTMLElement | null, live: Live): HTMLElement {
  const { model } = doc;
  const title = showText(nameOutput(doc), 160);
  const canBlame = doc.session?.blame && live.available && title === doc.output;
  const [words, answer] = canBlame ? makeWords(title, (word) => live.blame(word)) : [h("bdi", {}, title), null];
  const layers = Object.entries(model.layers).map(
    ([stack, count]) => `${count} ${stack} ${count === 1 ? "layer" : "layers"}`,
  );
  const parameters = model.parameters > 0 ? `${model.parameters.toLocaleString("en")} parameters` : "";
  const about = [model.name, parameters, ...layers].filter(Boolean);
  const sure = describeCertainty(doc);
  return h(
    "header",
    {},
    h(
      "div",
      {},
      box,
      doc.output ? h("p", { class: "input", dir: "auto", hidden: box !== null }, showText(doc.text, 240)) : null,
      h("h1", {}, words, sure ? h("span", { class: "sure", title: sure.title }, ` ${sure.text}`) : null),
      answer,
      h("p", { class: "small" }, showText(about.join(" · "))),
      ...doc.notes.map((note) => h("p", { class: "note" }, showText(note))),
    ),
    tools,
  );
}

function makeFooter(doc: LookDocument): HTMLElement {
  const command = commandOf(doc);
  return h(
    "footer",
    { class: "small" },
    h(
      "p",
      {},
      `Made with Regard ${doc.model.regard}`,
      command ? ": " : ".",
      command ? h("code", { dir: "auto" }, showText(command)) : null,
    ),
  );
}

document.head.append(h("style", {}, viewStyle + style));
const source = document.getElementById("document");
const root = document.getElementById("app") ?? document.body.appendChild(h("div", { id: "app" }));
try {
  const doc = JSON.parse(source?.textContent ?? "") as LookDocument | FilmDocument;
  if (isFilm(doc)) startFilm(doc, root);
  else start(doc, root);
} catch (error) {
  fill(root, h("p", { role: "alert" }, `This page cannot be shown: ${error instanceof Error ? error.message : error}`));
  throw error;
}
