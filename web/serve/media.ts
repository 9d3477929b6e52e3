// Label, transcribe or caption: choose or drop a file, or write a text; the answer stands beside it.

import { fill, h } from "../dom.ts";
import { report } from "../report.ts";
import { request, type Model } from "./api.ts";

const ENDINGS = { image: "image/*", audio: ".wav,.flac", text: "" };
const MAX_LABELS = 20;

interface Labels {
  label: string;
  probabilities: Record<string, number>;
  is_truncated?: boolean;
}

/** Return the view of a model that labels images, audio clips or texts. */
export function makeLabeller(model: Model): Node[] {
  const send = async (content: File | string): Promise<Node[]> => {
    const body = typeof content === "string" ? { model: model.id, input: content } : makeForm(model, content);
    const { data } = await (await request("classify", body)).json();
    return data[0].words ? [describeTags(data[0])] : [describeLabels(data[0])];
  };
  return makeView(model, "Label", send);
}

/** Return the view of a model that transcribes audio clips. */
export function makeTranscriber(model: Model): Node[] {
  return makeView(model, "Transcript", async (content) => {
    const answer = await (await request("v1/audio/transcriptions", makeForm(model, content as File))).json();
    return [document.createTextNode(answer.text)];
  });
}

/** Return the view of a model that captions images. */
export function makeCaptioner(model: Model): Node[] {
  return makeView(model, "Caption", async (content) => {
    const { data } = await (await request("caption", makeForm(model, content as File))).json();
    return [document.createTextNode(data[0].text)];
  });
}

function makeForm(model: Model, file: File): FormData {
  const form = new FormData();
  form.append("model", model.id);
  form.append("file", file);
  return form;
}

function makeView(model: Model, title: string, send: (content: File | string) => Promise<Node[]>): Node[] {
  const kind = model.input.kind;
  const output = h("div", { class: "output answer", role: "group", tabindex: "0", "aria-label": title });
  const status = h("p", { class: "small", role: "status" });
  let number = 0;

  async function run(content: File | string): Promise<void> {
    const current = ++number;
    const start = performance.now();
    report(status, "…");
    output.classList.add("busy");
    try {
      const answer = await send(content);
      if (current !== number) return; // another file was chosen meanwhile
      fill(output, ...answer);
      status.textContent = `${((performance.now() - start) / 1000).toFixed(2)} s`;
    } catch (error) {
      if (current !== number) return;
      fill(output);
      report(status, (error as Error).message, true);
    }
    output.classList.remove("busy");
  }

  const input = kind === "text" ? makeText(title, run) : makeFile(kind, describeInput(model), run);
  const answer = h("section", {}, h("h2", {}, title), output);
  return [h("div", { class: "pair" }, h("section", {}, ...input), answer), status];
}

function makeText(title: string, run: (text: string) => Promise<void>): Node[] {
  const text = h("textarea", { "aria-label": "Text", placeholder: "A text", spellcheck: "false" });
  const start = (): void => void (text.value.trim() && run(text.value));
  text.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) start();
  });
  const button = h("button", { type: "button", class: "primary", onclick: start }, title);
  return [h("h2", {}, "Text"), text, h("div", { class: "row below" }, button)];
}

function makeFile(kind: "image" | "audio", about: string, run: (file: File) => Promise<void>): Node[] {
  const preview = h("div", { class: "preview" }, about);
  const input = h("input", {
    type: "file",
    accept: ENDINGS[kind],
    class: "hidden-input",
    id: "file",
    onchange: () => {
      const file = input.files?.[0];
      if (file) choose(file);
      input.value = "";
    },
  });

  function choose(file: File): void {
    void run(file);
    const reader = new FileReader(); // the policy of the page allows data, no other address
    reader.addEventListener("load", () => {
      const source = String(reader.result);
      const media =
        kind === "image"
          ? h("img", { alt: file.name, src: source })
          : h("audio", { controls: true, src: source, "aria-label": file.name });
      fill(preview, media, h("p", { class: "small" }, file.name));
    });
    reader.readAsDataURL(file);
  }

  preview.addEventListener("dragover", (event) => event.preventDefault());
  preview.addEventListener("drop", (event) => {
    event.preventDefault();
    const file = event.dataTransfer?.files[0];
    if (file) choose(file);
  });
  const button = h(
    "label",
    { class: "button", for: "file" },
    input,
    kind === "image" ? "Choose an image" : "Choose an audio clip",
  );
  return [h("h2", {}, kind === "image" ? "Image" : "Sound"), preview, h("div", { class: "row below" }, button)];
}

function describeInput(model: Model): string {
  const { kind, size, channels, rate } = model.input;
  if (kind === "audio") return `Drop a .wav or .flac file here: one channel, 16 bits, ${rate} samples per second.`;
  const shape = size ? `${size[1]} x ${size[0]} pixels` : "its own size";
  return `Drop an image here. The model reads it in ${shape}, ${channels === 1 ? "gray" : "colored"}.`;
}

function describeLabels({ probabilities, is_truncated }: Labels): Node {
  const labels = Object.entries(probabilities).sort((a, b) => b[1] - a[1]);
  const rows = labels.slice(0, MAX_LABELS).map(([label, probability]) => {
    const bar = h("meter", { min: "0", max: "1", value: String(probability), "aria-label": `Probability of ${label}` });
    return h("tr", {}, h("th", { scope: "row" }, label), h("td", {}, bar), h("td", {}, format(probability)));
  });
  const rest = labels.length - rows.length;
  return h(
    "div",
    {},
    h("table", { class: "labels" }, h("tbody", {}, ...rows)),
    rest > 0 && h("p", { class: "small" }, `${rest} more labels are less probable.`),
    is_truncated && h("p", { class: "small" }, "The model read only the beginning of the text."),
  );
}

function describeTags({ words, tags }: { words: string[]; tags: { label: string; probability: number }[] }): Node {
  const rows = words.map((word, i) =>
    h("tr", {}, h("th", { scope: "row" }, word), h("td", {}, tags[i].label), h("td", {}, format(tags[i].probability))),
  );
  return h("table", { class: "labels" }, h("tbody", {}, ...rows));
}

const format = (probability: number): string => `${(100 * probability).toFixed(1)} %`;
