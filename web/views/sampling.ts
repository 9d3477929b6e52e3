// The view of a sampling step: the distribution after each filter, and the race that chose the token.

import { fill, h } from "../dom.ts";
import { type Decoded, Loader, type Race, type SamplingStep, decodeBlob } from "../document.ts";
import { type Filtered, applyFilters, byValue, isOn } from "../filters.ts";
import type { State } from "../state.ts";
import { tokenLabel } from "../tokens.ts";
import { type Context, type Mounted, Stage, type View, quote, saveButton, showWeight } from "./common.ts";
import { type Row, drawRace, drawStages, layoutRace, layoutStages } from "./sampling_drawing.ts";

const SLIDERS: Record<string, { label: string; min: number; max: number; step: number; start: number }> = {
  no_repeat_ngram: { label: "no_repeat_ngram", min: 1, max: 6, step: 1, start: 3 },
  repetition_penalty: { label: "repetition_penalty", min: 0.5, max: 3, step: 0.05, start: 1.2 },
  temperature: { label: "temperature", min: 0, max: 2, step: 0.05, start: 0.8 },
  top_k: { label: "top_k", min: 1, max: 100, step: 1, start: 20 },
  top_p: { label: "top_p", min: 0.01, max: 1, step: 0.01, start: 0.9 },
  min_p: { label: "min_p", min: 0.01, max: 1, step: 0.01, start: 0.1 },
  typical_p: { label: "typical_p", min: 0.01, max: 1, step: 0.01, start: 0.9 },
};
const NEUTRAL: Record<string, number> = { temperature: 1, repetition_penalty: 1 };

export const sampling: View = {
  name: "sampling",
  title: "Sampling",
  applies: (doc) => (doc.sampling?.steps.length ?? 0) > 0,
  mount,
};

