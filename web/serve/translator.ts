// The view of a translation model: type, see the translation grow, point at words, choose other ones, translate files.

import { QUESTION, showCandidates } from "../blame.ts";
import { checkbox, fill, h, select } from "../dom.ts";
import { nameLanguage } from "../languages.ts";
import { splitSentences } from "../run/sentences.ts";
import { report } from "../report.ts";
import { makeAlternatives } from "./alternatives.ts";
import { RequestError, request, stream, type Model } from "./api.ts";
import { makeCorrectionBox } from "./correction.ts";
import { makeFileRow } from "./files.ts";
import { openInside } from "./inside.ts";
import { findWords, formatPercent, readCore, readSentence, readWords, type Sentence, type Word } from "./words.ts";

const MAX_CHARACTERS = 20_000;
const BEAM_SIZE = 5;
const CHUNK = { sentences: 16, characters: 3000 }; // of one request, far below the limits of a server
const WORDS = { tokens: true, confidence: true };
const DETAILS = [{ ...WORDS, alignment: true }, WORDS, {}]; // not every model can align its words, or say more than a text

/** A sentence of the source, where it begins, and its translation, once there is one. */
interface Part {
  source: string;
  space: string;
  start: number;
  /** What has arrived so far. */
  text: string;
  words: Word[] | null;
  /** Its rating, unless it is good, and the reasons to check it. */
  verdict?: [string, string];
}

