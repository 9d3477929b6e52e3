// The page of a run: curves, a scrubber over the frames of its film, and what the model made of the examples there.

import { followAddress } from "../address.ts";
import { animationButton } from "../animation.ts";
import { fill, h, select } from "../dom.ts";
import { showText } from "../tokens.ts";
import { Stage, hasPointer } from "../views/common.ts";
import { CURVES, animateFilm, describeFrame } from "./animation.ts";
import type { FilmContext } from "./context.ts";
import { DASHES, drawCurves, drawStep, layoutCurves, listLines, listMetrics, metricTitle, valueAt } from "./curves.ts";
import { type FilmDocument, findFrame } from "./document.ts";
import { makeExamples } from "./examples.ts";
import { openingState, readLink, writeLink } from "./link.ts";
import { makeMap } from "./map.ts";
import style from "./style.css";

const FRAME_TIME = 300; // milliseconds
const POLL_TIME = 4000;

export function startFilm(first: FilmDocument, root: HTMLElement): void {
  const context: FilmContext = {
    doc: first,
    state: readLink(location.hash, first),
    set(patch) {
      context.state = { ...context.state, ...patch };
      update();
      address.changed();
    },
  };
  let playing: ReturnType<typeof setInterval> | undefined;

  const status = h("p", { class: "small", role: "status" });
  const controls = h("div", { class: "controls" });
  const chart = new Stage("Curves of the run", { role: "img", tabindex: null });
  const chartKey = h("p", { class: "small" });
  const slider = h("input", { type: "range", min: 0, class: "scrubber", "aria-label": "Step of the training" });
  const play = h("button", { type: "button", onclick: () => (playing ? pause() : start()) }, "Play");
  const where = h("output", { class: "small" });
  const hint = h("p", { class: "small" });
  const examples = makeExamples(context);
  const map = makeMap(context);
  const animation = animationButton(() => {
    const axes = placeCurves(CURVES.width, CURVES.height);
    return animateFilm(context, context.doc.film!, axes, describeRuns(context.doc), FRAME_TIME);
  });
  const scrubber = h("div", { class: "scrubber-row" }, play, slider, where, animation);
  const shots = h("div", { class: "shots" }, examples.element, map.element);
  const notes = h("div");
  const about = h("footer", { class: "small" }, "Made with Regard: ", h("code", {}, "regard look RUN"));
  const panel = h("div", { id: "panel" }, h("section", { "aria-label": "Training" }, controls, chart.element));
  panel.firstElementChild!.append(chartKey, scrubber, hint, shots);
  fill(
    root,
    h("header", {}, h("div", {}, h("h1", {}, showText(first.text, 160)), status, notes)),
    h("main", {}, panel, about),
  );

  const frames = () => context.doc.film?.frames ?? [];
  const move = (frame: number) => context.set({ frame: Math.max(0, Math.min(frames().length - 1, frame)) });
  const prefersStillness = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
  function pause(): void {
    clearInterval(playing);
    playing = undefined;
    play.textContent = "Play";
  }
  function start(): void {
    if (prefersStillness()) return move(context.state.frame + 1);
    if (context.state.frame >= frames().length - 1) move(0);
    play.textContent = "Pause";
    playing = setInterval(() => {
      move(context.state.frame + 1);
      if (context.state.frame >= frames().length - 1) pause();
    }, FRAME_TIME);
  }
  slider.addEventListener("input", () => {
    pause();
    move(Number(slider.value));
  });
  window.addEventListener("keydown", (event) => {
    const target = event.target as HTMLElement;
    if (!frames().length || event.ctrlKey || event.metaKey || event.altKey || target.closest("select, .scroller"))
      return;
    if (event.key === " " && !target.closest("button")) {
      event.preventDefault();
      return playing ? pause() : start();
    }
    const [at, last] = [context.state.frame, frames().length - 1];
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: last }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    pause();
    move(to);
  });
  chart.element.addEventListener("click", (event) => {
    if (!frames().length) return;
    const { x } = chart.locate(event);
    const far = (i: number) => Math.abs(axes().x(frames()[i].step) - x);
    pause();
    move(frames().reduce((best, _, i) => (far(i) < far(best) ? i : best), 0));
  });

  function placeCurves(width: number, height: number) {
    const { doc, state } = context;
    const lines = listLines(doc, state.metric);
    const reached = doc.runs.flatMap((run) => [...Object.values(run.training), ...Object.values(run.validation)]);
    const last = Math.max(1, ...reached.map((curve) => curve.steps.at(-1) ?? 0), frames().at(-1)?.step ?? 0);
    return layoutCurves(lines, last, state.isLog, width, height);
  }
  const axes = () => placeCurves(Math.max(260, (panel.clientWidth || 800) - 4), window.innerWidth < 760 ? 170 : 220);

  function drawChart(): void {
    const { doc, state } = context;
    const place = axes();
    const steps = frames().map((frame) => frame.step);
    chart.draw(place.width, place.height, (renderer, theme) =>
      drawCurves(renderer, theme, listLines(doc, state.metric), place, steps),
    );
    chart.drawOverlay(place.width, place.height, (renderer, theme) => {
      if (frames().length) drawStep(renderer, theme, place, frames()[state.frame].step);
    });
    chart.element.setAttribute("aria-label", `${metricTitle(state.metric)} by step`);
  }

  function drawControls(): void {
    const { doc, state } = context;
    const metrics = listMetrics(doc).map((name) => [name, metricTitle(name)] as [string, string]);
    const axis: [string, string][] = [
      ["log", "logarithmic"],
      ["linear", "linear"],
    ];
    fill(
      controls,
      select("Curve", metrics, state.metric, (metric) => context.set({ metric })),
      select("Steps", axis, state.isLog ? "log" : "linear", (value) => context.set({ isLog: value === "log" })),
    );
  }

  let drawn: { doc: FilmDocument; metric: string; isLog: boolean } | null = null;
  function update(): void {
    const { doc, state } = context;
    if (drawn?.doc !== doc || drawn.metric !== state.metric || drawn.isLog !== state.isLog) {
      drawn = { doc, metric: state.metric, isLog: state.isLog };
      if (!controls.contains(document.activeElement)) drawControls();
      fill(status, ...describeRuns(doc).flatMap((text, i) => [i > 0 && h("br"), text]));
      fill(notes, ...doc.notes.map((note) => h("p", { class: "note" }, showText(note))));
      chartKey.textContent = describeKey(doc, state.metric);
    }
    drawChart();
    const { film } = doc;
    for (const element of [scrubber, hint, shots]) element.hidden = !film;
    if (!film) return;
    const frame = film.frames[state.frame];
    Object.assign(slider, { max: String(film.frames.length - 1) });
    slider.value = String(state.frame);
    animation.hidden = film.frames.length < 2;
    where.textContent = describeFrame(frame);
    slider.setAttribute("aria-valuetext", where.textContent);
    hint.textContent = hasPointer() ? "Arrow keys move, Space plays. Marked words are new since the frame before." : "";
    examples.update(film);
    map.update(film);
  }

  const address = followAddress(
    "#film",
    () => writeLink(context.state, openingState(context.doc), context.doc),
    (fragment) => {
      context.state = readLink(fragment, context.doc);
      drawn = null;
      update();
    },
  );

  /** Ask for news of runs that train. A page at the last frame stays at the last frame. */
  async function poll(): Promise<void> {
    const { doc, state } = context;
    const url = new URL("document", location.href);
    url.searchParams.set("version", doc.version);
    const response = await fetch(url).catch(() => null);
    const news = response?.ok ? ((await response.json()) as FilmDocument) : null;
    if (!news?.runs) return;
    const step = doc.film?.frames[state.frame]?.step ?? 0;
    const isLast = state.frame >= frames().length - 1;
    const found = findFrame(news.film?.frames ?? [], step);
    context.doc = news;
    const opening = openingState(news);
    const frame = isLast ? opening.frame : Math.max(0, found);
    context.state = doc.film ? { ...state, frame } : { ...opening, metric: state.metric };
    update();
  }
  if (first.live && location.protocol.startsWith("http")) {
    const isOver = () => context.doc.runs.every((run) => run.is_finished);
    let busy = false;
    const ask = async () => {
      if (busy || document.hidden || isOver()) return;
      busy = true;
      await poll().finally(() => (busy = false));
    };
    setInterval(ask, POLL_TIME);
    document.addEventListener("visibilitychange", ask);
  }

  let width = window.innerWidth;
  const redraw = () => {
    examples.reset();
    update();
  };
  window.addEventListener("resize", () => {
    if (window.innerWidth !== width) redraw();
    width = window.innerWidth;
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  document.head.append(h("style", {}, style));
  update();
}

/** One line per run: where it is. */
export function describeRuns(doc: FilmDocument): string[] {
  return doc.runs.map((run) => {
    const step = run.training["loss"]?.steps.at(-1) ?? 0;
    const metric = run.validation[run.metric];
    const score = valueAt(metric, Infinity);
    const parts = [
      `${doc.runs.length > 1 ? `${run.name}: ` : ""}${run.is_finished ? "finished at step" : "step"} ${step.toLocaleString("en")}`,
      run.is_finished ? "" : `of ${run.steps.toLocaleString("en")}`,
      score === null ? "" : `· validation ${metricTitle(run.metric).toLowerCase()} ${score.toFixed(3)}`,
    ];
    return showText(parts.filter(Boolean).join(" "));
  });
}

/** What the lines are. */
export function describeKey(doc: FilmDocument, metric: string): string {
  const lines = listLines(doc, metric);
  const has = (dots: boolean) => lines.some((line) => line.dots === dots);
  const kinds = has(true) && has(false) ? "Thin: training. Thick with dots: validation." : "";
  const patterns = ["solid", "dashed", "dotted", "dash-dotted"];
  const names = doc.runs.length > 1 ? doc.runs.map((run, i) => `${patterns[i % DASHES.length]}: ${run.name}`) : [];
  return showText([kinds, names.join(", ")].filter(Boolean).join(" "));
}
