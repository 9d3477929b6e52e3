// Write the thumbnails of the gallery to docs/pictures: node docs/gallery/thumbnails.mjs (needs `npm ci` in web/).
import { mkdirSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

const { chromium } = createRequire(new URL("../../web/package.json", import.meta.url))("playwright-core");
const path = (name) => fileURLToPath(new URL(name, import.meta.url));

// Where the drawing is: the address of the view, and the part of the page.
const VIEWS = {
  translator: ["#story?step=2", "#panel .stage"],
  pronoun: ["#heads?drawing=lines&pin=10", ".detail .stage"],
  boot: ["#image", ".detail .stage"],
  six: ["#spectrogram", ".detail .stage"],
  shapes: ["#image?from=2", ".detail .stage"],
  shakespeare: ["#sampling", "#panel .stage"],
};

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
const page = await browser.newPage({ viewport: { width: 1000, height: 900 }, reducedMotion: "reduce" });
mkdirSync(path("../pictures"), { recursive: true });
for (const [name, [view, part]] of Object.entries(VIEWS)) {
  if (process.argv.length > 2 && !process.argv.includes(name)) continue;
  await page.goto(`file://${path(`${name}.html`)}${view}`);
  await page.waitForSelector(part);
  await page.waitForTimeout(300);
  const box = await page.locator(part).first().boundingBox();
  const height = Math.min(box.height, box.width * 0.6) + 8;
  const clip = { x: Math.max(0, box.x - 8), y: box.y - 8, width: box.width + 16, height };
  await page.screenshot({ path: path(`../pictures/gallery-${name}.png`), clip, fullPage: true });
  await page.goto("about:blank");
}
await browser.close();
