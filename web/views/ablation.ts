// The view of ablation: what happens to the output if one head is switched off.

import { fill, h } from "../dom.ts";
import { type Ablation, type Group, type GroupName, Loader } from "../document.ts";
import type { AblatedOutput } from "../live.ts";
import type { Renderer } from "../renderer.ts";
import type { State } from "../state.ts";
import type { Theme } from "../theme.ts";
import { showText } from "../tokens.ts";
import { type Context, GROUP_TITLES, type Mounted, Stage, type View, saveButton } from "./common.ts";
import { type OverviewLayout, locateInOverview } from "./overview.ts";

type Head = { group: GroupName; layer: number; head: number };

export const ablation: View = {
  name: "ablation",
  title: "Head ablation",
  applies: (doc) => doc.ablation !== null && doc.attention.length > 0,
  mount,
};

function mount({ doc, store, live }: Context): Mounted {
  const data = doc.ablation!;
  const outputs = new Loader<AblatedOutput>(
    async (key) => (key in data.texts ? { text: data.texts[key] } : live.ablate(key)),
    () => store.notify(),
  );
  const readout = h("p", { class: "readout", role: "status", "aria-live": "polite" });
  const controls = h("div", { class: "controls" });
  const card = h("div", { class: "card" });
  const groups = doc.attention.filter((group) => data.delta[group.name]);
  const grids = groups.map(makeGrid);
  const element = h(
    "section",
    { class: "ablation", "aria-label": "Head ablation" },
    h("h2", {}, "Every head switched off by itself"),
    h("p", { class: "fact" }, summarize(data, groups)),
    controls,
    readout,
    h("div", { class: "grids" }, ...grids.map((grid) => grid.element)),
    h(
      "div",
      { class: "legend small" },
      h("span", {}, h("i", { class: "helped" }), "without it the output is less probable: the head helped"),
      h("span", {}, h("i", { class: "hindered" }), "without it the output is more probable"),
    ),
    card,
    h(
      "p",
      { class: "small" },
      "Numbers are changes of the log-probability in nats. Heads can replace each other: a small change does not mean that a head does nothing.",
    ),
  );

  function makeGrid(group: Group) {
    const stage = new Stage(`${GROUP_TITLES[group.name]}: change of the output per head. Arrow keys move.`, {
      "data-group": group.name,
    });
    let layout = layoutGrid(group, 600);
    const choose = (place: { layer: number; head: number } | null) =>
      store.set({ ablated: place && { group: group.name, ...place } });
    stage.element.addEventListener("pointermove", (event) => {
      const { x, y } = stage.locate(event);
      const place = locateCell(group, layout, x, y);
      readout.textContent = place ? sentence(data, { group: group.name, ...place }) : idle();
    });
    stage.element.addEventListener("pointerleave", () => (readout.textContent = idle()));
    stage.element.addEventListener("click", (event) => {
      const { x, y } = stage.locate(event);
      choose(locateCell(group, layout, x, y));
    });
    stage.element.addEventListener("keydown", (event) => {
      if (event.key === "Escape") return choose(null);
      const moves: Record<string, [number, number]> = {
        ArrowUp: [-1, 0],
        ArrowDown: [1, 0],
        ArrowLeft: [0, -1],
        ArrowRight: [0, 1],
      };
      const move = moves[event.key];
      if (!move) return;
      event.preventDefault();
      const from = store.state.ablated;
      if (from?.group !== group.name) return choose({ layer: 0, head: 0 });
      const clamp = (value: number, count: number) => Math.max(0, Math.min(count - 1, value));
      choose({ layer: clamp(from.layer + move[0], group.layers), head: clamp(from.head + move[1], group.heads) });
    });
    const draw = (width: number) => {
      layout = layoutGrid(group, width);
      stage.describe(layout.left, layout.top, layout.pitch);
      stage.draw(layout.width, layout.height, (renderer, theme) =>
        drawAblation(renderer, data, group, layout, theme, store.state.ablated),
      );
    };
    const heading = h("h3", {}, GROUP_TITLES[group.name]);
    return { element: h("div", { class: "group" }, heading, h("div", { class: "scroller" }, stage.element)), draw };
  }

  const idle = () => {
    const chosen = store.state.ablated;
    return chosen
      ? sentence(data, chosen)
      : "Point at a head to read its effect. Click to see the new output; arrow keys move.";
  };

  function update(_: Set<keyof State>): void {
    const { ablated } = store.state;
    grids.forEach((grid) => grid.draw(Math.max(260, element.clientWidth)));
    readout.textContent = idle();
    const first = groups[0];
    fill(
      controls,
      saveButton(
        () => `ablation.${ablated?.group ?? first.name}`,
        () => layoutGrid(groups.find((group) => group.name === ablated?.group) ?? first, 900),
        (renderer, theme) => {
          const group = groups.find((item) => item.name === ablated?.group) ?? first;
          drawAblation(renderer, data, group, layoutGrid(group, 900), theme, ablated);
        },
      ),
    );
    card.hidden = ablated === null;
    if (ablated) fill(card, ...describe(ablated));
  }

  function describe(head: Head): HTMLElement[] {
    const key = `${head.group}.${head.layer}.${head.head}`;
    const before = h("p", { dir: "auto" }, h("span", { class: "small" }, "With all heads: "), showText(doc.output));
    const title = h(
      "p",
      {},
      h("strong", {}, `${GROUP_TITLES[head.group]}, layer ${head.layer}, head ${head.head} off`),
    );
    if (doc.model.family === "encoder_only") {
      // Only what a model generates can change as a text; of labels, tags and gaps the numbers are what there is.
      const change = data.delta[head.group][head.layer][head.head];
      const text = `The log-probability of ${data.output} changes by ${change?.toFixed(2) ?? "–"} nats without this head.`;
      return [title, before, h("p", { class: "small" }, text)];
    }
    if (!(key in data.texts) && !live.available)
      return [
        title,
        before,
        h("p", { class: "small" }, "A live page (regard look) shows the new output of this head."),
      ];
    const output = outputs.read(key);
    if (!output)
      return [
        title,
        before,
        h("p", { class: "small" }, outputs.problem(key) ?? "Running the model without this head …"),
      ];
    const isSame = output.text === doc.output;
    const text = output.text === undefined ? "–" : showText(output.text);
    const after = h(
      "p",
      { dir: "auto" },
      h("span", { class: "small" }, "Without this head: "),
      isSame ? text : h("mark", {}, text),
    );
    return [
      title,
      before,
      after,
      h("p", { class: "small" }, isSame ? "The output stays the same." : "The output changes."),
    ];
  }

  return { element, update };
}

