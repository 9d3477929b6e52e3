// The tabs in two levels: what most readers want, and behind "More" the details. Keyboard as in WAI-ARIA's tabs.

import { h } from "./dom.ts";
import type { View } from "./views/common.ts";

export interface Tabs {
  elements: HTMLElement[];
  /** Mark the tab of a view, and show its level. */
  mark(view: string): void;
}

interface Tab {
  id: string;
  title: string;
  open(): void;
}

export function makeTabs(views: View[], open: (view: string) => void): Tabs {
  const details = views.filter((view) => view.level === 2);
  // One view behind "More" would only cost a click.
  const hasMore = details.length > 1 && details.length < views.length;
  let lastDetail = details[0]?.name ?? "";
  const asTab = ({ name, title }: View): Tab => ({ id: name, title, open: () => open(name) });
  const more: Tab = { id: "more", title: "More", open: () => open(lastDetail) };
  const first = makeList(
    "Views",
    "panel",
    hasMore ? [...views.filter((view) => view.level !== 2).map(asTab), more] : views.map(asTab),
  );
  const second = makeList("More views", "panel", hasMore ? details.map(asTab) : []);
  second.element.id = "more-views";
  first.button("more")?.setAttribute("aria-controls", "more-views");
  return {
    elements: [first.element, second.element],
    mark(view) {
      const isDetail = hasMore && details.some((item) => item.name === view);
      if (isDetail) lastDetail = view;
      second.element.hidden = !isDetail;
      first.mark(isDetail ? "more" : view);
      second.mark(view);
    },
  };
}

function makeList(label: string, panel: string, tabs: Tab[]) {
  const buttons = tabs.map(({ id, title, open }) =>
    h("button", { type: "button", role: "tab", id: `tab-${id}`, "aria-controls": panel, onclick: open }, title),
  );
  const element = h("div", { class: "tabs", role: "tablist", "aria-label": label }, ...buttons);
  element.addEventListener("keydown", (event) => {
    const at = buttons.indexOf(event.target as HTMLButtonElement);
    const last = tabs.length - 1;
    const moves: Record<string, number> = {
      ArrowLeft: at > 0 ? at - 1 : last,
      ArrowRight: at < last ? at + 1 : 0,
      Home: 0,
      End: last,
    };
    const next = moves[event.key];
    if (at < 0 || next === undefined) return;
    event.preventDefault();
    tabs[next].open();
    buttons[next].focus();
  });
  return {
    element,
    button: (id: string) => buttons[tabs.findIndex((tab) => tab.id === id)],
    mark: (id: string) =>
      tabs.forEach((tab, i) => {
        buttons[i].setAttribute("aria-selected", String(tab.id === id));
        buttons[i].tabIndex = tab.id === id ? 0 : -1;
        if (tab.id === id) element.scrollLeft = buttons[i].offsetLeft - element.offsetLeft - 40;
      }),
  };
}
