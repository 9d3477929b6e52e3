// The page of an exported model: translate, continue or classify text in the browser; no text leaves the device.

import { fill, h } from "../dom.ts";
import { makeGenerator } from "../generator.ts";
import { nameLanguage } from "../languages.ts";
import type { LookPanel } from "./look.ts";
import type { Description } from "./model.ts";
import type { Answer, Request } from "./worker.ts";

const worker = new Worker(new URL("worker.js", document.baseURI), { type: "module" });
interface Waiting {
  part(text: string): void;
  done(value: any, seconds: number): void;
  fail(error: Error): void;
}

const waiting = new Map<number, Waiting>();
let lastId = 0;
const status = h("p", { class: "status", role: "status" }, "Loading …");
const bar = h("progress", { max: "1", "aria-label": "Loading the model" });
const main = h("main", {}, bar);
const title = h("h1", {}, document.title);

document.body.append(h("header", {}, title, status), main, makeFooter());
worker.onmessage = ({ data }: MessageEvent<Answer>) => receive(data);
worker.onerror = (event) => fail(event.message || "The program of the page cannot be loaded.");
send({ kind: "load" });
if ("serviceWorker" in navigator) navigator.serviceWorker.register("service.js").catch(() => {});

/** For tests and other pages: ask the model, e.g. `regard.ask({kind: "lines", lines: ["Good morning."], beam: 1})`. */
(window as any).regard = { ask, ready: null as unknown, inside: null as unknown };

function send(request: Request): void {
  worker.postMessage(request);
}

function ask(request: Record<string, unknown>, part: (text: string) => void = () => {}): Promise<[any, number]> {
  const id = ++lastId;
  return new Promise((resolve, reject) => {
    waiting.set(id, { part, done: (value, seconds) => resolve([value, seconds]), fail: reject });
    send({ ...request, id } as Request);
  });
}

function receive(answer: Answer): void {
  switch (answer.kind) {
    case "progress":
      if (answer.total) bar.value = answer.loaded / answer.total;
      status.textContent = `Loading the model: ${(answer.loaded / 1e6).toFixed(1)} MB`;
      return;
    case "ready":
      return void start(answer).catch((error) => fail(error.message));
    case "part":
      return waiting.get(answer.id)?.part(answer.text);
    case "result":
      waiting.get(answer.id)?.done(answer.value, answer.seconds);
      return forget(answer.id);
    case "error":
      if (answer.id === null) return fail(answer.message);
      waiting.get(answer.id)?.fail(new Error(answer.message));
      return forget(answer.id);
  }
}

/** Forget a request that was answered, and older ones, which were dropped. */
function forget(answered: number): void {
  for (const id of waiting.keys()) if (id <= answered) waiting.delete(id);
}

function fail(message: string): void {
  status.textContent = message;
  status.classList.add("error");
}

/** Show the page of a task; that of a model with attention needs the program of its views. */
async function start(ready: Extract<Answer, { kind: "ready" }>): Promise<void> {
  const look = ready.hasAttention ? await loadLook(ready.description) : null;
  show(ready.description, ready.bytes, ready.seconds, look);
  (window as any).regard.ready = ready;
}

async function loadLook(description: Description): Promise<LookPanel> {
  const style = h("link", { rel: "stylesheet", href: "look.css" });
  const styled = new Promise((resolve, reject) => {
    style.addEventListener("load", resolve);
    style.addEventListener("error", () => reject(new Error("look.css cannot be loaded.")));
  });
  document.head.append(style);
  const address = new URL("look.js", document.baseURI).href;
  const [{ makeLook }] = await Promise.all([import(address) as Promise<typeof import("./look.ts")>, styled]);
  const replay = async (request: Record<string, unknown>) => (await ask({ kind: "look", ...request }))[0];
  return makeLook(description, replay, (inside) => ((window as any).regard.inside = inside));
}

function show(description: Description, bytes: number, seconds: number, look: LookPanel | null): void {
  const parameters = (description.parameters / 1e6).toPrecision(2);
  status.classList.remove("error");
  status.textContent =
    `${parameters} million parameters, ${(bytes / 1e6).toFixed(1)} MB (${description.dtype}), ` +
    `loaded in ${seconds.toFixed(1)}\u00a0s`;
  const [from, to] = description.languages.map(nameLanguage);
  const titles = {
    translation: to ? `${from} to ${to}` : "Translation",
    causal_lm: "Text generator",
    text_classification: "Classifier",
  };
  document.title = title.textContent = titles[description.task];
  const views = { translation: showTranslator, causal_lm: showGenerator, text_classification: showClassifier };
  fill(main, ...views[description.task](description, look));
  main.querySelector("textarea")?.focus();
}

