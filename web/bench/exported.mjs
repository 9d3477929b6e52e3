// Run an exported page in Chromium without a network and measure it:
//   node bench/exported.mjs FOLDER LINES [EXPECTED] [--beam N] [--ids FILE] [--out FILE] [--shots FOLDER]
// LINES: source sentences. EXPECTED: Python's translations, one per line. --ids: Python's ids, one JSON list per line.
// Every request that leaves the folder is aborted and fails the run. Afterwards the server stops, and the page must
// still load and translate (service worker).
import { readFileSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { launch } from "../test/browser.mjs";
import { serve } from "../test/static_server.mjs";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    beam: { type: "string", default: "1" },
    ids: { type: "string" },
    out: { type: "string" },
    shots: { type: "string" },
  },
});
const [folder, linesFile, expectedFile] = positionals;
const readLines = (path) => readFileSync(path, "utf8").replace(/\n$/, "").split("\n");
const lines = readLines(linesFile);
const server = await serve(folder);
const browser = await launch();
const problems = [];
let failed = false;

async function open(context) {
  const page = await context.newPage();
  page.on("pageerror", (error) => problems.push(`error: ${error.message}`));
  page.on("console", (message) => message.type() === "error" && problems.push(`console: ${message.text()}`));
  const start = performance.now();
  await page.goto(server.url);
  await page.waitForFunction(() => window.regard?.ready, null, { timeout: 120000 });
  return [page, (performance.now() - start) / 1000];
}

try {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  await context.route("**/*", (route) => {
    if (route.request().url().startsWith(server.url)) return route.continue();
    problems.push(`request: ${route.request().url()}`);
    return route.abort();
  });
  const [page, loadSeconds] = await open(context);
  const ready = await page.evaluate(() => window.regard.ready);
  const ask = (request) => page.evaluate((request) => window.regard.ask(request), request);
  console.log(
    `load: ${loadSeconds.toFixed(2)} s, graphs ${(ready.bytes / 1e6).toFixed(2)} MB ${ready.description.dtype}`,
  );
  if (values.ids) {
    const expected = readLines(values.ids).map((line) => JSON.parse(line));
    const [ids] = await ask({ kind: "encode", lines });
    compare("ids equal", ids.map(String), expected.map(String));
  }
  if (ready.description.task === "translation") {
    const request = { kind: "lines", lines, beam: Number(values.beam) };
    await ask({ ...request, lines: lines.slice(0, 2) });
    const [results, seconds] = await ask(request);
    const words = results.join(" ").split(/\s+/).length;
    console.log(`batch: ${words} words in ${seconds.toFixed(2)} s, ${(words / seconds).toFixed(0)} words per second`);
    const start = performance.now();
    const few = lines.slice(0, 10);
    for (const line of few) await ask({ ...request, lines: [line] });
    const each = (performance.now() - start) / few.length;
    console.log(`one by one: ${each.toFixed(0)} ms per sentence`);
    if (values.out) writeFileSync(values.out, results.join("\n") + "\n");
    if (expectedFile) compare("outputs equal", results, readLines(expectedFile));
  }
  if (values.shots) await takePictures(context, values.shots, ready.description.task);
  await page.waitForFunction(() => navigator.serviceWorker.controller, null, { timeout: 30000 });
  server.close();
  const [offline] = await open(context);
  const [again] = await offline.evaluate(
    ([task, line]) =>
      window.regard.ask(
        task === "translation" ? { kind: "lines", lines: [line], beam: 1 } : { kind: "encode", lines: [line] },
      ),
    [ready.description.task, lines[0]],
  );
  console.log(`offline visit: ${again.length === 1 ? "works" : "fails"}`);
} finally {
  await browser.close();
  server.close();
}
for (const problem of problems) console.error(problem);
process.exit(problems.length || failed ? 1 : 0);

function compare(what, actual, expected) {
  const equal = actual.filter((value, i) => value === expected[i]).length;
  console.log(`${what}: ${equal} of ${expected.length}`);
  if (equal === expected.length && actual.length === expected.length) return;
  failed = true;
  const first = actual.findIndex((value, i) => value !== expected[i]);
  console.log(`  line ${first + 1}: ${lines[first]}\n  page:   ${actual[first]}\n  Python: ${expected[first]}`);
}

async function takePictures(context, folder, task) {
  const texts = {
    translation:
      "A man in an orange hat is starring at something.\nTwo young girls play in the snow. They are laughing.",
    causal_lm: "ROMEO:\nWhat light",
    text_classification: "A warm, funny and surprisingly moving film.",
  };
  for (const width of [1280, 400])
    for (const scheme of ["light", "dark"]) {
      const [page] = await open(context);
      await page.setViewportSize({ width, height: 800 });
      await page.emulateMedia({ colorScheme: scheme });
      await page.fill("textarea", texts[task]);
      if (task === "causal_lm") await page.click("button.primary");
      const isFilled = () => document.querySelector(".output, tbody")?.textContent.length > 10;
      await page.waitForFunction(isFilled, null, { timeout: 60000 });
      await page.waitForTimeout(task === "causal_lm" ? 3000 : 500);
      await page.screenshot({ path: `${folder}/${task}-${width}-${scheme}.png` });
      await page.close();
    }
}