function mount({ doc, store, blobs, live }: Context): Mounted {
  const data = doc.sampling!;
  const target = doc.sequences.target ?? [];
  const asked = new Loader<Decoded>(
    async (position) => decodeBlob(await live.logits(Number(position))),
    () => store.notify(),
    16,
  );
  const steps = h("div", { class: "chips", role: "group", "aria-label": "Generated tokens" });
  const fact = h("p", { class: "fact" });
  const sliders = h("div", { class: "sliders" });
  const stageTitle = h("h3");
  const stages = new Stage("Probabilities after each filter", { role: "img", tabindex: null });
  const raceTitle = h("h3");
  const raceText = h("p", { class: "small" });
  const race = new Stage("How the token was drawn", { role: "img", tabindex: null });
  const raceControls = h("div", { class: "controls" });
  const readout = h("p", { class: "readout", role: "status", "aria-live": "polite" });
  const element = h(
    "section",
    { class: "sampling", "aria-label": "Sampling step" },
    h("h2", {}, "How one token was sampled"),
    h("div", { class: "scroller" }, steps),
    fact,
    readout,
    h(
      "div",
      { class: "columns" },
      h("div", {}, h("h3", {}, "Filters, in their order"), sliders),
      h("div", { class: "wide" }, stageTitle, makeScroller("Distributions", stages)),
      h("div", {}, raceTitle, raceText, makeScroller("Draw", race), raceControls),
    ),
  );
  let another: Race | null = null;
  buildSliders();

  const isRecorded = (state: State) =>
    data.filter_order.every((name) => {
      const [a, b] = [state.filters[name], data.filters[name]];
      return a === b || (!isOn(name, a) && !isOn(name, b));
    });
  const label = (token: number) => (doc.vocabulary[token] ? tokenLabel(doc.vocabulary[token]) : `#${token}`);

  function update(changed: Set<keyof State>): void {
    const { state } = store;
    if (changed.has("step") || changed.has("filters")) another = null;
    const step = data.steps[Math.min(state.step, data.steps.length - 1)];
    fill(steps, ...data.steps.map(makeChip));
    if (changed.size === 0 || changed.has("filters")) readSliders(state);
    const logits = step.logits ? blobs.read(step.logits) : live.available ? asked.read(String(step.position)) : null;
    if (!logits) {
      readout.textContent =
        logits === null
          ? "This file has no distribution of this step; a live page (regard look) has all."
          : "Reading the distribution …";
      fact.textContent = `${quote(label(step.token))} was generated.`;
      return;
    }
    const history = target.slice(0, step.position).map((token) => token.id);
    const filtered = applyFilters(logits.codes, history, state.filters, data.suppressed);
    const recorded = isRecorded(state);
    fact.textContent = summarize(step, filtered, recorded);
    readout.textContent = recorded
      ? "These are the recorded settings. Move a slider to see another distribution."
      : `Not the recorded settings: ${quote(label(step.token))} was sampled with ${describeSettings(data.filters)}.`;
    drawDistribution(step, filtered);
    drawRaceOf(step, filtered, recorded);
  }

  /** The most probable tokens and the sampled one, with their probabilities after each filter. */
  function makeRows(step: SamplingStep, filtered: Filtered): Row[] {
    const order = byValue(filtered.stages[0].probabilities).slice(0, 12);
    if (!order.includes(step.token)) order[order.length - 1] = step.token;
    return order.map((token) => ({
      label: label(token),
      values: filtered.stages.map((stage) => stage.probabilities[token]),
      isChosen: token === step.token,
    }));
  }

  function drawDistribution(step: SamplingStep, filtered: Filtered): void {
    const last = filtered.stages[filtered.stages.length - 1].probabilities;
    const rows = makeRows(step, filtered);
    const kept = last.reduce((count, value) => count + Number(value > 0), 0);
    const shown = rows.filter((row) => row.values[row.values.length - 1] > 0).length;
    const some = shown < kept ? `, ${shown} of them shown` : "";
    stageTitle.textContent = `${kept.toLocaleString("en")} of ${last.length.toLocaleString("en")} tokens are left${some}`;
    const names = filtered.stages.map((stage) => stage.name);
    const layout = layoutStages(rows.length, names.length);
    stages.draw(layout.width, layout.height, (renderer, theme) => drawStages(renderer, rows, names, layout, theme));
    stages.element.setAttribute(
      "aria-label",
      `Probabilities after the filters: ${rows
        .slice(0, 5)
        .map((row) => `${row.label} ${showWeight(row.values[row.values.length - 1])}`)
        .join(", ")}`,
    );
  }

  function drawRaceOf(step: SamplingStep, filtered: Filtered, recorded: boolean): void {
    const last = filtered.stages[filtered.stages.length - 1].probabilities;
    const shown = another ?? (recorded ? step.race : null);
    const again = () => {
      another = drawRaceOnce(last);
      store.notify();
    };
    const isGreedy = state().filters["temperature"] === 0;
    raceTitle.textContent = isGreedy
      ? "No dice: greedy"
      : another
        ? "Another draw, not the recorded one"
        : "How the dice fell";
    raceText.textContent = isGreedy
      ? "At temperature 0 the most probable token is taken."
      : shown
        ? `Each token gets a random wait (exponential, mean 1); the largest probability / wait wins. ${describeField(shown.contenders)}`
        : "No token was drawn with these settings. Draw one:";
    race.element.hidden = !shown || isGreedy;
    fill(
      raceControls,
      isGreedy ? null : h("button", { type: "button", onclick: again }, "Draw again"),
      another
        ? h("button", { type: "button", onclick: () => ((another = null), store.notify()) }, "Recorded draw")
        : null,
      saveButton(
        () => `sampling.${step.position}`,
        () => layoutStages(makeRows(step, filtered).length, filtered.stages.length),
        (renderer, theme) => {
          const rows = makeRows(step, filtered);
          const names = filtered.stages.map((stage) => stage.name);
          drawStages(renderer, rows, names, layoutStages(rows.length, names.length), theme);
        },
      ),
    );
    if (!shown || isGreedy) return;
    const layout = layoutRace(Math.min(8, shown.tokens.length));
    race.draw(layout.width, layout.height, (renderer, theme) => drawRace(renderer, shown, label, layout, theme));
    race.element.setAttribute("aria-label", `The draw: ${label(shown.tokens[0])} won`);
  }

  const state = () => store.state;

  function makeChip(step: SamplingStep, index: number): HTMLElement {
    return h(
      "button",
      { type: "button", "aria-pressed": String(index === store.state.step), onclick: () => store.set({ step: index }) },
      label(step.token),
    );
  }

  // Sliders are made once: a slider that is rebuilt while it moves loses the pointer.
  function buildSliders(): void {
    for (const name of data.filter_order) {
      const slider = SLIDERS[name];
      if (!slider) continue;
      const set = (value: number | null) => store.set({ filters: { ...store.state.filters, [name]: value } });
      const toggle = h("input", {
        type: "checkbox",
        "aria-label": `${slider.label} on`,
        onchange: () => set(toggle.checked ? slider.start : (NEUTRAL[name] ?? null)),
      });
      const { min, max, step } = slider;
      const range = h("input", {
        type: "range",
        min,
        max,
        step,
        id: `slider-${name}`,
        "data-name": name,
        oninput: () => set(Number(range.value)),
      });
      sliders.append(
        h(
          "div",
          { class: "slider" },
          toggle,
          h("label", { for: `slider-${name}` }, slider.label),
          range,
          h("output", {}),
        ),
      );
    }
    const reset = () => store.set({ filters: { ...data.filters } });
    sliders.append(h("button", { type: "button", onclick: reset }, "Recorded settings"));
  }

  function readSliders(state: State): void {
    for (const row of sliders.querySelectorAll(".slider")) {
      const range = row.querySelector<HTMLInputElement>("input[type=range]")!;
      const name = range.dataset["name"]!;
      const value = state.filters[name];
      const on = isOn(name, value);
      row.querySelector<HTMLInputElement>("input[type=checkbox]")!.checked = on;
      range.value = String(value ?? SLIDERS[name].start);
      row.querySelector("output")!.textContent = on ? String(Number(value!.toFixed(3))) : "off";
      row.classList.toggle("off", !on);
    }
  }

  function summarize(step: SamplingStep, filtered: Filtered, recorded: boolean): string {
    const first = filtered.stages[0].probabilities[step.token];
    const last = filtered.stages[filtered.stages.length - 1].probabilities[step.token];
    const rank = 1 + filtered.stages[0].probabilities.reduce((count, value) => count + Number(value > first), 0);
    const drawn = `${quote(label(step.token))} was sampled: the model's choice number ${rank}, probability ${showWeight(first)}`;
    if (recorded) return `${drawn}, after the filters ${showWeight(last)}.`;
    return last > 0
      ? `${drawn}; with these settings ${showWeight(last)}.`
      : `${drawn}; with these settings it is impossible.`;
  }

  return { element, update };
}

