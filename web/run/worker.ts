// The worker that holds the model: the page stays responsive while it computes.

import { Model, type Description, type Translation } from "./model.ts";
import { loadRuntime } from "./runtime.ts";
import { splitSentences } from "./sentences.ts";

export type Request =
  | { kind: "load" }
  | { kind: "translate"; id: number; text: string; beam: number; language?: string }
  | { kind: "look"; id: number; sentence: string; beam: number; language?: string }
  | { kind: "lines"; id: number; lines: string[]; beam: number; language?: string }
  | { kind: "generate"; id: number; prompt: string; maxTokens: number; temperature: number; top_p: number }
  | { kind: "classify"; id: number; text: string }
  | { kind: "encode"; id: number; lines: string[] }
  | { kind: "stop" };
export type Answer =
  | { kind: "progress"; loaded: number; total: number }
  | { kind: "ready"; description: Description; hasAttention: boolean; bytes: number; seconds: number }
  | { kind: "result"; id: number; value: any; seconds: number }
  | { kind: "part"; id: number; text: string }
  | { kind: "error"; id: number | null; message: string };

const scope = self as unknown as { postMessage(answer: Answer): void; onmessage: unknown; location: Location };
const post = (answer: Answer) => scope.postMessage(answer);
const base = new URL("./", scope.location.href);
const KNOWN_SENTENCES = 2000;
const known = new Map<string, Translation>(); // while somebody types, most sentences stay the same
let model: Model | null = null;
let newest = 0; // a newer request ends an older one
let queue: Promise<unknown> = Promise.resolve();

scope.onmessage = ({ data }: MessageEvent<Request>) => {
  if (data.kind === "stop") return void newest++;
  if ("id" in data) newest = data.id;
  queue = queue
    .then(() => answer(data))
    .catch((error) => {
      post({ kind: "error", id: "id" in data ? data.id : null, message: String(error?.message ?? error) });
    });
};

async function answer(request: Request): Promise<void> {
  if (request.kind === "load") return load();
  if (request.kind === "stop") return;
  if (!model) throw new Error("The model is not loaded.");
  const start = performance.now();
  const isTyped = request.kind === "translate" || request.kind === "look";
  if (request.id < newest && isTyped) return; // the text has changed since
  const value = await compute(model, request);
  post({ kind: "result", id: request.id, value, seconds: (performance.now() - start) / 1000 });
}

async function compute(model: Model, request: Exclude<Request, { kind: "load" | "stop" }>): Promise<unknown> {
  switch (request.kind) {
    case "translate": {
      const pairs = splitSentences(request.text);
      const sentences = pairs.map(([sentence]) => sentence);
      const results = await translate(model, sentences, request);
      return pairs.map(([, space], i) => results[i].text + space).join("");
    }
    case "look": {
      const [translation] = await translate(model, [request.sentence], request);
      return model.replay(request.sentence, translation, request.language);
    }
    case "lines":
      return (await model.translate(request.lines, request)).map(({ text }) => text);
    case "generate": {
      const write = (text: string) => {
        post({ kind: "part", id: request.id, text });
        return newest === request.id;
      };
      return model.generate(request.prompt, request.maxTokens, request, write);
    }
    case "classify":
      return model.classify(request.text);
    case "encode":
      return request.lines.map((line) => model.encode(line));
  }
}

/** Translate sentences, each once as long as the others of the text change. */
async function translate(
  model: Model,
  sentences: string[],
  options: { beam: number; language?: string },
): Promise<Translation[]> {
  const key = (sentence: string) => `${options.beam} ${options.language} ${sentence}`;
  const fresh = [...new Set(sentences.filter((sentence) => !known.has(key(sentence))))];
  const results = await model.translate(fresh, options);
  const found = new Map(fresh.map((sentence, i) => [key(sentence), results[i]]));
  const translations = sentences.map((sentence) => (found.get(key(sentence)) ?? known.get(key(sentence)))!);
  if (known.size > KNOWN_SENTENCES) known.clear(); // only now: they were needed above
  for (const [sentence, translation] of found) known.set(sentence, translation);
  return translations;
}

async function load(): Promise<void> {
  const start = performance.now();
  const description = (await (await get("pipeline.json")).json()) as Description;
  const progress = { loaded: 0, total: 0 };
  const [runtime, bytes, files] = await Promise.all([
    loadRuntime(base),
    Promise.all(description.graphs.map((file) => download(file, progress))),
    Promise.all([...new Set(description.tokenizers)].map(async (file) => (await get(file)).json())),
  ]);
  const sessions = [];
  for (const graph of bytes)
    sessions.push(await runtime.InferenceSession.create(graph, { executionProviders: ["wasm"] }));
  model = new Model(runtime, description, sessions, [files[0], files[files.length - 1]]);
  const size = bytes.reduce((sum, graph) => sum + graph.length, 0);
  const seconds = (performance.now() - start) / 1000;
  post({ kind: "ready", description, hasAttention: model.hasAttention, bytes: size, seconds });
}

async function get(file: string): Promise<Response> {
  const response = await fetch(new URL(file, base));
  if (!response.ok) throw new Error(`${file} cannot be loaded (status ${response.status}).`);
  return response;
}

async function download(file: string, progress: { loaded: number; total: number }): Promise<Uint8Array> {
  const response = await get(file);
  progress.total += Number(response.headers.get("content-length") ?? 0);
  const parts: Uint8Array[] = [];
  const reader = response.body!.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    parts.push(value);
    progress.loaded += value.length;
    post({ kind: "progress", ...progress });
  }
  return new Uint8Array(await new Blob(parts as BlobPart[]).arrayBuffer());
}
