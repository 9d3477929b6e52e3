// Measure the pages of BertViz 1.4.1 and of Regard with the same attention: 12 layers x 12 heads, 256 tokens.
//
//   python -m bench.peers bertviz                                    its environment, under build/peers
//   npm install --no-save --prefix ../build/peers/bertviz-js requirejs@2.3.6 d3@5.7.0 jquery@2.1.0
//   node bench/bertviz.mjs
//
// BertViz loads three programs from a content delivery network; here they come from files. Every page has a browser of its
// own, so that memory is that of one page. Times under load differ; CPU time of the page's process hardly does.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { launch, makePage } from "../test/browser.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const python = process.env.BERTVIZ_PYTHON ?? join(root, "build/peers/bertviz/bin/python");
const programs = process.env.BERTVIZ_JS ?? join(root, "build/peers/bertviz-js");
const rounds = Number(process.env.BENCH_ROUNDS ?? 3);
const CDN = {
  "require.min.js": "node_modules/requirejs/require.js",
  "d3.min.js": "node_modules/d3/dist/d3.min.js",
  "jquery.min.js": "node_modules/jquery/dist/jquery.min.js",
};

const folder = process.env.BENCH_PAGES ?? mkdtempSync(join(tmpdir(), "bertviz-"));
if (!process.env.BENCH_PAGES) {
  const made = spawnSync(
    python,
    ["-m", "bench.peers.bertviz_pages", folder, "--tokens", "256", "--layers", "12", "--heads", "12"],
    { cwd: root, encoding: "utf8", env: { ...process.env, PYTHONPATH: `${join(root, "src")}:${root}` } },
  );
  if (made.status !== 0) throw new Error(made.stderr ?? String(made.error));
}

// What is drawn once a page is ready, and what a pointer moves over.
const PAGES = {
  regard: {
    title: "Regard, heads",
    body: () => makePage(JSON.parse(readFileSync(join(folder, "regard.json"), "utf8"))),
    ready: () => document.querySelector(".readout")?.textContent.startsWith("Point"),
    event: "pointermove",
    targets: ".detail .stage",
    moves: 40,
  },
  head_view: {
    title: "BertViz head_view",
    body: () => readFileSync(join(folder, "head_view.html"), "utf8"),
    ready: () => document.querySelectorAll("svg line").length > 0,
    event: "mouseover",
    targets: "svg #left text",
    moves: 3, // each takes seconds: 786,432 lines
  },
  model_view: {
    title: "BertViz model_view",
    body: () => readFileSync(join(folder, "model_view.html"), "utf8"),
    ready: () => document.querySelectorAll("svg line").length > 0,
    event: "mouseover",
    targets: null, // it shows thumbnails; a click opens one
  },
};

const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1];

async function measure({ body, ready, event, targets, moves }) {
  const browser = await launch();
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  const page = await context.newPage();
  const html = body();
  // A page of 260 MB is too large for an answer through the debugging protocol: a server sends it.
  const server = createServer((_, response) => {
    response.writeHead(200, { "Content-Type": "text/html; charset=utf-8" });
    response.end(html);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = `http://127.0.0.1:${server.address().port}/`;
  await page.route("**/*", (route) => {
    const url = new URL(route.request().url());
    if (url.href === address) return route.continue();
    const file = CDN[url.pathname.split("/").at(-1)];
    if (!file) return route.abort();
    return route.fulfill({ contentType: "text/javascript", path: join(programs, file) });
  });
  await page.goto(`${address}#heads`, { timeout: 300_000, waitUntil: "commit" }); // BertViz ignores the fragment
  await page.waitForFunction(ready, undefined, { timeout: 300_000 });
  const result = await page.evaluate(
    async ([event, targets, moves]) => {
      const frame = () => new Promise(requestAnimationFrame);
      await frame();
      await frame(); // the first of the two is drawn
      const drawn = performance.now();
      const paint = performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? NaN;
      const [hover, next] = [[], []];
      const elements = targets ? [...document.querySelectorAll(targets)] : [];
      for (let i = 0; i < (elements.length ? moves : 0); i++) {
        const element = elements[(i * 37) % elements.length];
        const box = element.getBoundingClientRect();
        const [x, y] = [box.left + 20 + ((i * 37) % Math.max(1, box.width - 40)), box.top + ((i * 53) % box.height)];
        const start = performance.now();
        element.dispatchEvent(
          new (event === "pointermove" ? PointerEvent : MouseEvent)(event, { clientX: x, clientY: y, bubbles: true }),
        );
        await Promise.resolve();
        hover.push(performance.now() - start);
        await frame();
        await frame(); // the frame with the change is drawn
        next.push(performance.now() - start);
      }
      return { paint, drawn, hover, next, heap: performance.memory.usedJSHeapSize / 1e6 };
    },
    [event, targets, moves],
  );
  const session = await browser.newBrowserCDPSession();
  const { processInfo } = await session.send("SystemInfo.getProcessInfo");
  const renderers = processInfo.filter((item) => item.type === "renderer");
  const resident = (id) => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${id}/status`, "utf8"))[1]) / 1000;
  const memory = renderers.map((item) => ({ cpu: item.cpuTime, resident: resident(item.id) }));
  const largest = memory.reduce((best, item) => (item.resident > best.resident ? item : best));
  await browser.close();
  server.close();
  return { ...result, ...largest, bytes: Buffer.byteLength(html) };
}

for (const page of Object.values(PAGES)) {
  const results = [];
  for (let round = 0; round < rounds; round++) results.push(await measure(page));
  const show = (read) => median(results.map(read));
  const row = {
    page_mb: show((r) => r.bytes / 1e6),
    first_paint_s: show((r) => r.paint / 1000),
    drawn_s: show((r) => r.drawn / 1000),
    hover_ms: page.targets ? median(results.flatMap((r) => r.hover)) : null,
    hover_frame_ms: page.targets ? median(results.flatMap((r) => r.next)) : null,
    heap_mb: show((r) => r.heap),
    resident_mb: show((r) => r.resident),
    cpu_s: show((r) => r.cpu),
  };
  console.log(
    page.title,
    JSON.stringify(row, (_, value) => (typeof value === "number" ? Number(value.toFixed(2)) : value)),
  );
}
if (!process.env.BENCH_PAGES) rmSync(folder, { recursive: true });
