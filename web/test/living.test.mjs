// The page of an exported translator shows the attention of the sentence that somebody types, and nothing else loads.
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, beforeEach, test } from "node:test";
import { fileURLToPath } from "node:url";
import { AXE, SIZES, launch } from "./browser.mjs";
import { runPython } from "./cases.mjs";
import { TOLERANCE, compareCase, openExport, showSentence } from "./living.mjs";
import { serve } from "./static_server.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const runtime = join(here, "../node_modules/onnxruntime-web");
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const skip = existsSync(runtime) ? false : "onnxruntime-web is not installed: run npm ci";

let browser, server, folder, cases, page, problems;
before(async () => {
  if (skip) return;
  folder = mkdtempSync(join(tmpdir(), "living-"));
  runPython("living_cases", [folder, runtime]);
  cases = JSON.parse(readFileSync(join(folder, "cases.json"), "utf8"));
  browser = await launch();
  server = await serve(join(folder, "page"));
  ({ page, problems } = await openExport(browser, server.url));
});
// All tests share one page: compiling the runtime in each of them took most of the time. Each starts without a text.
beforeEach(async () => {
  if (skip) return;
  await page.fill("textarea", "");
  await page.waitForFunction(() => !window.regard.inside);
});
after(async () => {
  await browser?.close();
  server?.close();
  if (folder) rmSync(folder, { recursive: true });
});

test("the attention, its statistics and the next tokens equal Python's, without a request", { skip }, async () => {
  let numbers = 0;
  for (const item of cases) {
    const result = await compareCase(page, item);
    assert.ok(result.worst <= TOLERANCE, `${item.text}: ${result.worst}`);
    numbers += result.numbers;
  }
  assert.ok(numbers > 10000, `${numbers} weights`);
  assert.deepEqual(problems, []);
});

test("the sentence at the caret is shown, another one can be chosen, and no text shows nothing", { skip }, async () => {
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
});

test("story and heads by keys; the chosen head stays while somebody types", { skip }, async () => {
  await showSentence(page, cases[0].text);
  await page.locator("#tab-story").click();
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
});

for (const { width, scheme } of SIZES)
  test(`axe finds nothing serious and nothing overflows at ${width} px, ${scheme}`, { skip }, async () => {
    await page.setViewportSize({ width, height: 900 });
    await page.emulateMedia({ colorScheme: scheme });
    await page.evaluate(axe);
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
  });
