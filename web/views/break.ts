// Break it: every head is a light switch. What the model writes without it stands beneath, compared with the original.

import { fill, h } from "../dom.ts";
import { type AblatedOutput, type Group, Loader } from "../document.ts";
import {
  type OutputChange,
  cellText,
  effectSentence,
  findHarmful,
  findHurtWord,
  findNeeded,
  hasEffect,
  labelChanges,
  listEffects,
  signed,
  times,
  wordChanges,
} from "../effects.ts";
import { nameOutput } from "../headline.ts";
import { showText } from "../tokens.ts";
import { diffWords } from "../word_diff.ts";
import { drawSwitches, layoutSwitches, parseHead } from "./break_drawing.ts";
import {
  type Context,
  GROUP_TITLES,
  type Mounted,
  type View,
  headName,
  quote,
  saveButton,
  showPercent,
} from "./common.ts";

export const breakIt: View = {
  name: "break",
  title: "Break it",
  applies: (doc) => doc.ablation !== null && doc.attention.length > 0,
  mount,
};

function mount({ doc, store, blobs, live }: Context): Mounted {
  const data = doc.ablation!;
  const groups = doc.attention.filter((group) => data.delta[group.name]);
  const effects = new Map(listEffects(data).map((effect) => [effect.key, effect]));
  const [needed, harmful] = [findNeeded(data), findHarmful(data)];
  const largest = Math.max(1e-9, ...[...effects.values()].map(({ delta }) => Math.abs(delta)));
  const outputs = new Loader<AblatedOutput>(
    (keys) => live.ablate(keys.split(",")),
    () => store.notify(),
  );
  const readout = h("p", { class: "readout", role: "status", "aria-live": "polite" });
  const card = h("div", { class: "card result" });
  const allOn = button("All on", () => store.set({ headsOff: [] }));
  const switches = new Map<string, HTMLButtonElement>();
  const grids = groups.map(makeGrid);
  const save = saveButton(
    () => `break.${shownGroup().name}`,
    () => layoutSwitches(shownGroup(), 900),
    (renderer, theme) => {
      const group = shownGroup();
      drawSwitches(renderer, data, group, layoutSwitches(group, 900), theme, store.state.headsOff);
    },
  );
  const element = h(
    "section",
    { class: "break", "aria-label": "Break it" },
    h("h2", {}, "What breaks if a head is switched off?"),
    h("p", { class: "fact" }, summarize()),
    h(
      "div",
      { class: "controls" },
      needed && button("Switch off the head that matters most", () => store.set({ headsOff: [needed.key] })),
      harmful && button("Switch off the head that hurts most", () => store.set({ headsOff: [harmful.key] })),
      allOn,
      save,
    ),
    h("div", { class: "grids" }, ...grids),
    readout,
    card,
    h(
      "div",
      { class: "legend small" },
      h("span", {}, h("i", { class: "plus" }), "the head helps: without it the output is less probable (÷)"),
      h("span", {}, h("i", { class: "minus" }), "without it the output is more probable (×)"),
    ),
    h("p", { class: "small" }, limits()),
  );

  function button(text: string, onclick: () => void): HTMLButtonElement {
    return h("button", { type: "button", onclick }, text);
  }

  function shownGroup(): Group {
    const [key] = store.state.headsOff;
    return groups.find((group) => key && parseHead(key).group === group.name) ?? groups[0];
  }

  function summarize(): string {
    if (!needed) return `No single head is needed: without any of them ${data.output} stays about as probable.`;
    const name = headName(needed.group, needed.layer, needed.head);
    return `${name} matters most. ${effectSentence(data, needed.delta).replace("this head", "it")}`;
  }

  function limits(): string {
    const total = effects.size;
    const stored = Object.keys(data.texts).length;
    const missing =
      doc.model.family !== "encoder_only" && stored < total && !live.available
        ? ` It has the new output of ${stored} of ${total} heads, those with the largest effect: the rest would have taken long.`
        : "";
    const several = live.available
      ? "Switch off as many heads as you like."
      : `A saved page switches off one head at a time: it has no model to try combinations with (regard look has).${missing}`;
    return `${several} ÷8.0: the output is 8 times less probable without the head. Heads can replace each other, so a small change does not mean that a head does nothing.`;
  }

  function toggle(key: string): void {
    const { headsOff } = store.state;
    const rest = headsOff.filter((other) => other !== key);
    if (rest.length < headsOff.length) store.set({ headsOff: rest });
    else store.set({ headsOff: live.available ? [...headsOff, key] : [key] });
  }

  function makeGrid(group: Group): HTMLElement {
    const grid = h("div", {
      class: group.heads > 8 ? "switches dense" : "switches",
      style: `--heads: ${group.heads}`,
      "data-group": group.name,
    });
    grid.append(h("span", { class: "small" }, "layer"));
    for (let head = 0; head < group.heads; head++)
      grid.append(h("span", { class: "small" }, head === 0 && group.heads <= 8 ? "head 1" : String(head + 1)));
    for (let layer = 0; layer < group.layers; layer++) {
      grid.append(h("span", { class: "small" }, String(layer + 1)));
      for (let head = 0; head < group.heads; head++) {
        const key = `${group.name}.${layer}.${head}`;
        const delta = effects.get(key)?.delta ?? 0;
        const share = Math.round((42 * Math.abs(delta)) / largest); // the number stays readable on it
        const color = delta < 0 ? "--hue" : "--minus";
        const item = h(
          "button",
          {
            type: "button",
            role: "switch",
            class: "switch",
            tabindex: layer + head === 0 ? 0 : -1,
            "aria-label": `${headName(group.name, layer, head)}${delta ? `, ${cellText(delta) || "no effect"}` : ""}`,
            title: `${headName(group.name, layer, head)}: ${signed(delta)} nats`,
            style: `--effect: color-mix(in srgb, var(${color}) ${share}%, var(--page))`,
            onclick: () => toggle(key),
            onfocus: () => point(key),
            onblur: () => point(null),
            onpointerenter: () => point(key),
            onpointerleave: () => point(null),
          },
          h("i", { "aria-hidden": "true" }),
          h("span", { "aria-hidden": "true" }, cellText(delta)),
        );
        item.dataset.key = key;
        switches.set(key, item);
        grid.append(item);
      }
    }
    grid.addEventListener("keydown", (event) => {
      const moves: Record<string, [number, number]> = {
        ArrowUp: [-1, 0],
        ArrowDown: [1, 0],
        ArrowLeft: [0, -1],
        ArrowRight: [0, 1],
      };
      const from = (event.target as HTMLElement).dataset.key;
      if (event.key === "Escape") return store.set({ headsOff: [] });
      const move = moves[event.key];
      if (!move || !from) return;
      event.preventDefault();
      const { layer, head } = parseHead(from);
      const next = switches.get(`${group.name}.${layer + move[0]}.${head + move[1]}`);
      if (!next) return;
      switches.get(from)!.tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
    });
    return h("div", { class: "group" }, h("h3", {}, GROUP_TITLES[group.name]), h("div", { class: "scroller" }, grid));
  }

  /** Read the effect of a head that is not off: one that is off is described beneath. */
  function point(key: string | null): void {
    const effect = key === null ? undefined : effects.get(key);
    readout.textContent = effect
      ? `${headName(effect.group, effect.layer, effect.head)}. ${effectSentence(data, effect.delta)}`
      : "Every switch is a head. Switch one off to see what changes without it.";
  }

  /** What is known of the heads that are off; null while it is computed. */
  function read(keys: string[]): AblatedOutput | null {
    const [key] = keys;
    if (keys.length === 1) {
      const { group, layer, head } = parseHead(key);
      const name = data.token_deltas?.[group];
      const decoded = name && doc.blobs[name] ? blobs.read(name) : undefined;
      const n = decoded?.shape[2] ?? 0;
      const start = (layer * (decoded?.shape[1] ?? 0) + head) * n;
      const stored: AblatedOutput = {
        text: data.texts[key],
        delta: effects.get(key)?.delta,
        token_deltas: decoded && Array.from(decoded.codes.subarray(start, start + n)),
        predictions: data.predictions?.[key],
      };
      const isWhole = stored.text !== undefined || stored.predictions !== undefined;
      if (isWhole || !live.available) return stored;
    }
    return outputs.read(keys.join()) ?? null;
  }

  function describe(keys: string[]): HTMLElement[] {
    if (keys.length === 0)
      return [
        h("p", { class: "retyped", dir: "auto" }, showText(nameOutput(doc))),
        h("p", { class: "small" }, "All heads are on."),
      ];
    const names = keys.map(parseHead).map(({ group, layer, head }) => headName(group, layer, head));
    const title = h("p", { class: "small" }, `Off: ${names.slice(0, 6).join("; ")}${names.length > 6 ? "; …" : ""}`);
    const result = read(keys);
    if (!result) {
      const wait =
        keys.length === 1 ? "Running the model without this head …" : "Running the model without these heads …";
      return [title, h("p", {}, outputs.problem(keys.join()) ?? wait)];
    }
    const { delta, token_deltas: deltas, predictions, text } = result;
    const words = deltas ? wordChanges(doc, deltas) : [];
    const effect = delta === undefined ? "Not measured." : effectSentence(data, delta, keys.length);
    const hint =
      delta === undefined ? "" : `${times(delta)} ${delta < 0 ? "less" : "more"} probable; ${signed(delta)} nats`;
    return [
      title,
      ...(predictions ? describeLabels(predictions) : describeText(text)),
      h("p", { class: "effect", title: hint }, effect),
      ...describeWords(words, delta),
    ];
  }

  function describeLabels(predictions: NonNullable<AblatedOutput["predictions"]>): HTMLElement[] {
    const changes = labelChanges(doc, predictions);
    const isChanged = doc.predictions.some((item, i) => item.labels[0] !== predictions[i]?.labels[0]);
    const single = doc.predictions.length === 1;
    return [
      ...(changes.length ? changes.slice(0, 12) : [nameOutput(doc)]).map((change) =>
        h("p", { class: "retyped", dir: "auto" }, showText(change)),
      ),
      h(
        "p",
        { class: "small verdict" },
        isChanged
          ? single
            ? "The label changes."
            : `${changes.length} of ${doc.predictions.length} predictions change.`
          : single
            ? "The label stays the same."
            : "All predictions stay the same.",
      ),
    ];
  }

  function describeText(text: string | undefined): HTMLElement[] {
    if (doc.model.family === "encoder_only")
      return [h("p", { class: "retyped", dir: "auto" }, showText(nameOutput(doc)))];
    if (text === undefined)
      return [
        h(
          "p",
          { class: "small verdict" },
          "This page does not have the new output of this head; regard look shows it.",
        ),
      ];
    const pieces = diffWords(showText(doc.output, 4000).trim(), showText(text, 4000).trim());
    const parts = pieces.map(({ kind, text: piece }) =>
      kind === "same" ? piece : h(kind === "removed" ? "del" : "ins", {}, piece),
    );
    const isSame = text === doc.output;
    return [
      h("p", { class: "retyped", dir: "auto" }, ...parts),
      h(
        "p",
        { class: "small verdict" },
        isSame ? "The output stays the same." : text.trim() ? "The output changes." : "Nothing is left.",
      ),
    ];
  }

  /** Which word of the original output suffers. */
  function describeWords(words: OutputChange[], delta: number | undefined): HTMLElement[] {
    const hurt = findHurtWord(words);
    if (!hurt || delta === undefined || !hasEffect(delta) || words.length < 2) return [];
    const factor = (word: OutputChange) => Math.log(word.after / word.before) || 0;
    const most = Math.max(...words.map((word) => Math.abs(factor(word))));
    const marks = words.map((word) => {
      const change = factor(word);
      const share = most > 0 ? Math.round((42 * Math.abs(change)) / most) : 0;
      const color = change < 0 ? "--hue" : "--minus";
      const title = `${showPercent(word.before)} → ${showPercent(word.after)}`;
      return h(
        "span",
        { class: "word", title, style: `background: color-mix(in srgb, var(${color}) ${share}%, var(--page))` },
        showText(word.label, 40),
      );
    });
    return [
      h(
        "p",
        { class: "hurt" },
        `${quote(showText(hurt.label, 40))} suffers most: from ${showPercent(hurt.before)} to ${showPercent(hurt.after)}.`,
      ),
      h("p", { class: "words", dir: "auto" }, ...marks.slice(0, 80)),
    ];
  }

  function update(): void {
    const { headsOff } = store.state;
    for (const [key, item] of switches) item.setAttribute("aria-checked", String(!headsOff.includes(key)));
    allOn.disabled = headsOff.length === 0;
    fill(card, ...describe(headsOff));
    if (!readout.textContent) point(null);
  }

  return { element, update };
}
