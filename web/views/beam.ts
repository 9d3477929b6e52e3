// The view of a search: every hypothesis that it considered, the winner, and where a dropped one would have led.

import { fill, h } from "../dom.ts";
import { type Continuation, Loader, type LookDocument, type Search, type TokenInfo } from "../document.ts";
import { zoom } from "../present.ts";
import { SvgRenderer } from "../renderer.ts";
import type { State } from "../state.ts";
import { readTheme } from "../theme.ts";
import { joinTokens, showText, tokenLabel } from "../tokens.ts";
import { drawBeam, drawFocus, textOf } from "./beam_drawing.ts";
import { type BeamLayout, layoutBeam, lineage, locateInBeam, neighbor } from "./beam_layout.ts";
import { type Context, type Mounted, type View, invite, quote, saveButton, showWeight } from "./common.ts";

export const beam: View = {
  name: "search",
  title: "Search",
  applies: (doc) => doc.search !== null && doc.search.step.length > 1,
  mount,
};

function mount({ doc, store, live }: Context): Mounted {
  const search = doc.search!;
  const vocabulary = { ...doc.vocabulary };
  const continuations = new Loader<Continuation>(
    async (key) => {
      const known = search.continuations[key];
      if (known) return known;
      const answer = await live.continue(Number(key));
      Object.assign(vocabulary, answer.vocabulary);
      return answer.continuation;
    },
    () => store.notify(),
  );

  const summary = h("p", { class: "fact" });
  const controls = h("div", { class: "controls" });
  const surface = h("div", {
    class: "stage",
    tabindex: 0,
    role: "application",
    "aria-label": "Candidates of the search by step and rank. Arrow keys move, Escape leaves.",
  });
  const scroller = h("div", { class: "scroller" }, surface);
  const readout = h("p", { class: "readout", role: "status", "aria-live": "polite" });
  const card = h("div", { class: "card" });
  const element = h(
    "section",
    { class: "beam", "aria-label": "Beam search" },
    h("h2", {}, titleOf(search)),
    summary,
    controls,
    readout,
    scroller,
    makeLegend(),
    card,
  );

  let layout: BeamLayout = layoutBeam(search, search.winner_step);
  let base: SVGSVGElement | null = null;
  let focus: SVGSVGElement | null = null;
  const locate = (event: MouseEvent) => {
    const box = surface.getBoundingClientRect();
    return locateInBeam(layout, (event.clientX - box.left) / zoom(), (event.clientY - box.top) / zoom());
  };
  surface.addEventListener("pointermove", (event) => store.set({ pointed: locate(event) }));
  surface.addEventListener("pointerleave", () => store.set({ pointed: null }));
  surface.addEventListener("click", (event) => store.set({ candidate: locate(event) }));
  surface.addEventListener("keydown", (event) => {
    if (event.key === "Escape") return store.set({ candidate: null });
    if (!event.key.startsWith("Arrow")) return;
    event.preventDefault();
    const from = store.state.candidate;
    const next = from === null || !layout.nodes.has(from) ? 0 : neighbor(search, layout, from, event.key);
    if (next === null) return;
    store.set({ candidate: next, pointed: null });
    const node = layout.nodes.get(next)!;
    if (node.x < scroller.scrollLeft || node.x + layout.node > scroller.scrollLeft + scroller.clientWidth)
      scroller.scrollLeft = node.x - scroller.clientWidth / 2;
  });

  function update(changed: Set<keyof State>): void {
    const { state } = store;
    const theme = readTheme();
    if (changed.size === 0 || changed.has("unfolded")) {
      layout = layoutBeam(search, state.unfolded ? search.last_step : search.winner_step, element.clientWidth);
      surface.dataset["step"] = String(layout.step);
      const renderer = new SvgRenderer(layout.width, layout.height, theme.font);
      drawBeam(renderer, search, vocabulary, layout, theme);
      base?.remove();
      base = renderer.element;
      base.setAttribute("aria-hidden", "true");
      surface.style.width = `${layout.width}px`;
      surface.style.height = `${layout.height}px`;
      surface.prepend(base);
      summary.textContent = summarize(search);
      fill(controls, foldButton(), makeSave());
    }
    const shown = state.pointed ?? state.candidate;
    const renderer = new SvgRenderer(layout.width, layout.height, theme.font);
    for (const candidate of new Set([state.candidate, state.pointed]))
      if (candidate !== null && layout.nodes.has(candidate))
        drawFocus(renderer, search, vocabulary, layout, theme, candidate);
    focus?.remove();
    focus = renderer.element;
    focus.setAttribute("aria-hidden", "true");
    surface.append(focus);
    readout.textContent =
      shown === null ? invitation(live.available) : sentence(doc, search, vocabulary, layout, shown);
    card.hidden = state.candidate === null || state.candidate === 0;
    if (!card.hidden) fill(card, ...describe(state.candidate!));
  }

  function foldButton(): HTMLElement | null {
    const extra = search.last_step - search.winner_step;
    if (extra <= 0) return null;
    const steps = extra === 1 ? "step" : "steps";
    const text = store.state.unfolded
      ? `Hide the last ${extra === 1 ? "" : `${extra} `}${steps}`
      : `Show ${extra} more ${steps}`;
    return h("button", { type: "button", onclick: () => store.set({ unfolded: !store.state.unfolded }) }, text);
  }

  function makeSave(): HTMLElement {
    return saveButton(
      () => "search",
      () => layout,
      (renderer, theme) => drawBeam(renderer, search, vocabulary, layout, theme),
    );
  }

  function describe(candidate: number): HTMLElement[] {
    const path = lineage(search, candidate);
    const text = textOf(search, vocabulary, path);
    const facts: [string, string][] = [
      ["Status", STATUS[search.status[candidate]]],
      ["Token", `${tokenLabel(vocabulary[search.token[candidate]])}, probability ${probability(search, candidate)}`],
      ["Log-probability", showNumber(search.total[candidate])],
      [
        "Score",
        `${showNumber(search.score[candidate])} (the winner's: ${showNumber(search.score[search.winners[0]])})`,
      ],
    ];
    const list = h("dl", {}, ...facts.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
    return [h("p", { dir: "auto" }, h("strong", {}, quote(text))), list, ...continuation(candidate)];
  }

  const known = (candidate: number) => doc.hypotheses.findIndex((item) => item.candidate === candidate);

  async function showAlignment(candidate: number): Promise<void> {
    if (known(candidate) < 0) {
      try {
        const answer = await live.hypothesis(candidate);
        Object.assign(doc.blobs, answer.blobs);
        doc.hypotheses.push(answer.hypothesis);
      } catch (error) {
        readout.textContent = error instanceof Error ? error.message : String(error);
        return;
      }
    }
    store.set({ view: "alignment", hypothesis: known(candidate), hover: null, locked: null });
  }

  function continuation(candidate: number): HTMLElement[] {
    if (
      search.status[candidate] === "finished" &&
      doc.hypotheses.length > 0 &&
      (live.available || known(candidate) >= 0)
    )
      return [
        h("p", {}, h("button", { type: "button", onclick: () => void showAlignment(candidate) }, "Show its alignment")),
      ];
    if (search.lineage.includes(candidate)) return [h("p", { class: "small" }, "It is part of the winner.")];
    if (!search.continuations[candidate] && !live.available)
      return [h("p", { class: "small" }, "A live page (regard look) shows where this hypothesis would have led.")];
    const found = continuations.read(String(candidate));
    if (!found) {
      const problem = continuations.problem(String(candidate));
      return [h("p", { class: "small" }, problem ?? "Continuing this hypothesis …")];
    }
    const forced = joinTokens(found.tokens.slice(0, found.forced).map((id) => vocabulary[id]));
    const best = search.score[search.winners[0]];
    const difference = best === null ? null : found.score - best;
    const verdict =
      difference === null
        ? ""
        : difference > 1e-6
          ? " Higher than the winner: the search missed it."
          : ` ${(-difference).toFixed(2)} lower than the winner (higher is better).`;
    const text = showText(found.text);
    const length = prefixLength(text, forced);
    const rest = length ? [h("mark", {}, text.slice(0, length)), text.slice(length)] : [text];
    return [
      h("p", { dir: "auto" }, "If the model had to begin this way: ", ...rest),
      h("p", { class: "small" }, `Score ${showNumber(found.score)}.${verdict} The same search continued it.`),
    ];
  }

  return { element, update };
}

const STATUS: Record<Search["status"][number], string> = {
  open: "kept and extended",
  finished: "finished",
  dropped: "dropped: not among the best of its step",
  beaten: "open when the search ended: it could not win any more",
};

/** How much of a text a prefix covers if spaces do not count (detokenizing may add them); 0 if it is not a prefix. */
function prefixLength(text: string, prefix: string): number {
  const wanted = prefix.replace(/\s/g, "");
  let found = 0;
  for (let i = 0; i < text.length; i++) {
    if (/\s/.test(text[i])) continue;
    if (found === wanted.length) return i;
    if (text[i] !== wanted[found++]) return 0;
  }
  return found === wanted.length ? text.length : 0;
}

function titleOf(search: Search): string {
  const size = search.settings["beam_size"];
  return search.settings["search"] === "greedy" ? "Greedy search" : `Beam search, ${String(size)} hypotheses per step`;
}

/** What the search did, in two or three sentences. */
function summarize(search: Search): string {
  const layout = layoutBeam(search, search.winner_step);
  const ranks = search.lineage.slice(1).map((candidate) => layout.nodes.get(candidate)?.rank ?? 1);
  const worst = Math.max(...ranks);
  const parts = [`The winner ended at step ${search.winner_step}.`];
  parts.push(
    worst === 1
      ? "It ranked first at every step."
      : `It was not always the best: at step ${ranks.indexOf(worst) + 1} it ranked ${worst} of ${layout.steps[ranks.indexOf(worst) + 1].length}.`,
  );
  if (search.last_step > search.winner_step)
    parts.push(`The search continued to step ${search.last_step} to see whether a longer hypothesis wins.`);
  else if (search.end === "max_new_tokens") parts.push("It ended at the maximum length.");
  return parts.join(" ");
}

function sentence(
  doc: LookDocument,
  search: Search,
  vocabulary: Record<string, TokenInfo>,
  layout: BeamLayout,
  candidate: number,
): string {
  if (candidate === 0) return `The search starts from the text ${quote(showText(doc.text, 80))}.`;
  const text = textOf(search, vocabulary, lineage(search, candidate), 120);
  const rank = layout.nodes.get(candidate)?.rank;
  const place = rank ? `rank ${rank}, ` : "";
  return `Step ${search.step[candidate]}, ${place}${STATUS[search.status[candidate]]}: ${quote(text)}. Token probability ${probability(search, candidate)}, score ${showNumber(search.score[candidate])}.`;
}

function invitation(isLive: boolean): string {
  return invite(
    "a hypothesis",
    "to read it",
    isLive ? "Click a dropped one to see where it would have led" : "Click to pin",
  );
}

function probability(search: Search, candidate: number): string {
  return showWeight(Math.exp(search.logprob[candidate] ?? -Infinity));
}

function showNumber(value: number | null): string {
  return value === null ? "−∞" : value.toFixed(2).replace("-", "−");
}

function makeLegend(): HTMLElement {
  const item = (name: string, text: string) => h("span", {}, h("i", { class: name }), text);
  return h(
    "div",
    { class: "legend small" },
    item("winner", "winner"),
    item("", "kept"),
    item("finished", "finished"),
    item("dropped", "dropped"),
    h("span", {}, "number and bar: probability of the token"),
  );
}
