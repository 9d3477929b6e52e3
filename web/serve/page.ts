// The page at `/` of `regard serve`: translate, continue, label, transcribe or caption with the models of this server.

import { fill, h, select } from "../dom.ts";
import { makeGenerator } from "../generator.ts";
import { nameLanguage } from "../languages.ts";
import { report } from "../report.ts";
import { request, stream, type Model } from "./api.ts";
import { makeCaptioner, makeLabeller, makeTranscriber } from "./media.ts";
import { makeTranslator } from "./translator.ts";

const title = h("h1", {}, "Regard");
const about = h("p", { class: "status", role: "status" }, "Loading …");
const picker = h("div", {});
const main = h("main", {});
const footer = h(
  "footer",
  { class: "small" },
  "Your text stays on this server. For programs: ",
  h("a", { href: "openapi.json" }, "openapi.json"),
  ".",
);
document.body.append(h("header", {}, h("div", {}, title, about), picker), main, footer);
void start();

async function start(): Promise<void> {
  try {
    const { data } = await (await request("v1/models")).json();
    const models = (data as Model[]).filter((model) => model.capability in VIEWS);
    if (models.length === 0) {
      about.textContent = "This page has no view for the models of this server.";
      return;
    }
    show(models, models[0].id);
  } catch (error) {
    report(about, (error as Error).message, true);
  }
}

const VIEWS: Record<string, (model: Model) => Node[]> = {
  translate: makeTranslator,
  generate: makeServedGenerator,
  classify: makeLabeller,
  transcribe: makeTranscriber,
  caption: makeCaptioner,
};
const TITLES: Record<string, string> = {
  generate: "Continue a text",
  tagging: "Tag words",
  transcribe: "Transcribe an audio clip",
  caption: "Caption an image",
};

function show(models: Model[], id: string): void {
  const model = models.find((model) => model.id === id)!;
  const names = models.map((model): [string, string] => [model.id, model.id]);
  if (models.length > 1)
    fill(
      picker,
      select("Model ", names, id, (chosen) => show(models, chosen)),
    );
  const [from, to] = model.languages.map(nameLanguage);
  const translation = model.languages.length === 2 ? `${from} to ${to}` : "Translation";
  const labels = `Label ${model.input.kind === "image" ? "an image" : `a ${model.input.kind}`}`;
  const fallback = model.capability === "classify" ? labels : translation;
  title.textContent = TITLES[model.task] ?? TITLES[model.capability] ?? fallback;
  document.title = `${title.textContent} · Regard`;
  about.textContent = `${model.id}, ${(model.parameters / 1e6).toPrecision(2)} million parameters`;
  fill(main, ...VIEWS[model.capability](model));
  main.querySelector("textarea")?.focus();
}

function makeServedGenerator(model: Model): Node[] {
  let controller = new AbortController();
  return makeGenerator({
    async generate({ prompt, maxTokens, temperature, top_p }, part) {
      controller = new AbortController();
      const { signal } = controller;
      const body = { model: model.id, prompt, max_tokens: maxTokens, temperature, top_p, stream: true };
      try {
        await stream("v1/completions", body, ({ choices }) => choices[0].text && part(choices[0].text), signal);
      } catch (error) {
        if (!signal.aborted) throw error;
      }
    },
    stop: () => controller.abort(),
  });
}
