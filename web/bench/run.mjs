// Measure the page of a large document: first paint, hover, memory.
//
//   npm run bench                                 2,048 tokens x 32 layers x 32 heads
//   BENCH_TOKENS=512 BENCH_LAYERS=12 BENCH_HEADS=12 npm run bench
//
// Makes the document with tests/look/synthetic.py (python with regard installed; set PYTHON).
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { launch, open } from "../test/browser.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const {
  BENCH_TOKENS: tokens = "2048",
  BENCH_LAYERS: layers = "32",
  BENCH_HEADS: heads = "32",
  BENCH_ROUNDS: rounds = "5",
} = process.env;
const folder = mkdtempSync(join(tmpdir(), "look-bench-"));
const file = join(folder, "large.json");
const made = spawnSync(
  process.env.PYTHON ?? "python",
  ["-m", "tests.look.synthetic", file, "--tokens", tokens, "--layers", layers, "--heads", heads],
  { cwd: root, encoding: "utf8", env: { ...process.env, PYTHONPATH: `${join(root, "src")}:${root}` } },
);
if (made.status !== 0) throw new Error(made.stderr);
const text = readFileSync(file, "utf8");
rmSync(folder, { recursive: true });

const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1];
const results = {
  tokens: Number(tokens),
  heads: layers * heads,
  page_mb: text.length / 1e6,
  paint_ms: [],
  map_ms: [],
  hover_ms: [],
  frame_ms: [],
  heap_mb: [],
};
const browser = await launch();
for (let round = 0; round < Number(rounds); round++) {
  const { page, close } = await open(browser, JSON.parse(text), { fresh: true });
  await page.waitForFunction(() => document.querySelector(".readout")?.textContent.startsWith("Point"));
  const figures = await page.evaluate(async () => {
    const shown = performance.now();
    const paint = performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? NaN;
    const stage = document.querySelector(".detail .stage");
    const box = stage.getBoundingClientRect();
    const [hover, frame] = [[], []];
    for (let i = 0; i < 60; i++) {
      const [x, y] = [box.left + 20 + ((i * 37) % (box.width - 40)), box.top + 20 + ((i * 53) % (box.height - 40))];
      const start = performance.now();
      stage.dispatchEvent(new PointerEvent("pointermove", { clientX: x, clientY: y, bubbles: true }));
      await Promise.resolve(); // the store draws in a microtask
      hover.push(performance.now() - start);
      await new Promise(requestAnimationFrame);
      frame.push(performance.now() - start);
    }
    return { shown, paint, hover, frame, heap: performance.memory.usedJSHeapSize / 1e6 };
  });
  results.paint_ms.push(figures.paint);
  results.map_ms.push(figures.shown);
  results.hover_ms.push(...figures.hover);
  results.frame_ms.push(...figures.frame);
  results.heap_mb.push(figures.heap);
  await close();
}
await browser.close();
const show = (name, unit) =>
  console.log(
    `${name.padEnd(42)} median ${median(results[unit]).toFixed(1)}, largest ${Math.max(...results[unit]).toFixed(1)}`,
  );
console.log(
  `${tokens} tokens x ${layers} x ${heads} heads, document ${results.page_mb.toFixed(1)} MB, ${rounds} pages`,
);
show("first contentful paint (ms)", "paint_ms");
show("map drawn (ms after navigation)", "map_ms");
show("pointer to end of drawing (ms)", "hover_ms");
show("pointer to the next frame (ms)", "frame_ms");
show("JavaScript heap (MB)", "heap_mb");