/** Return the elements of the view. */
export function makeTranslator(model: Model): Node[] {
  const known = new Map<string, Sentence>(); // sentences that were translated; typing on costs one sentence only
  let parts: Part[] = [];
  let controller = new AbortController();
  let beamSize = 1;
  let target = model.languages.length === 2 ? model.languages[1] : (model.targets[0] ?? "");
  let details = DETAILS.slice(model.supports.includes("alignment") ? 0 : 1); // the first that the model can give
  let canStream = model.supports.includes("stream");

  const marks = h("div", { class: "marks", dir: "auto", "aria-hidden": "true" });
  const input = h("textarea", {
    "aria-label": "Text to translate",
    placeholder: "Type or paste a text",
    spellcheck: "false",
    dir: "auto",
    maxlength: String(MAX_CHARACTERS),
    lang: model.languages[0],
    oninput: () => {
      mark([]);
      clearTimeout(timer);
      timer = window.setTimeout(translate, 250);
    },
    onclick: () => markTarget(input.selectionStart),
    onkeyup: () => markTarget(input.selectionStart),
  });
  const output = h("div", { class: "output", role: "group", dir: "auto", "aria-label": "Translation" });
  const readout = h("p", { class: "readout", role: "status" });
  const copy = h("button", { type: "button", onclick: () => void copyText() }, "Copy");
  const inside = h("button", { type: "button", onclick: () => seeInside() }, "See inside");
  inside.hidden = !model.supports.includes("explain");
  const correction = makeCorrectionBox(model, find, () => target, correct);
  let current: Part | undefined; // the sentence that was clicked, there or here
  const card = h("div", { class: "card", role: "region", "aria-label": "Other words", hidden: true });
  card.addEventListener("keydown", (event) => event.key === "Escape" && closeCard(true));
  output.addEventListener("scroll", () => placeCard());
  new ResizeObserver(() => placeCard()).observe(output);
  let timer = 0;

  const options = (): Record<string, unknown> => ({ model: model.id, target, beam_size: beamSize });
  const key = (source: string) => JSON.stringify([target, beamSize, source]);

  /** Translate what is new in the text. */
  async function translate(): Promise<void> {
    controller.abort();
    controller = new AbortController();
    const { signal } = controller;
    let start = 0;
    parts = splitSentences(input.value).map(([source, space]) => {
      const sentence = known.get(key(source));
      const part: Part = { source, space, start, text: "", words: null };
      if (sentence) fillPart(part, sentence);
      start += source.length + space.length;
      return part;
    });
    closeCard();
    draw();
    const missing = parts.filter((part) => part.words === null && part.source.trim());
    const startTime = performance.now();
    report(readout, missing.length ? "Translating …" : invite());
    try {
      const problems = new Set<string>();
      for (const chunk of divide(missing)) await tryChunk(chunk, signal, problems);
      if (problems.size) report(readout, [...problems].join(" "), true);
      else if (missing.length) {
        const [all, added] = [parts, missing].map((some) =>
          some.reduce((sum, part) => sum + (part.words?.length ?? 0), 0),
        );
        const subject = added === all ? count(all, "word") : `${count(all, "word")}, ${added} of them new,`;
        report(readout, `${subject} in ${((performance.now() - startTime) / 1000).toFixed(2)} s. ${invite()}`);
      }
    } catch (error) {
      if (!signal.aborted) report(readout, (error as Error).message, true);
    }
  }

  /** Translate a chunk; if the server refuses it, sentence by sentence: one that is too long must not stop the others. */
  async function tryChunk(chunk: Part[], signal: AbortSignal, problems: Set<string>): Promise<void> {
    try {
      await translateChunk(chunk, signal);
    } catch (error) {
      if (!(error instanceof RequestError && [413, 422].includes(error.status))) throw error;
      if (chunk.length === 1) {
        problems.add(error.message);
        chunk[0].text = chunk[0].source; // what cannot be translated stays
        draw();
      } else for (const part of chunk) await tryChunk([part], signal, problems);
    }
  }

  /** Show the texts as they grow, then ask for what the server knows about their words. */
  async function translateChunk(chunk: Part[], signal: AbortSignal): Promise<void> {
    const q = chunk.map((part) => part.source);
    for (const part of chunk) part.text = "";
    const write = ({ index, text }: { index: number; text: string }) => {
      chunk[index].text += text;
      draw();
    };
    let isRefused = false;
    if (beamSize === 1 && canStream)
      isRefused = !(await accepts(stream("translate", { q, ...options(), stream: true }, write, signal)));
    const answer = await askDetails(q, signal);
    canStream &&= !isRefused; // only now: a sentence that is too long is refused here, too
    chunk.forEach((part, i) => keep(part, readSentence(answer, i)));
    draw();
  }

  /** Ask for the translations with as many details as the model can give. */
  async function askDetails(q: string[], signal: AbortSignal): Promise<any> {
    for (let i = 0; ; i++) {
      const rated = beamSize === BEAM_SIZE && model.supports.includes("quality") ? { quality: true } : {};
      const response = request("translate", { q, ...options(), ...details[i], ...rated }, signal);
      if (i < details.length - 1 && !(await accepts(response))) continue;
      const answer = await (await response).json();
      details = details.slice(i);
      return answer;
    }
  }

  function keep(part: Part, sentence: Sentence): void {
    known.set(key(part.source), sentence);
    fillPart(part, sentence);
  }

  function draw(): void {
    const focused = [...output.querySelectorAll(".word")].indexOf(document.activeElement as Element);
    fill(output, ...parts.flatMap((part) => [...drawPart(part), part.space]));
    const words = output.querySelectorAll<HTMLElement>(".word");
    words[Math.max(0, focused)]?.setAttribute("tabindex", "0");
    if (focused >= 0) words[Math.min(focused, words.length - 1)]?.focus();
    copy.disabled = !output.textContent;
    inside.disabled = correction.button.disabled = !parts.some((part) => part.words?.length);
  }

  function drawPart(part: Part): (Node | string)[] {
    if (part.words === null) return [h("span", { class: "growing" }, part.text || (part.source.trim() ? "…" : ""))];
    const nodes: (Node | string)[] = [];
    let end = 0;
    for (const word of part.words) {
      const element: HTMLElement = h(
        "span",
        {
          class: word.confidence !== null && word.confidence < 0.5 ? "word unsure" : "word",
          role: "button",
          tabindex: "-1",
          onpointerenter: () => point(part, word, element),
          onpointerleave: () => document.activeElement !== element && mark([]),
          onfocus: () => point(part, word, element),
          onclick: () => open(part, word, element),
          onkeydown: (event) => move(event, element),
        },
        word.text,
      );
      tint(element, word.confidence ?? 1);
      nodes.push(part.text.slice(end, word.start), element);
      end = word.start + word.text.length;
    }
    const badge =
      part.verdict && h("span", { class: "rating", "data-rating": part.verdict[0], title: part.verdict[1] });
    return [...nodes, part.text.slice(end), ...(badge ? [badge] : [])]; // the style shows it: it is not part of the text
  }

  /** Say what is known about a word, and mark the source words that it comes from. */
  function point(part: Part, word: Word, element: HTMLElement): void {
    const ranges = findWords(part.source);
    const sources = word.sources.filter((source) => source < ranges.length);
    mark(sources.map((source) => ranges[source].map((position) => position + part.start) as [number, number]));
    setTabStop(element);
    const from = sources.map((source) => `“${part.source.slice(...ranges[source])}”`).join(", ");
    const sure = word.confidence === null ? "" : `, ${formatPercent(word.confidence)} sure`;
    report(readout, `“${word.text}”${from ? ` from ${from}` : ""}${sure}. Click it for other words.`);
  }

  /** Mark ranges of the source. */
  function mark(ranges: [number, number][]): void {
    const text = input.value;
    const nodes: (Node | string)[] = [];
    let end = 0;
    for (const [start, stop] of ranges.sort((a, b) => a[0] - b[0])) {
      nodes.push(text.slice(end, start), h("mark", {}, text.slice(start, stop)));
      end = stop;
    }
    fill(marks, ...nodes, text.slice(end) + "\n");
  }

  /** Mark the words of the translation that come from the source word at the caret. */
  function markTarget(caret: number): void {
    const part = parts.find(({ start, source }) => start <= caret && caret <= start + source.length);
    current = part;
    const index = part
      ? findWords(part.source).findIndex(([from, to]) => from <= caret - part.start && caret - part.start <= to)
      : -1;
    const words = parts.flatMap((other) =>
      (other.words ?? []).map((word) => other === part && word.sources.includes(index)),
    );
    output.querySelectorAll(".word").forEach((element, i) => element.classList.toggle("linked", words[i] ?? false));
  }

  function setTabStop(element: HTMLElement): void {
    output.querySelector('.word[tabindex="0"]')?.setAttribute("tabindex", "-1");
    element.setAttribute("tabindex", "0");
  }

  function move(event: KeyboardEvent, element: HTMLElement): void {
    const words = [...output.querySelectorAll<HTMLElement>(".word")];
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (step) words[words.indexOf(element) + step]?.focus();
    else if (event.key === "Enter" || event.key === " ") element.click();
    else if (event.key === "Escape") closeCard(true);
    else return;
    event.preventDefault();
  }

  function open(part: Part, word: Word, element: HTMLElement): void {
    closeCard();
    current = part;
    element.classList.add("chosen");
    document.addEventListener("pointerdown", closeOutside);
    const place = { source: part.source, text: part.text, word, options: options(), details: details[0] };
    const others = h("div");
    fill(card, others, ...makeBlame(part, readCore(word.text)));
    card.hidden = false;
    const done = makeAlternatives(others, place, (sentence) => {
      keep(part, sentence);
      closeCard();
      draw();
      report(readout, "The sentence was changed.");
    });
    placeCard();
    void done.then(() => card.scrollIntoView({ block: "nearest" }));
  }

  /** A button that shows the training pairs which may have taught a word, if the server has them. */
  function makeBlame(part: Part, word: string): HTMLElement[] {
    if (!model.supports.includes("blame")) return [];
    const pairs = h("div", { role: "status" });
    const body = { q: part.source, text: part.text, word, target, model: model.id };
    const ask = async () => (await request("blame", body)).json();
    const show = () => void showCandidates(pairs, word, ask).then(() => pairs.scrollIntoView({ block: "nearest" }));
    return [h("button", { type: "button", class: "blame", onclick: show }, QUESTION), pairs];
  }

  /** Put the card below its word; if the word has scrolled out of the box, close it. */
  function placeCard(): void {
    const element = output.querySelector(".chosen");
    if (card.hidden || !element) return;
    const [word, box, section] = [element, output, card.parentElement!].map((item) => item.getBoundingClientRect());
    if (word.bottom < box.top || word.top > box.bottom) return closeCard();
    const left = Math.min(word.left - section.left, section.width - card.offsetWidth);
    card.style.setProperty("left", `${Math.max(0, left)}px`);
    card.style.setProperty("top", `${word.bottom - section.top + 6}px`);
  }

  function closeCard(takesFocus = false): void {
    const element = output.querySelector<HTMLElement>(".chosen");
    element?.classList.remove("chosen");
    document.removeEventListener("pointerdown", closeOutside);
    if (takesFocus && !card.hidden) element?.focus();
    card.hidden = true;
  }

  function closeOutside({ target }: Event): void {
    if (!card.contains(target as Node) && !(target as Element).closest(".word")) closeCard();
  }

  /** The sentence that was clicked, else the first. */
  function find(): Part | undefined {
    return current && parts.includes(current) ? current : parts.find(({ source }) => source.trim());
  }

  /** Show how the model translates a sentence. */
  function seeInside(): void {
    openInside({ q: find()!.source, ...options() });
  }

  /** Show a correction that was sent instead of the translation of its sentence. */
  function correct(source: string, text: string): void {
    const corrected = { text, tokens: [], confidence: [], alignment: [] };
    for (const part of parts) if (part.source === source) keep(part, corrected);
    draw();
    report(readout, "Thank you: the correction was stored.");
  }

  function invite(): string {
    return parts.some((part) => part.words?.length) ? "Point at a word, or click it for other words." : "";
  }

  async function copyText(): Promise<void> {
    try {
      await navigator.clipboard.writeText(output.textContent!);
      report(readout, "Copied.");
    } catch {
      getSelection()?.selectAllChildren(output); // without https a page may not write to the clipboard
      report(readout, "The translation is selected: copy it with Ctrl+C.");
    }
  }

  const [from, to] = model.languages.map(nameLanguage);
  const targets = model.targets.map((code): [string, string] => [code, nameLanguage(code)]);
  const list = select("Into ", targets, target, (code) => {
    target = code;
    void translate();
  });
  mark([]);
  draw();
  return [
    h(
      "div",
      { class: "pair" },
      h(
        "section",
        {},
        h("h2", {}, model.languages.length === 2 ? from : "Text"),
        h("div", { class: "source" }, marks, input),
      ),
      h(
        "section",
        { class: "target" },
        h("h2", {}, model.languages.length !== 2 && targets.length > 1 ? list : (to ?? "Translation")),
        output,
        card,
      ),
    ),
    h(
      "div",
      { class: "row" },
      readout,
      checkbox("Best quality (slower)", false, (checked) => {
        beamSize = checked ? BEAM_SIZE : 1;
        void translate();
      }),
      inside,
      correction.button,
      copy,
    ),
    correction.form,
    h(
      "p",
      { class: "small key" },
      "How sure the model is: ",
      ...[0.9, 0.6, 0.3, 0.1].map((confidence) => {
        const sample = h("span", { class: confidence < 0.5 ? "word unsure" : "word" }, formatPercent(confidence));
        tint(sample, confidence);
        return sample;
      }),
    ),
    makeFileRow(() => ({ model: model.id, target })),
  ];
}

