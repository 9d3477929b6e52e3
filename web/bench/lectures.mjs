// Measure the pages of the lectures as a reader opens them: node bench/lectures.mjs
//
// First contentful paint and end of loading, from a file, each round in a new browser context; medians of 5 rounds on a
// quiet machine. Goal: a first paint within one second. The last line is JSON: the goal divided by the slowest page.
// PYTHON must name a Python that imports regard.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { launch } from "../test/browser.mjs";

const [ROUNDS, GOAL] = [5, 1000]; // milliseconds
const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1];
const folder = mkdtempSync(join(tmpdir(), "lectures-"));
const run = spawnSync(process.env.PYTHON ?? "python", ["-m", "regard", "lectures", "--save", folder]);
if (run.status) throw new Error(String(run.stderr));
const pages = readdirSync(folder).filter((name) => name.endsWith(".html"));
const times = Object.fromEntries(pages.map((name) => [name, { paint: [], loaded: [] }]));
const browser = await launch();
try {
  for (let round = 0; round < ROUNDS; round++) {
    for (const name of pages) {
      const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, reducedMotion: "reduce" });
      const page = await context.newPage();
      await page.goto(pathToFileURL(join(folder, name)).href);
      await page.waitForFunction(() => performance.getEntriesByName("first-contentful-paint").length);
      const [paint, loaded] = await page.evaluate(() => [
        performance.getEntriesByName("first-contentful-paint")[0].startTime,
        performance.getEntriesByType("navigation")[0].loadEventEnd,
      ]);
      times[name].paint.push(paint);
      times[name].loaded.push(loaded);
      await context.close();
    }
  }
} finally {
  await browser.close();
  rmSync(folder, { recursive: true });
}
console.log("page                 first paint, ms  loaded, ms");
for (const name of pages) {
  const [paint, loaded] = [times[name].paint, times[name].loaded].map((values) => median(values).toFixed(0));
  console.log(`${name.padEnd(20)} ${paint.padStart(15)} ${loaded.padStart(11)}`);
}
const slowest = Math.max(...pages.map((name) => median(times[name].paint)));
console.log(JSON.stringify({ "first paint/goal": Number((GOAL / slowest).toFixed(2)) }));
