// The heads of a group as a drawing in which a reader chooses one, by pointer or keys.

import { h } from "../dom.ts";
import type { Decoded, Group, Statistic } from "../document.ts";
import { type Context, GROUP_TITLES, Stage } from "./common.ts";
import { STATISTICS, drawOverview, layoutOverview, locateInOverview } from "./overview.ts";

/** Past this number of heads, a statistic colors a cell of each. */
const MAX_THUMBNAILS = 100;

export function hasThumbnails({ doc }: Context): boolean {
  return doc.attention.reduce((sum, group) => sum + group.layers * group.heads, 0) <= MAX_THUMBNAILS;
}

export interface Overview {
  element: HTMLElement;
  /** Draw the heads: a thumbnail of each, or where `thumbnails` is null a statistic. `mean`: the layer is chosen. */
  draw(width: number, thumbnails: Decoded | null | undefined, mean?: boolean): void;
}

/** `status` gets a sentence about the head under the pointer. */
export function makeOverview({ store }: Context, group: Group, subtitle: string, status: HTMLElement): Overview {
  const label = `${GROUP_TITLES[group.name]}: choose a head. Arrow keys move.`;
  const overview = new Stage(label, { "data-group": group.name });
  let layout = layoutOverview(group, 300, true);
  const say = (place: { layer: number; head: number } | null) => {
    status.textContent = place ? sentence(group, place.layer, place.head) : "";
  };
  const choose = (place: { layer: number; head: number }) => {
    const query = store.state.group === group.name ? store.state.query : null;
    store.set({ group: group.name, ...place, meanOfHeads: false, query, locked: null, hover: null });
  };
  overview.element.addEventListener("pointermove", (event) => {
    const { x, y } = overview.locate(event);
    say(locateInOverview(group, layout, x, y));
  });
  overview.element.addEventListener("pointerleave", () => say(null));
  overview.element.addEventListener("click", (event) => {
    const { x, y } = overview.locate(event);
    const place = locateInOverview(group, layout, x, y);
    if (!place) return;
    choose(place);
    // On a phone the map stands above the overview, most likely out of view.
    if (matchMedia("(max-width: 760px)").matches)
      overview.element.closest("section")?.querySelector(".detail")?.scrollIntoView();
  });
  overview.element.addEventListener("keydown", (event) => {
    const [down, right] =
      { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key] ?? [];
    if (down === undefined || right === undefined) return;
    event.preventDefault();
    const isHere = store.state.group === group.name;
    const from = isHere ? store.state : { layer: group.default_head[0], head: group.default_head[1] };
    const clamp = (value: number, count: number) => Math.max(0, Math.min(count - 1, value));
    const place = {
      layer: clamp(from.layer + (isHere ? down : 0), group.layers),
      head: clamp(from.head + (isHere ? right : 0), group.heads),
    };
    say(place);
    choose(place);
  });
  const draw = (width: number, thumbnails: Decoded | null | undefined, mean = false) => {
    const state = store.state;
    layout = layoutOverview(group, Math.max(200, width), thumbnails !== null);
    const selected = state.group === group.name ? { layer: state.layer, head: mean ? null : state.head } : null;
    overview.describe(layout.left, layout.top, layout.pitch);
    if (thumbnails !== undefined)
      overview.draw(layout.width + 4, layout.height, (renderer, theme) =>
        drawOverview(renderer, group, layout, theme, thumbnails, state.statistic, selected),
      );
  };
  const heading = h("h2", {}, GROUP_TITLES[group.name], h("span", { class: "small" }, ` ${subtitle}`));
  return { element: h("div", { class: "group" }, heading, h("div", { class: "scroller" }, overview.element)), draw };
}

function sentence(group: Group, layer: number, head: number): string {
  const parts = (Object.keys(STATISTICS) as Statistic[]).flatMap((name) => {
    const value = group.statistics[name]?.[layer]?.[head];
    return value === null || value === undefined ? [] : [STATISTICS[name].says(value.toFixed(2))];
  });
  const sampled = group.sampled_rows ? ` (sampled: ${group.sampled_rows} rows)` : "";
  return `Layer ${layer + 1}, head ${head + 1}: ${parts.join(", ")}${sampled}.`;
}
