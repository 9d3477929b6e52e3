// The stored pages of docs/gallery draw every view, without a network and without a problem.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { AXE, SIZES, drawn, launch, makePage, openPage, openTab, sample, viewsOf } from "./browser.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

// Each page is looked at in another size and scheme, and axe-core looks at its first view; LOOK_GALLERY=all: every view
// of every page in all of them (252 runs of axe-core).
const isWhole = process.env.LOOK_GALLERY === "all";
const WINDOWS = [400, 1280, 1920].flatMap((width) => ["light", "dark"].map((scheme) => ({ width, scheme })));
const folder = new URL("../../docs/gallery/", import.meta.url);
const names = readdirSync(folder).filter((name) => name.endsWith(".html") && name !== "index.html");
for (const [i, name] of names.entries())
  for (const { width, scheme } of isWhole ? WINDOWS : [WINDOWS[i % WINDOWS.length]])
    test(`${name} draws every view at ${width} px, ${scheme}`, async () => {
      const html = readFileSync(new URL(name, folder), "utf8");
      const { page, problems, close } = await openPage(browser, html, { width, scheme });
      // The preview of a shared link, which Python writes, says what the headline says.
      const preview = await page.locator('meta[property="og:description"]').getAttribute("content");
      const sure = (await page.locator(".sure").textContent()).trim();
      assert.ok(preview.toLowerCase().startsWith(`${sure}. see what`), `${preview} | ${sure}`);
      const views = await viewsOf(page);
      assert.ok(views.length >= 5);
      const session = await page.context().newCDPSession(page);
      await session.send("Runtime.evaluate", { expression: axe }); // the page's own policy stays in force
      for (const view of views) {
        await openTab(page, view);
        // A view reads its numbers before it states a fact about them.
        await page.waitForFunction(
          () => document.querySelector("#panel .fact, #panel .facts")?.textContent.length > 10,
        );
        await drawn(page);
        const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert.ok(overflow <= 0, `${view} is ${overflow} px wider than the window`);
        if (!isWhole && view !== views[0]) continue;
        const { violations } = await page.evaluate((options) => window.axe.run(document, options), AXE);
        assert.deepEqual(
          violations.map(({ id, nodes }) => [view, id, nodes.map((node) => node.html.slice(0, 120))]),
          [],
        );
      }
      assert.deepEqual(problems, []);
      await close();
    });

test("axe finds nothing in the index, and its cards have names", async () => {
  const html = readFileSync(new URL("index.html", folder), "utf8").replaceAll(/<img src="[^"]*"/g, '<img src="data:,"');
  const { page } = await openPage(browser, makePage(sample()), { bypassCSP: true });
  for (const { width, scheme } of SIZES) {
    await page.setViewportSize({ width, height: 900 });
    await page.emulateMedia({ colorScheme: scheme });
    await page.setContent(html);
    await page.addScriptTag({ content: axe });
    const { violations } = await page.evaluate((options) => window.axe.run(document, options), AXE);
    assert.deepEqual(
      violations.map(({ id, nodes }) => [id, nodes.map((node) => node.html.slice(0, 120))]),
      [],
    );
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true);
  }
  await page.goto("about:blank");
});

test("what belongs together is on one screen: switches and their result, a story and its model", async () => {
  const read = (name) => readFileSync(new URL(`${name}.html`, folder), "utf8");
  const bottoms = (page, selector) =>
    page.locator(selector).evaluateAll((list) => list.map((item) => item.getBoundingClientRect().bottom));
  const slide = { width: 1920, height: 1080, view: "break?off=encoder.self.1.1&present=1" };
  const shown = await openPage(browser, read("six"), slide);
  assert.equal((await bottoms(shown.page, ".switches")).length, 3);
  for (const bottom of await bottoms(shown.page, ".switches, .result")) assert.ok(bottom <= 1080, `${bottom}`);
  await shown.close();
  const phone = await openPage(browser, read("six"), { width: 400, height: 800, view: "break" });
  await phone.page.locator(".switch").last().scrollIntoViewIfNeeded();
  const isFree = await phone.page
    .locator(".switch")
    .last()
    .evaluate((item) => {
      const { x, y, width, height } = item.getBoundingClientRect();
      return item.contains(document.elementFromPoint(x + width / 2, y + height / 2));
    });
  assert.ok(isFree, "the result covers the last switch");
  await phone.close();
  for (const [width, height] of [
    [1280, 900],
    [1920, 1080],
  ])
    for (const name of ["boot", "shapes"]) {
      const { page, close } = await openPage(browser, read(name), { width, height, view: "story" });
      for (const bottom of await bottoms(page, ".strip")) assert.ok(bottom <= height, `${name}: ${bottom}`);
      await close();
    }
});
