// Presentation mode: a slide with labels of at least 24 pixels that fills the window.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { drawn, fullDocument, launch, open, openTab } from "./browser.mjs";

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

const SIZE = { width: 1920, height: 1080 };
const isSlide = (page) => page.evaluate(() => document.documentElement.classList.contains("present"));

/** Record the size of every text that is drawn on a canvas, in pixels of the screen. */
const recordTexts = () => {
  window.texts = [];
  const draw = CanvasRenderingContext2D.prototype.fillText;
  CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
    window.texts.push([parseFloat(this.font.match(/([\d.]+)px/)[1]), text]);
    return draw.call(this, text, ...rest);
  };
};

test("a slide has labels of at least 24 px, and its views fit into the width", async () => {
  const { page, problems, close } = await open(browser, fullDocument(), { ...SIZE, view: "heads?present=1" });
  await page.evaluate(recordTexts);
  for (const view of ["search", "heads", "sampling", "alignment", "attribution"]) {
    await page.evaluate(() => (window.texts = []));
    if (view === "alignment" || view === "attribution")
      await page.evaluate((name) => (location.hash = `#${name}?present=1`), view);
    else await openTab(page, view);
    await page.waitForSelector(`#tab-${view}[aria-selected=true]`, { state: "attached" });
    await drawn(page);
    assert.ok(await isSlide(page), view);
    const found = await page.evaluate(() => {
      const zoom = Number(getComputedStyle(document.documentElement).getPropertyValue("--zoom"));
      const canvas = window.texts.filter(([, text]) => text.trim()).map(([size]) => size * zoom);
      const svg = [...document.querySelectorAll("#panel svg text")].map(
        (text) => Number(text.getAttribute("font-size")) * zoom,
      );
      const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
      const page = [];
      while (walker.nextNode()) {
        const { parentElement, textContent } = walker.currentNode;
        if (!textContent.trim() || !parentElement.checkVisibility() || parentElement.closest("script, option"))
          continue;
        page.push(parseFloat(getComputedStyle(parentElement).fontSize) * parentElement.currentCSSZoom);
      }
      const overflow = document.documentElement.scrollWidth - innerWidth;
      return { canvas, svg, page, overflow };
    });
    assert.ok(found.canvas.length + found.svg.length >= 8, view);
    const smallest = Math.min(...found.canvas, ...found.svg, ...found.page);
    assert.ok(smallest >= 24, `${view}: a label of ${smallest} px`);
    assert.ok(found.overflow <= 0, `${view} is ${found.overflow} px too wide`);
  }
  assert.deepEqual(problems, []);
  await close();
});

test("P starts and ends a presentation, the link keeps it, Escape first releases the pin", async () => {
  const { page, problems, close } = await open(browser, fullDocument(), { ...SIZE, view: "heads" });
  const stage = page.locator(".detail .stage");
  await stage.focus();
  await page.keyboard.press("p");
  await page.waitForFunction(() => location.hash === "#heads?present=1");
  assert.ok(await isSlide(page));
  assert.equal(await page.locator(".overview, footer").first().isVisible(), false);
  // The pointer meets the cell that is drawn below it.
  const { left, top, cell } = await stage.evaluate((element) => ({ ...element.dataset }));
  const zoom = await page.evaluate(() => Number(document.documentElement.style.getPropertyValue("--zoom")));
  assert.ok(Math.abs(zoom - 2.2) < 0.01);
  const box = await stage.boundingBox();
  const at = (start, index) => (Number(start) + (index + 0.5) * Number(cell)) * zoom;
  await page.mouse.click(box.x + at(left, 2), box.y + at(top, 1));
  await page.waitForFunction(() => location.hash === "#heads?pin=2,3&present=1");
  // Each pixel of the canvas is one of the screen.
  const canvas = page.locator(".detail .stage canvas").first();
  const [pixels, shown] = [await canvas.evaluate((item) => item.width), (await canvas.boundingBox()).width];
  assert.ok(Math.abs(pixels - shown) <= 1, `${pixels} pixels on ${shown}`);
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => location.hash === "#heads?present=1");
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => location.hash === "#heads");
  assert.equal(await isSlide(page), false);
  await page.getByRole("button", { name: "Present (P)" }).click();
  await page.getByRole("button", { name: "Leave the presentation (Escape)" }).click();
  assert.equal(await isSlide(page), false);
  assert.ok(await page.locator(".overview").isVisible());
  assert.deepEqual(problems, []);
  await close();
});
