// Measure pages as a reader opens them: first paint, hover, steps of a story and of a film, sizes.
//
//   npm run bench                                 the gallery's translator; 2,048 tokens x 32 layers x 32 heads
//   npm run bench -- film.html                    also the film of a run (regard look RUN --save film.html)
//   BENCH_TOKENS=512 BENCH_LAYERS=12 BENCH_HEADS=12 npm run bench
//
// Makes the large document with tests/look/synthetic.py (python with regard installed; set PYTHON). Every round opens
// the file in a new browser context. Times are medians over the rounds; the goals are those of a quiet machine.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { launch, makePage, script } from "../test/browser.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const {
  BENCH_TOKENS: tokens = "2048",
  BENCH_LAYERS: layers = "32",
  BENCH_HEADS: heads = "32",
  BENCH_ROUNDS: rounds = "5",
} = process.env;
const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1];

/** Open a file `rounds` times, each in a new context; return the time of the first paint and what `measure` returns. */
async function race(browser, path, view, ready, measure) {
  const results = {};
  for (let round = 0; round < Number(rounds); round++) {
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, reducedMotion: "reduce" });
    const page = await context.newPage();
    await page.goto(`${pathToFileURL(path)}${view}`);
    await page.waitForFunction(ready);
    const figures = await page.evaluate(measure);
    figures.paint = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0].startTime);
    for (const [name, value] of Object.entries(figures)) (results[name] ??= []).push(...[value].flat());
    await context.close();
  }
  return results;
}

/** Hover over a heatmap: milliseconds until the readout and the overlay are drawn, and until the next frame. */
async function hover() {
  const shown = performance.now();
  const stage = document.querySelector(".detail .stage");
  const box = stage.getBoundingClientRect();
  const [drawn, frame] = [[], []];
  for (let i = 0; i < 60; i++) {
    const [x, y] = [box.left + 20 + ((i * 37) % (box.width - 40)), box.top + 20 + ((i * 53) % (box.height - 40))];
    const start = performance.now();
    stage.dispatchEvent(new PointerEvent("pointermove", { clientX: x, clientY: y, bubbles: true }));
    await Promise.resolve(); // the store draws in a microtask
    drawn.push(performance.now() - start);
    await new Promise(requestAnimationFrame);
    frame.push(performance.now() - start);
  }
  return { shown, drawn, frame, heap: performance.memory.usedJSHeapSize / 1e6 };
}

/** Press arrow keys: milliseconds until a step of the story or a frame of the film is drawn, and to the next frame. */
async function walk() {
  const [drawn, frame] = [[], []];
  for (let i = 0; i < 60; i++) {
    const key = Math.floor(i / 20) % 2 === 0 ? "ArrowLeft" : "ArrowRight"; // both begin at their last step
    const start = performance.now();
    document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
    await Promise.resolve();
    // The maps of a frame are decoded first.
    const [slider, map] = [document.querySelector(".scrubber"), document.querySelector(".detail .stage[data-frame]")];
    while (map && map.dataset.frame !== slider.value) await new Promise((resolve) => setTimeout(resolve));
    document.body.offsetHeight; // with its layout
    drawn.push(performance.now() - start);
    await new Promise(requestAnimationFrame);
    frame.push(performance.now() - start);
  }
  return { drawn, frame };
}

const isMapDrawn = () => document.querySelector(".readout")?.textContent.startsWith("Point");
const isStoryDrawn = () => document.querySelector(".story .stage canvas");
const isFilmDrawn = () => document.querySelector(".detail .stage[data-frame]");

function show(name, values, goal) {
  const figures = `median ${median(values).toFixed(1)}, largest ${Math.max(...values).toFixed(1)}`;
  console.log(`  ${name.padEnd(44)} ${figures}${goal ? `  (goal ${goal})` : ""}`);
}

const folder = mkdtempSync(join(tmpdir(), "look-bench-"));
const browser = await launch();
try {
  const small = join(root, "docs/gallery/translator.html");
  console.log(
    `bundle ${Buffer.byteLength(script)} bytes (goal ${220 * 1024}); translator.html ${statSync(small).size} bytes`,
  );
  const told = await race(browser, small, "", isStoryDrawn, walk);
  console.log(`Story of a 2-layer translator, ${rounds} pages`);
  show("first contentful paint (ms)", told.paint, 400);
  show("key to end of drawing of a step (ms)", told.drawn, 50);
  show("key to the next frame (ms)", told.frame);
  const read = await race(browser, small, "#heads", isMapDrawn, hover);
  show("pointer over a map to end of drawing (ms)", read.drawn, 50);
  show("pointer over a map to the next frame (ms)", read.frame);

  const [json, large] = [join(folder, "large.json"), join(folder, "large.html")];
  const made = spawnSync(
    process.env.PYTHON ?? "python",
    ["-m", "tests.look.synthetic", json, "--tokens", tokens, "--layers", layers, "--heads", heads],
    { cwd: root, encoding: "utf8", env: { ...process.env, PYTHONPATH: `${join(root, "src")}:${root}` } },
  );
  if (made.status !== 0) throw new Error(made.stderr);
  writeFileSync(large, makePage(JSON.parse(readFileSync(json, "utf8"))));
  const size = (statSync(large).size / 1e6).toFixed(1);
  console.log(`${tokens} tokens x ${layers} x ${heads} heads, page of ${size} MB, ${rounds} pages`);
  const opened = await race(browser, large, "", isStoryDrawn, walk);
  show("first contentful paint of the story (ms)", opened.paint, 1500);
  show("key to end of drawing of a step (ms)", opened.drawn, 50);
  const seen = await race(browser, large, "#heads", isMapDrawn, hover);
  show("first contentful paint of the heads (ms)", seen.paint, 1500);
  show("map drawn (ms after navigation)", seen.shown);
  show("pointer over the map to end of drawing (ms)", seen.drawn, 50);
  show("pointer over the map to the next frame (ms)", seen.frame);
  show("JavaScript heap (MB)", seen.heap);

  for (const path of process.argv.slice(2)) {
    const film = await race(browser, resolve(path), "", isFilmDrawn, walk);
    console.log(`Film of a run, ${(statSync(path).size / 1e6).toFixed(1)} MB, ${rounds} pages`);
    show("first contentful paint (ms)", film.paint);
    show("key to end of drawing of a frame (ms)", film.drawn, 100);
    show("key to the next frame (ms)", film.frame);
  }
} finally {
  await browser.close();
  rmSync(folder, { recursive: true });
}