function describeField(contenders: number): string {
  return contenders === 1 ? "Only one token was left." : `${contenders.toLocaleString("en")} tokens took part.`;
}

/** The step whose token was least probable: there sampling shows most. */
export function mostSurprisingStep(steps: SamplingStep[]): number {
  const logprob = (step: SamplingStep) => step.logprob ?? 0;
  return steps.reduce((best, step, i) => (logprob(step) < logprob(steps[best]) ? i : best), 0);
}

/** A part that scrolls sideways on a narrow page, by the keys too. */
function makeScroller(label: string, stage: Stage): HTMLElement {
  return h("div", { class: "scroller", tabindex: 0, role: "group", "aria-label": label }, stage.element);
}

function describeSettings(filters: Record<string, number | null>): string {
  const parts = Object.entries(filters)
    .filter(([name, value]) => isOn(name, value))
    .map(([name, value]) => `${name} ${value}`);
  return parts.join(", ") || "no filter";
}

/** Draw waiting times as `regard.decode.filters.draw` does, with the browser's random numbers. */
function drawRaceOnce(probabilities: Float64Array): Race {
  const runners = Array.from(probabilities.keys())
    .filter((token) => probabilities[token] > 0)
    .map((token) => ({ token, probability: probabilities[token], time: -Math.log(1 - Math.random()) || 1e-12 }))
    .sort((a, b) => b.probability / b.time - a.probability / a.time);
  const best = runners.slice(0, 24);
  return {
    tokens: best.map((runner) => runner.token),
    probabilities: best.map((runner) => runner.probability),
    times: best.map((runner) => runner.time),
    contenders: runners.length,
  };
}