function divide(parts: Part[]): Part[][] {
  const chunks: Part[][] = [];
  let characters = Infinity;
  for (const part of parts) {
    if (characters + part.source.length > CHUNK.characters || chunks.at(-1)!.length >= CHUNK.sentences) {
      chunks.push([]);
      characters = 0;
    }
    chunks.at(-1)!.push(part);
    characters += part.source.length;
  }
  return chunks;
}

/** Color a word: the less sure, the stronger. Even sure words of a trained model have a probability of about 0.9. */
function fillPart(part: Part, sentence: Sentence): void {
  part.text = sentence.text;
  part.words = readWords(sentence);
  part.verdict = rate(sentence);
}

/** Return the worst rating of a text's sentences, unless all are good, and why to check them. */
function rate({ quality = [] }: Sentence): [string, string] | undefined {
  const ratings = quality.map(({ rating }) => rating);
  const worst = (["poor", "check"] as const).find((rating) => ratings.includes(rating));
  const warnings = [...new Set(quality.flatMap((sentence) => sentence.warnings))];
  return worst || warnings.length ? [worst ?? "check", warnings.join("; ") || `Quality: ${worst}`] : undefined;
}

function tint(element: HTMLElement, confidence: number): void {
  element.style.setProperty("--doubt", `${Math.round(60 * Math.max(0, 1 - confidence / 0.9))}%`);
}

const count = (number: number, noun: string) => `${number} ${noun}${number === 1 ? "" : "s"}`;

/** Whether the server does not refuse a request as one that this model cannot answer. */
async function accepts(promise: Promise<unknown>): Promise<boolean> {
  try {
    await promise;
    return true;
  } catch (error) {
    if (error instanceof RequestError && error.status === 422) return false;
    throw error;
  }
}
