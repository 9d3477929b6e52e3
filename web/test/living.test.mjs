// The page of an exported translator shows the attention of the sentence that somebody types, and nothing else loads.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { AXE, SIZES, launch } from "./browser.mjs";
import { TOLERANCE, compareCase, openExport, showSentence } from "./living.mjs";
import { serve } from "./static_server.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, "../..");
const runtime = join(here, "../node_modules/onnxruntime-web");
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const skip = existsSync(runtime) ? false : "onnxruntime-web is not installed: run npm ci";

let browser, server, folder, cases;
before(async () => {
  if (skip) return;
  folder = mkdtempSync(join(tmpdir(), "living-"));
  const env = { ...process.env, PYTHONPATH: [root, join(root, "src"), process.env.PYTHONPATH].join(":") };
  const program = [join(here, "living_cases.py"), folder, runtime];
  const made = spawnSync(process.env.PYTHON ?? "python", program, { encoding: "utf8", env });
  assert.equal(made.status, 0, `PYTHON must name a Python that imports regard. ${made.stderr ?? made.error}`);
  cases = JSON.parse(readFileSync(join(folder, "cases.json"), "utf8"));
  browser = await launch();
  server = await serve(join(folder, "page"));
});
after(async () => {
  await browser?.close();
  server?.close();
  if (folder) rmSync(folder, { recursive: true });
});

test("the attention, its statistics and the next tokens equal Python's, without a request", { skip }, async () => {
  const { page, problems, close } = await openExport(browser, server.url);
  let numbers = 0;
  for (const item of cases) {
    const result = await compareCase(page, item);
    assert.ok(result.worst <= TOLERANCE, `${item.text}: ${result.worst}`);
    numbers += result.numbers;
  }
  assert.ok(numbers > 10000, `${numbers} weights`);
  assert.deepEqual(problems, []);
  await close();
});

test("the sentence at the caret is shown, another one can be chosen, and no text shows nothing", { skip }, async () => {
  const { page, problems, close } = await openExport(browser, server.url);
  const [first, second] = cases.map(({ text }) => text);
  await page.fill("textarea", `${first} ${second}`);
  const shows = (text) => page.waitForFunction((text) => window.regard.inside?.doc.text === text, text);
  await shows(second);
  await page.keyboard.press("Control+Home");
  await shows(first);
  await page.getByLabel("Sentence").selectOption("1");
  await shows(second);
  assert.match(await page.locator(".inside code").textContent(), /^regard look MODEL /);
  await page.fill("textarea", "");
  await page.getByText("Type a sentence to see what the model reads").waitFor();
  assert.equal(await page.evaluate(() => window.regard.inside), null);
  assert.deepEqual(problems, []);
  await close();
});

test("story and heads by keys; the chosen head stays while somebody types", { skip }, async () => {
  const { page, problems, close } = await openExport(browser, server.url);
  await showSentence(page, cases[0].text);
  await page.locator("#tab-story").focus();
  const steps = await page.locator(".story .count").textContent();
  assert.match(steps, /^Step (\d+) of \1$/);
  await page.getByRole("button", { name: "Back" }).click();
  assert.notEqual(await page.locator(".story .count").textContent(), steps);
  await page.locator("#tab-story").focus();
  await page.keyboard.press("ArrowRight");
  assert.equal(await page.locator("#tab-heads").getAttribute("aria-selected"), "true");
  await page.locator('.overview [data-group="encoder.self"]').focus();
  await page.keyboard.press("ArrowRight");
  const title = await page.locator(".detail h2").textContent();
  assert.match(title, /^Which words each word reads \(layer \d of 2, head \d of/);
  await showSentence(page, cases[1].text);
  assert.equal(await page.locator(".detail h2").textContent(), title);
  assert.deepEqual(problems, []);
  await close();
});

for (const { width, scheme } of SIZES)
  test(`axe finds nothing serious and nothing overflows at ${width} px, ${scheme}`, { skip }, async () => {
    const viewport = { width, height: 900 };
    const { page, problems, close } = await openExport(browser, server.url, {
      bypassCSP: true,
      colorScheme: scheme,
      viewport,
    });
    await page.addScriptTag({ content: axe });
    await showSentence(page, cases[0].text);
    for (const view of ["story", "heads"]) {
      await page.click(`#tab-${view}`);
      const { violations } = await page.evaluate((options) => window.axe.run(document, options), AXE);
      const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
      assert.deepEqual(
        serious.map(({ id, nodes }) => [id, nodes[0].html]),
        [],
        view,
      );
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
      assert.ok(overflow <= 0, `${view} is ${overflow} pixels too wide`);
    }
    assert.deepEqual(problems, []);
    await close();
  });
