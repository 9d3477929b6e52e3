// Opens the built website in Chromium: node check_site.mjs [--quick] FOLDER [SCREENSHOTS]
// Ten pages, 400 and 1280 px wide, light and dark: nothing from another host, no failed request, no scrolling sideways,
// nothing that axe-core finds, and a search that finds the page for each phrase. --quick: narrow and dark, and wide and
// light; axe-core, which takes most of the time, runs on each page once.
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { AXE, launch } from "./test/browser.mjs";
import { serve } from "./test/static_server.mjs";

const PAGES = [
  "index",
  "docs/index",
  "docs/start/first-model",
  "docs/guides/train",
  "docs/guides/finetune",
  "docs/reference/settings",
  "docs/reference/commands",
  "docs/api",
  "docs/why/results",
  "examples/multi30k/RESULTS",
];
const SEARCHES = {
  "beam size": "reference/settings",
  resume: "guides/recover",
  LoRA: "guides/finetune",
  "out of memory": "guides/plan",
};
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const quick = process.argv.includes("--quick");
const [folder, pictures] = process.argv.slice(2).filter((argument) => argument !== "--quick");
if (pictures) mkdirSync(pictures, { recursive: true });
const faults = [];
const server = await serve(folder);
const browser = await launch();

async function openPage(width, colorScheme) {
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme, reducedMotion: "reduce" });
  const page = await context.newPage();
  page.on("request", (request) => {
    if (!/^(data|blob):/.test(request.url()) && !request.url().startsWith(server.url))
      faults.push(`another host: ${request.url()}`);
  });
  page.on("response", (response) => response.status() >= 400 && faults.push(`${response.status()}: ${response.url()}`));
  page.on("pageerror", (error) => faults.push(`${page.url()}: ${error}`));
  return page;
}

for (const width of [400, 1280])
  for (const scheme of quick ? [width === 400 ? "dark" : "light"] : ["light", "dark"]) {
    const page = await openPage(width, scheme);
    for (const [index, path] of PAGES.entries()) {
      await page.goto(`${server.url}${path}.html`);
      const where = `${path}, ${width} px, ${scheme}`;
      const beyond = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
      if (beyond > 0) faults.push(`${where}: ${beyond} px too wide`);
      if (pictures)
        await page.screenshot({ path: join(pictures, `${path.replaceAll("/", "-")}-${width}-${scheme}.png`) });
      if (quick && index % 2 !== Number(width === 400)) continue;
      await page.evaluate(axe);
      const { violations } = await page.evaluate((options) => window.axe.run(document, options), AXE);
      for (const { id, nodes } of violations)
        faults.push(`${where}: ${id}: ${nodes.length} x ${nodes[0].html.slice(0, 200)}`);
    }
    await page.context().close();
  }

const page = await openPage(1280, "light");
for (const [phrase, path] of Object.entries(SEARCHES)) {
  await page.goto(`${server.url}index.html`);
  await page.keyboard.press("/");
  const box = page.getByRole("dialog").getByRole("combobox");
  await box.fill(phrase);
  await page.getByText(/^\d+ results?$/).waitFor({ timeout: 30_000 });
  const found = await page.getByRole("option").evaluateAll((links) => links.map((link) => link.pathname));
  console.log(`${phrase}: ${found.slice(0, 5).join(" ")}`);
  if (!found.slice(0, 10).some((link) => link.includes(path)))
    faults.push(`${phrase}: ${path} is not among the first ten`);
  if (pictures) await page.screenshot({ path: join(pictures, `search-${phrase.replaceAll(" ", "-")}.png`) });
}
await browser.close();
server.close();
for (const fault of new Set(faults)) console.log(fault);
process.exitCode = faults.length ? 1 : 0;
