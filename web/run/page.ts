// The page of an exported model: translate, continue or classify text in the browser; no text leaves the device.

import { fill, h } from "../dom.ts";
import { makeGenerator } from "../generator.ts";
import { nameLanguage } from "../languages.ts";
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
(window as any).regard = { ask, ready: null as unknown };

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
      (window as any).regard.ready = answer;
      return show(answer.description, answer.bytes, answer.seconds);
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

function show(description: Description, bytes: number, seconds: number): void {
  const parameters = (description.parameters / 1e6).toPrecision(2);
  status.classList.remove("error");
  status.textContent =
    `${parameters} million parameters, ${(bytes / 1e6).toFixed(1)} MB (${description.dtype}), ` +
    `loaded in ${seconds.toFixed(1)}\u00a0s`;
  const [from, to] = description.languages.map(nameLanguage);
  const titles = {
    translate: to ? `${from} to ${to}` : "Translation",
    causal_lm: "Text generator",
    classify: "Classifier",
  };
  document.title = title.textContent = titles[description.task];
  const views = { translate: showTranslator, causal_lm: showGenerator, classify: showClassifier };
  fill(main, ...views[description.task](description));
  main.querySelector("textarea")?.focus();
}

function showTranslator({ languages, language_tags: tags }: Description): Node[] {
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
    oninput: () => later(translate),
  });
  if (languages[1]) output.lang = languages[1];
  const beam = h("input", { type: "checkbox", onchange: () => translate() });

  async function translate(): Promise<void> {
    const text = input.value;
    output.classList.add("busy");
    const request = { kind: "translate", text, beam: beam.checked ? 4 : 1 };
    try {
      const [value, seconds] = await ask(typeof target === "string" ? request : { ...request, language: list.value });
      output.textContent = value;
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

let timer = 0;

/** Call a function when nobody has typed for a moment. */
function later(callback: () => unknown): void {
  clearTimeout(timer);
  timer = window.setTimeout(callback, 250);
}

function makeFooter(): HTMLElement {
  return h("footer", { class: "small" }, "This model runs in your browser. What you type does not leave this device.");
}
