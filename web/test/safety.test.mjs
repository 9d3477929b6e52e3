// Tokens of a stranger do nothing, no request leaves the page, and axe-core finds nothing serious.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { AXE, HOSTILE, drawn, fullDocument, launch, open, openTab, sample, viewsOf } from "./browser.mjs";

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

function hostileDocument() {
  const doc = fullDocument();
  let count = 0;
  const spoil = (token) => {
    token.text = HOSTILE[count++ % HOSTILE.length];
    if (count % 5 === 0) token.bytes = "e282";
  };
  Object.values(doc.sequences).flat().forEach(spoil);
  Object.values(doc.vocabulary).forEach(spoil);
  doc.hypotheses.forEach((hypothesis) => {
    hypothesis.tokens.forEach(spoil);
    hypothesis.text = HOSTILE.join(" ");
  });
  for (const key of Object.keys(doc.ablation?.texts ?? {})) doc.ablation.texts[key] = HOSTILE.join(" ");
  doc.predictions.forEach((prediction) => {
    prediction.labels = [...HOSTILE];
    prediction.probabilities = HOSTILE.map(() => 1 / HOSTILE.length);
  });
  doc.text = doc.output = HOSTILE.join(" ");
  doc.notes = [...HOSTILE];
  doc.model.name = HOSTILE[0];
  return doc;
}

const VIEWS = ["story", "heads", "break", "search", "sampling", "predictions"];
const ALL_VIEWS = [...VIEWS, "alignment", "attribution", "masks", "positions"];

for (const width of [1280, 400])
  test(`hostile tokens do nothing in any view at ${width} px`, async () => {
    const { page, problems, close } = await open(browser, hostileDocument(), { width });
    assert.deepEqual(await viewsOf(page), ALL_VIEWS);
    for (const name of await viewsOf(page)) {
      await openTab(page, name);
      const stage = page.locator("#panel [role=application]").first();
      if (await stage.count()) {
        await stage.focus();
        for (const key of ["ArrowRight", "ArrowDown", "ArrowRight"]) await page.keyboard.press(key);
      }
      assert.equal(await page.locator("#panel script, #panel img").count(), 0);
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(overflow <= 0, `${name} is ${overflow} px wider than the window`);
    }
    assert.deepEqual(problems, []);
    await close();
  });

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
for (const { width, scheme } of [
  { width: 1280, scheme: "light" },
  { width: 400, scheme: "dark" },
])
  test(`axe-core finds nothing serious at ${width} px, ${scheme}`, async () => {
    const { page, close } = await open(browser, fullDocument(), { width, scheme, bypassCSP: true });
    await page.evaluate(axe);
    assert.deepEqual(await viewsOf(page), ALL_VIEWS);
    for (const name of await viewsOf(page)) {
      await openTab(page, name);
      await drawn(page);
      const { violations } = await page.evaluate((options) => window.axe.run(options), AXE);
      const serious = violations.filter((item) => ["serious", "critical"].includes(item.impact));
      assert.deepEqual(
        serious.map((item) => `${name}: ${item.id} ${item.nodes[0].html}`),
        [],
      );
    }
    await close();
  });

test("arrow keys move along the tabs of both levels", async () => {
  const { page, close } = await open(browser, sample());
  const titles = (list) => page.locator(`[role=tablist]`).nth(list).locator("[role=tab]").allTextContents();
  const walk = async (list, key, names) => {
    for (const name of names) {
      await page.keyboard.press(key);
      assert.equal(await page.locator("[role=tablist]").nth(list).locator("[aria-selected=true]").textContent(), name);
      assert.equal(await page.evaluate(() => document.activeElement.textContent), name);
    }
  };
  const [names, details] = [await titles(0), await titles(1)];
  assert.deepEqual([names.at(-1), details], ["More", ["Alignment", "Attribution", "Masks", "Positions"]]);
  await page.getByRole("tab").first().focus();
  await walk(0, "ArrowRight", [...names.slice(1), names[0]]);
  assert.equal(await page.locator("#more-views").isVisible(), false);
  await walk(0, "End", ["More"]);
  await page.keyboard.press("Tab"); // to the tab of the view that is shown
  await walk(1, "ArrowLeft", [...details].reverse());
  await walk(1, "Home", [details[0]]);
  await page.locator("#tab-masks").click();
  await page.getByRole("tab").first().click();
  await page.getByRole("tab", { name: "More" }).click(); // returns to the last detail
  assert.equal(await page.evaluate(() => location.hash), "#masks");
  await close();
});
