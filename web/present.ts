// Presentation mode: the page as a slide. Everything is laid out on a small page, which is then enlarged to fill the
// window: at 1920 x 1080 a label of 11 pixels is 24 pixels high. No view needs to know.

import { h } from "./dom.ts";
import type { State, Store } from "./state.ts";

const SLIDE = { width: 872, height: 490 };

let scale = 1;

/** How much the drawings are enlarged: 1 outside of presentations. */
export const zoom = (): number => scale;

/** Height for a drawing: the rest of a slide, else about what a window shows below title and controls. */
export function roomBelow(element: Element, least = 0): number {
  if (scale === 1) return Math.max(least, 640, window.innerHeight - 300);
  const top = element.getBoundingClientRect().top + window.scrollY;
  return Math.max(120, (window.innerHeight - top) / scale - 12);
}

/** The button, and the keys P and Escape. Call before views subscribe: they draw in the size that this sets. */
export function makePresent(store: Store, signal: AbortSignal): HTMLElement {
  const set = (present: boolean) => {
    store.set({ present });
    if (!document.fullscreenEnabled) return;
    if (present) document.documentElement.requestFullscreen().catch(() => undefined);
    else if (document.fullscreenElement) document.exitFullscreen().catch(() => undefined);
  };
  const apply = () => {
    const { present } = store.state;
    const { innerWidth, innerHeight } = window;
    scale = present ? Math.max(1, Math.min(innerWidth / SLIDE.width, innerHeight / SLIDE.height)) : 1;
    document.documentElement.classList.toggle("present", present);
    document.documentElement.style.setProperty("--zoom", String(scale));
    const label = present ? "Leave the presentation (Escape)" : "Present (P)";
    button.textContent = present ? "×" : "Present";
    button.title = label;
    button.setAttribute("aria-label", label);
  };
  const button = h("button", { type: "button", class: "presenter", onclick: () => set(!store.state.present) });
  store.subscribe((changed: Set<keyof State>) => changed.has("present") && apply());
  const resize = () => {
    if (!store.state.present) return;
    apply();
    store.notify();
  };
  window.addEventListener("resize", resize, { signal });
  const leave = () => document.fullscreenElement ?? store.set({ present: false });
  document.addEventListener("fullscreenchange", leave, { signal });
  window.addEventListener(
    "keydown",
    (event) => {
      const isTyping = (event.target as Element).matches?.("input:not([type=checkbox],[type=range]), textarea, select");
      if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key.toLowerCase() === "p") set(!store.state.present);
      // The first Escape releases what is pinned.
      else if (event.key === "Escape" && store.state.present && !store.state.locked) set(false);
    },
    { capture: true, signal },
  );
  apply();
  return button;
}