function showTranslator({ languages, language_tags: tags }: Description, look: LookPanel | null): Node[] {
  const names = Object.keys(tags);
  const list = h("select", { "aria-label": "Target language", onchange: () => translate() });
  for (const name of names) list.append(h("option", { value: name }, nameLanguage(name)));
  const target = names.length > 1 && languages.length !== 2 ? list : nameLanguage(languages[1] ?? "Translation");
  const speed = h("p", { class: "small", "aria-live": "polite" });
  const output = h("div", { class: "output", "aria-live": "polite", tabindex: "0", "aria-label": "Translation" });
  const input = h("textarea", {
    "aria-label": "Text to translate",
    placeholder: "Type or paste a text",
    spellcheck: "false",
    lang: languages[0],
    oninput: () => later(translate, pause),
    onselect: () => lookAtCaret(),
    onclick: () => lookAtCaret(),
    onkeyup: () => lookAtCaret(),
  });
  if (languages[1]) output.lang = languages[1];
  const beam = h("input", { type: "checkbox", onchange: () => translate() });

  let pause = 0; // milliseconds: a fast model follows every key
  let translated = "";

  const options = () => ({
    beam: beam.checked ? 4 : 1,
    ...(typeof target === "string" ? {} : { language: list.value }),
  });

  /** Look into the sentence at the caret, once it is translated. */
  function lookAtCaret(): void {
    if (input.value === translated) void look?.show(translated, input.selectionStart, options());
  }

  async function translate(): Promise<void> {
    const text = input.value;
    output.classList.add("busy");
    try {
      const [value, seconds] = await ask({ kind: "translate", text, ...options() });
      output.textContent = value;
      pause = Math.min(PAUSE, Math.max(0, 1000 * seconds - FAST));
      translated = text;
      lookAtCaret();
      const words = value.split(/\s+/).filter(Boolean).length;
      speed.textContent = words ? `${words} words in ${seconds.toFixed(2)} s` : "";
    } catch (error) {
      output.textContent = "";
      speed.textContent = (error as Error).message;
    }
    output.classList.remove("busy");
  }

  return [
    h(
      "div",
      { class: "pair" },
      h("section", {}, h("h2", {}, languages[0] ? nameLanguage(languages[0]) : "Text"), input),
      h("section", {}, h("h2", {}, target), output),
    ),
    h(
      "div",
      { class: "row" },
      speed,
      h("label", { class: "small" }, beam, " better and slower (beam search)"),
      h("button", { type: "button", onclick: () => void navigator.clipboard?.writeText(output.textContent) }, "Copy"),
    ),
    ...(look ? [look.element] : []),
  ];
}

function showGenerator(): Node[] {
  return makeGenerator({
    generate: async (request, part) => void (await ask({ kind: "generate", ...request }, part)),
    stop: () => send({ kind: "stop" }),
  });
}

function showClassifier({ labels }: Description): Node[] {
  const input = h("textarea", {
    "aria-label": "Text to classify",
    placeholder: "Type or paste a text",
    spellcheck: "false",
    oninput: () => later(classify),
  });
  const table = h("table", { class: "labels" }, h("caption", {}, "Probability of each label"));
  const note = h("p", { class: "small" });

  async function classify(): Promise<void> {
    let answer;
    try {
      [answer] = await ask({ kind: "classify", text: input.value });
    } catch (error) {
      fill(table);
      note.textContent = (error as Error).message;
      return;
    }
    const { probabilities, isTruncated } = answer;
    const order = labels.map((_, i) => i).sort((a, b) => probabilities[b] - probabilities[a]);
    const rows = order.map((i) => {
      const percent = (100 * probabilities[i]).toFixed(1);
      const meter = h("div", { class: "bar" });
      meter.style.width = `${percent}%`;
      return h("tr", {}, h("th", { scope: "row" }, labels[i]), h("td", {}, meter), h("td", {}, `${percent} %`));
    });
    fill(table, h("caption", {}, "Probability of each label"), h("tbody", {}, ...rows));
    note.textContent = isTruncated ? "The model read only the beginning of this text." : "";
  }

  return [h("section", {}, h("h2", {}, "Text"), input), table, note];
}

const PAUSE = 250; // milliseconds
const FAST = 100; // milliseconds of a translation that waits for no pause
let timer = 0;

/** Call a function when nobody has typed for a moment. */
function later(callback: () => unknown, pause = PAUSE): void {
  clearTimeout(timer);
  timer = window.setTimeout(callback, pause);
}

function makeFooter(): HTMLElement {
  return h("footer", { class: "small" }, "This model runs in your browser. What you type does not leave this device.");
}
