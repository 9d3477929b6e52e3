// The examples of a film at one frame: output with its new words marked, and how likely the reference is.

import { fill, h } from "../dom.ts";
import { CanvasRenderer } from "../renderer.ts";
import { readTheme } from "../theme.ts";
import { showText } from "../tokens.ts";
import { showPercent } from "../views/common.ts";
import { diffWords } from "../word_diff.ts";
import type { FilmContext, Part } from "./context.ts";
import { type Film, perToken } from "./document.ts";

const [WIDTH, HEIGHT] = [120, 30];

/** What an example says in numbers at a frame. */
export function describeShot(film: Film, frame: number, probe: number): string {
  const [shot, { reference, reference_length }] = [film.frames[frame].probes[probe], film.probes[probe]];
  const each = (value: number | null, length: number) =>
    value === null ? "" : `${showPercent(value)}${length > 1 ? " per token" : ""}`;
  const output = each(perToken(shot.logprob, shot.length), shot.length);
  const expected = each(perToken(shot.reference_logprob, reference_length), reference_length);
  const isRight = reference !== "" && shot.output.trim() === reference.trim();
  return [output && `Output ${output}`, isRight ? "equal to the reference" : expected && `reference ${expected}`]
    .filter(Boolean)
    .join(" · ");
}

export function makeExamples(context: FilmContext): Part & { reset(): void } {
  const element = h("div", { class: "examples", role: "group", "aria-label": "Examples" });
  let rows: { output: HTMLElement; numbers: HTMLElement; line: HTMLCanvasElement; button: HTMLButtonElement }[] = [];
  let shown: Film | null = null;

  function build(film: Film): void {
    shown = film;
    rows = film.probes.map((probe, i) => {
      const output = h("strong", { dir: "auto" });
      const numbers = h("span", { class: "small" });
      const line = h("canvas", { "aria-hidden": "true", title: "Probability of the reference over the training" });
      const button = h(
        "button",
        { type: "button", class: "example", onclick: () => context.set({ probe: i }) },
        h("span", { class: "source", dir: "auto" }, showText(probe.text, 160)),
        output,
        probe.reference
          ? h("span", { class: "small", dir: "auto" }, `Reference: ${showText(probe.reference, 160)}`)
          : null,
        h("span", { class: "numbers" }, line, numbers),
      );
      return { output, numbers, line, button };
    });
    fill(element, ...rows.map((row) => row.button));
  }

  function update(film: Film): void {
    if (shown !== film) build(film);
    const { frame, probe: chosen } = context.state;
    rows.forEach((row, i) => {
      const text = film.frames[frame].probes[i].output;
      const before = frame > 0 ? film.frames[frame - 1].probes[i].output : text;
      const pieces = diffWords(before.slice(0, 2000), text.slice(0, 2000)).filter((piece) => piece.kind !== "removed");
      const nodes = pieces.map((piece) =>
        piece.kind === "added" ? h("mark", {}, showText(piece.text, 60)) : showText(piece.text, 60),
      );
      fill(row.output, ...(text.trim() === "" ? [h("span", { class: "small" }, "(nothing)")] : nodes));
      row.numbers.textContent = describeShot(film, frame, i);
      row.button.setAttribute("aria-pressed", String(i === chosen));
      drawLine(row.line, film, i, frame);
    });
  }
  return { element, update, reset: () => (shown = null) };
}

/** The probability of the reference per token at every frame, from 0 to 1. */
function drawLine(canvas: HTMLCanvasElement, film: Film, probe: number, current: number): void {
  const theme = readTheme();
  const length = film.probes[probe].reference_length;
  const values = film.frames.map((frame) => perToken(frame.probes[probe].reference_logprob, length));
  canvas.hidden = values.every((value) => value === null);
  if (canvas.hidden) return;
  const renderer = new CanvasRenderer(canvas, WIDTH, HEIGHT, theme.font);
  const x = (i: number) => 3 + (i / Math.max(1, values.length - 1)) * (WIDTH - 6);
  const y = (value: number) => HEIGHT - 3 - value * (HEIGHT - 6);
  const places = values.flatMap((value, i) => (value === null ? [] : [`${x(i).toFixed(1)} ${y(value).toFixed(1)}`]));
  renderer.path(`M0 ${HEIGHT - 2.5}H${WIDTH}`, { stroke: theme.rule });
  renderer.path(`M${places.join("L")}`, { stroke: theme.hue, width: 1.6 });
  const now = values[current];
  if (now !== null) renderer.rect(x(current) - 3, y(now) - 3, 6, 6, { fill: theme.accent, radius: 3 });
}
