// What the tests share: a page of a document as regard.look.page makes it, and a browser that has no network.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { deflateSync, inflateSync } from "node:zlib";
import { build } from "esbuild";
import { chromium } from "playwright-core";

const here = dirname(fileURLToPath(import.meta.url));
export const script = readFileSync(join(here, "../../src/regard/look/static/app.js"), "utf8");
export const sample = () => JSON.parse(readFileSync(join(here, "../../tests/look/fixtures/sample.json"), "utf8"));

/** A document with one sampled step over 50 tokens, whose race token 7 won. */
export function sampledDocument() {
  const doc = sample();
  const logits = Float32Array.from({ length: 50 }, (_, i) => -0.1 * i);
  const sum = Math.log(logits.reduce((total, value) => total + Math.exp(value), 0));
  doc.blobs["logits.1"] = {
    dtype: "f32",
    curve: "linear",
    scale: 1,
    shape: [50],
    data: deflateSync(Buffer.from(logits.map((value) => value - sum).buffer)).toString("base64"),
  };
  for (let i = 0; i < 50; i++) doc.vocabulary[i] ??= { text: ` word${i}`, role: "text" };
  const filters = {
    no_repeat_ngram: null,
    repetition_penalty: 1,
    temperature: 0.8,
    top_k: null,
    top_p: 0.9,
    min_p: null,
    typical_p: null,
  };
  const race = { tokens: [7, 0, 1], probabilities: [0.05, 0.12, 0.1], times: [0.02, 0.3, 0.5], contenders: 19 };
  const steps = [{ position: 1, token: 7, logprob: -3, race, logits: "logits.1" }];
  doc.sampling = { filters, filter_order: Object.keys(filters), seed: 0, suppressed: [3], steps };
  return doc;
}

/** A document for every view at once: that of a search, with a sampled step and predictions beside it. */
export function fullDocument() {
  const doc = sampledDocument();
  doc.predictions = [
    { position: 1, labels: [" dogs", " cats"], probabilities: [0.75, 0.2] },
    { position: null, labels: ["yes", "no"], probabilities: [0.9, 0.1] },
  ];
  return doc;
}

export function makePage(doc) {
  const json = JSON.stringify(doc).replaceAll("<", "\\u003c");
  const digest = createHash("sha256").update(script).digest("base64");
  const policy =
    `default-src 'none'; script-src 'sha256-${digest}'; style-src 'unsafe-inline'; img-src data: blob:; ` +
    `connect-src ${doc.live ? "'self'" : "'none'"}; base-uri 'none'; form-action 'none'`;
  return `<!doctype html><html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="${policy}"><title>Regard</title></head>
<body><div id="app"></div><script type="application/json" id="document">${json}</script>
<script>${script}</script></body></html>`;
}

export const OPTIONS = { executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] };

/** The browser that all test files share (test/run.mjs starts it), or a new one. */
export const launch = () => {
  const address = process.env.LOOK_BROWSER;
  return address ? chromium.connect(address) : chromium.launch(OPTIONS);
};

/** Open a document; `problems` collects errors and requests that left the page. `answer` plays the live server. */
export const open = (browser, doc, options) => openPage(browser, makePage(doc), options);

const tabs = new Map();

/** The tab that the tests of a file share: a new context costs the browser 0.7 s of CPU time, more than most tests. */
async function takeTab(browser, bypassCSP) {
  if (!tabs.has(bypassCSP)) {
    const context = await browser.newContext({ bypassCSP });
    tabs.set(bypassCSP, await context.newPage());
  }
  const page = tabs.get(bypassCSP);
  page.removeAllListeners(); // of a test that failed before its end
  await page.unrouteAll();
  await page.mouse.move(0, 0);
  await page.goto("about:blank");
  return page;
}

/** Open the HTML of a page. Only one page is open at a time; `close` ends it. `fresh`: options of a context of its own. */
export async function openPage(
  browser,
  html,
  { width = 1280, scheme = "light", view = "", bypassCSP = false, answer = null, height = 900, fresh = null } = {},
) {
  const page = fresh
    ? await (await browser.newContext({ bypassCSP, ...fresh })).newPage()
    : await takeTab(browser, bypassCSP);
  await page.setViewportSize({ width, height });
  // Nothing moves by itself, so no test depends on time.
  await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" });
  const problems = [];
  page.on("pageerror", (error) => problems.push(`error: ${error.message}`));
  page.on("console", (message) => message.type() === "error" && problems.push(`console: ${message.text()}`));
  page.on("dialog", (dialog) => {
    problems.push(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  await page.route("**/*", (route) => {
    const url = new URL(route.request().url());
    if (url.href.startsWith("http://page.test/look/")) {
      if (url.pathname === "/look/") return route.fulfill({ contentType: "text/html", body: html });
      const body = answer?.(url.pathname.slice(6), url.searchParams);
      if (body !== undefined && body !== null) return route.fulfill({ json: body });
    }
    problems.push(`request: ${url.href}`);
    return route.abort();
  });
  await page.goto("http://page.test/look/" + (view ? `#${view}` : ""));
  await page.waitForSelector("#panel > *");
  return { page, problems, close: () => (fresh ? page.context().close() : page.goto("about:blank")) };
}

/** Click the tab of a view by its name in the address, behind "More" if it is there. */
export async function openTab(page, view) {
  const tab = page.locator(`#tab-${view}`);
  if (!(await tab.isVisible())) await page.locator("#tab-more").click();
  await tab.click();
}

/** The names of all views, those behind "More" too. */
export const viewsOf = (page) =>
  page.locator("[role=tab]:not(#tab-more)").evaluateAll((tabs) => tabs.map((tab) => tab.id.slice(4)));

/** Wait until what was asked for is drawn: the readout no longer says "Reading", and two frames have passed. */
export async function drawn(page) {
  await page.waitForFunction(() => !document.querySelector("#panel .readout")?.textContent.startsWith("Reading"));
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
}

/** The codes of a blob, decoded without the page's program. */
export function decode(blob) {
  return new Uint8Array(inflateSync(Buffer.from(blob.data, "base64")));
}

/** The data of a blob of codes. */
export function encode(codes) {
  return deflateSync(codes).toString("base64");
}

/** Import a file of web/, compiled. */
export async function loadModule(name) {
  const result = await build({ entryPoints: [join(here, "..", name)], format: "esm", bundle: true, write: false });
  return import("data:text/javascript;base64," + Buffer.from(result.outputFiles[0].contents).toString("base64"));
}

/** Texts of a stranger. */
export const HOSTILE = [
  "</script><script>alert(1)</script>",
  "<img src=https://example.org/x onerror=alert(2)>",
  "\u202egnirts\u2066",
  "שלום",
  "👩‍👩‍👧‍👦",
  "\u0000\u0007\n\t",
  "x".repeat(5000),
  "Z̴̡̧̛a̵l̶g̷o̸".repeat(50),
  "constructor",
  "__proto__",
];

// All rules run; only what is not reported is left out of the work: passes in detail, and a selector of every element.
export const AXE = { resultTypes: ["violations"], selectors: false };

export const SIZES = [1280, 400].flatMap((width) => ["light", "dark"].map((scheme) => ({ width, scheme })));