function layoutGrid(group: Group, available: number): OverviewLayout {
  const left = 26;
  const room = Math.floor((Math.min(available, 900) - left) / group.heads);
  const pitch = Math.max(9, Math.min(64, room));
  return {
    pitch,
    cell: pitch - (pitch > 20 ? 4 : 1),
    left,
    top: 18,
    width: left + group.heads * pitch,
    height: 18 + group.layers * rowPitch(pitch),
  };
}

// Cells are flat, so that numbers fit and many layers stay on the screen.
const rowPitch = (pitch: number) => Math.min(pitch, 36);

function locateCell(group: Group, layout: OverviewLayout, x: number, y: number) {
  const row = Math.floor((y - layout.top) / rowPitch(layout.pitch));
  return locateInOverview(group, layout, x, layout.top + (row + 0.5) * layout.pitch);
}

function drawAblation(
  renderer: Renderer,
  data: Ablation,
  group: Group,
  layout: OverviewLayout,
  theme: Theme,
  chosen: Head | null,
): void {
  const { left, top, pitch, cell } = layout;
  const [step, height] = [rowPitch(pitch), rowPitch(pitch) - (pitch - cell)];
  const largest = Math.max(
    1e-9,
    ...Object.values(data.delta)
      .flat(2)
      .map((value) => Math.abs(value ?? 0)),
  );
  const small = { fill: theme.muted, size: 11 };
  for (let head = 0; head < group.heads; head++)
    if (pitch >= 18 || head % 4 === 0)
      renderer.text(left + head * pitch + cell / 2, 8, String(head), { ...small, anchor: "middle" });
  data.delta[group.name].forEach((row, layer) => {
    const y = top + layer * step;
    if (step >= 14 || layer % 2 === 0)
      renderer.text(left - 8, y + height / 2, String(layer), { ...small, anchor: "end" });
    row.forEach((value, head) => {
      const x = left + head * pitch;
      if (value === null) return renderer.rect(x, y, cell, height, { stroke: theme.rule });
      const opacity = (0.62 * Math.abs(value)) / largest; // the number stays readable on it
      renderer.rect(x, y, cell, height, { fill: value < 0 ? theme.accent : theme.hue, opacity });
      renderer.rect(x + 0.5, y + 0.5, cell - 1, height - 1, { stroke: theme.rule });
      if (pitch >= 40)
        renderer.text(x + cell / 2, y + height / 2, signed(value), { fill: theme.ink, size: 12, anchor: "middle" });
    });
  });
  if (chosen?.group === group.name)
    renderer.rect(left + chosen.head * pitch, top + chosen.layer * step, cell, height, {
      stroke: theme.ink,
      width: 2.5,
    });
}

function summarize(data: Ablation, groups: Group[]): string {
  const all = groups.flatMap((group) =>
    data.delta[group.name].flatMap((row, layer) =>
      row.flatMap((value, head) => (value === null ? [] : [{ group: group.name, layer, head, value }])),
    ),
  );
  if (all.length === 0) return "";
  const worst = all.reduce((best, item) => (item.value < best.value ? item : best));
  if (worst.value >= 0) return `No single head is needed: without any of them ${data.output} stays as probable.`;
  const name = `${GROUP_TITLES[worst.group].toLowerCase()}, layer ${worst.layer}, head ${worst.head}`;
  return `${name[0].toUpperCase()}${name.slice(1)} matters most: without it ${data.output} is ${factor(worst.value)} times less probable.`;
}

function sentence(data: Ablation, { group, layer, head }: Head): string {
  const value = data.delta[group]?.[layer]?.[head];
  const name = `${GROUP_TITLES[group]}, layer ${layer}, head ${head}`;
  if (value === null || value === undefined) return `${name}: not measured.`;
  const effect =
    Math.abs(value) < 0.005 ? "about as probable" : `${factor(value)} times ${value < 0 ? "less" : "more"} probable`;
  return `Without ${name[0].toLowerCase()}${name.slice(1)}, ${data.output} is ${effect} (${signed(value)} nats from ${data.baseline.toFixed(2)}).`;
}

function factor(value: number): string {
  const times = Math.exp(Math.abs(value));
  return times < 10 ? times.toFixed(1) : times < 1e6 ? String(Math.round(times)) : times.toExponential(0);
}

function signed(value: number): string {
  return (value < 0 ? "−" : "+") + Math.abs(value).toFixed(2);
}
