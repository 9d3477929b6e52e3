// The page: header, tabs, one view at a time. Reads the document from the element with id "document".

import { fill, h } from "./dom.ts";
import { type Decoded, Loader, type LookDocument, decodeBlob } from "./document.ts";
import { Live } from "./live.ts";
import { type State, Store } from "./state.ts";
import style from "./style.css";
import { showText } from "./tokens.ts";
import { ablation } from "./views/ablation.ts";
import { alignment } from "./views/alignment.ts";
import { attribution } from "./views/attribution.ts";
import { beam } from "./views/beam.ts";
import type { Context, Mounted, View } from "./views/common.ts";
import { heads } from "./views/heads.ts";
import { masks } from "./views/masks.ts";
import { merges } from "./views/merges.ts";
import { image, spectrogram } from "./views/picture.ts";
import { positions } from "./views/positions.ts";
import { predictions } from "./views/predictions.ts";
import { mostSurprisingStep, sampling } from "./views/sampling.ts";

const VIEWS: View[] = [
  image,
  spectrogram,
  heads,
  beam,
  alignment,
  predictions,
  attribution,
  ablation,
  sampling,
  masks,
  positions,
  merges,
];

function openingState(doc: LookDocument, view: string): State {
  // Cross-attention shows the alignment, which says most at first sight.
  const group = doc.attention.find((item) => item.name === "decoder.cross") ?? doc.attention[0];
  return {
    view,
    group: group?.name ?? "encoder.self",
    layer: group?.default_head[0] ?? 0,
    head: group?.default_head[1] ?? 0,
    meanOfHeads: false,
    query: null,
    drawing: "heatmap",
    statistic: "entropy",
    words: false,
    specials: true,
    numbers: group !== undefined && group.row_count * group.column_count <= 36,
    stretched: false,
    hover: null,
    locked: null,
    candidate: null,
    pointed: null,
    unfolded: false,
    hypothesis: 0,
    alignment: "ribbons",
    alignedHeads: [],
    alignedTokens: false,
    ablated: null,
    method: "integrated_gradients",
    step: mostSurprisingStep(doc.sampling?.steps ?? []),
    filters: { ...(doc.sampling?.filters ?? {}) },
    merge: doc.merges?.steps.length ? 1 : 0,
    mask: (doc.masks.find((mask) => mask.terms.length > 0) ?? doc.masks[0])?.group ?? "decoder.self",
    hiddenTerms: [],
    stack: doc.positions[0]?.stack ?? "decoder",
  };
}

function start(doc: LookDocument, root: HTMLElement): void {
  const views = VIEWS.filter((view) => view.applies(doc));
  const wanted = location.hash.slice(1);
  const first = views.find((view) => view.name === wanted) ?? views[0];
  const store = new Store(openingState(doc, first?.name ?? ""));
  const blobs = new Loader<Decoded>(
    (name) => (doc.blobs[name] ? decodeBlob(doc.blobs[name]) : Promise.reject(new Error(`No blob ${name}.`))),
    () => store.notify(),
  );
  const context: Context = { doc, store, blobs, live: new Live(doc) };

  const tabs = h("div", { class: "tabs", role: "tablist", "aria-label": "Views" });
  const panel = h("div", { id: "panel", role: "tabpanel", "aria-labelledby": "tab-" + first?.name });
  fill(root, makeHeader(doc), h("main", {}, tabs, panel, makeFooter(doc)));

  const buttons = views.map((view) =>
    h(
      "button",
      {
        type: "button",
        role: "tab",
        id: `tab-${view.name}`,
        "aria-controls": "panel",
        onclick: () => store.set({ view: view.name }),
      },
      view.title,
    ),
  );
  tabs.append(...buttons);
  tabs.addEventListener("keydown", (event) => {
    const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!move) return;
    const at = views.findIndex((view) => view.name === store.state.view);
    const next = (at + move + views.length) % views.length;
    store.set({ view: views[next].name });
    buttons[next].focus();
  });

  let mounted: Mounted | null = null;
  let shown = "";
  const update = (changed: Set<keyof State>) => {
    const { view } = store.state;
    if (view !== shown) {
      shown = view;
      mounted = views.find((item) => item.name === view)?.mount(context) ?? null;
      fill(panel, mounted?.element ?? h("p", {}, "This document has nothing to show."));
      panel.setAttribute("aria-labelledby", `tab-${view}`);
      views.forEach((item, i) => {
        buttons[i].setAttribute("aria-selected", String(item.name === view));
        buttons[i].tabIndex = item.name === view ? 0 : -1;
        if (item.name === view) tabs.scrollLeft = buttons[i].offsetLeft - tabs.offsetLeft - 40;
      });
      changed = new Set();
    }
    mounted?.update(changed);
  };
  store.subscribe(update);
  update(new Set());

  const redraw = () => store.notify();
  let width = window.innerWidth;
  window.addEventListener("resize", () => {
    if (window.innerWidth === width) return; // a phone's address bar changes the height only
    width = window.innerWidth;
    redraw();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
}

function makeHeader(doc: LookDocument): HTMLElement {
  const { model } = doc;
  const layers = Object.entries(model.layers).map(
    ([stack, count]) => `${count} ${stack} ${count === 1 ? "layer" : "layers"}`,
  );
  const parameters = model.parameters > 0 ? `${model.parameters.toLocaleString("en")} parameters` : "";
  const about = [model.name, parameters, ...layers].filter(Boolean);
  return h(
    "header",
    {},
    doc.output ? h("p", { dir: "auto" }, showText(doc.text, 240)) : null,
    h("h1", { dir: "auto" }, showText(doc.output || doc.text, 160)),
    h("p", { class: "small" }, showText(about.join(" · "))),
    ...doc.notes.map((note) => h("p", { class: "note" }, showText(note))),
  );
}

function makeFooter(doc: LookDocument): HTMLElement {
  return h("footer", { class: "small" }, h("p", {}, `Regard ${doc.model.regard} · ${doc.format}`));
}

document.head.append(h("style", {}, style));
const source = document.getElementById("document");
const root = document.getElementById("app") ?? document.body.appendChild(h("div", { id: "app" }));
try {
  start(JSON.parse(source?.textContent ?? "") as LookDocument, root);
} catch (error) {
  fill(root, h("p", { role: "alert" }, `This page cannot be shown: ${error instanceof Error ? error.message : error}`));
  throw error;
}
