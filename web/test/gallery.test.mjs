// The stored pages of docs/gallery draw every view, without a network and without a problem.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { after, before, test } from "node:test";
import { launch, openPage } from "./browser.mjs";

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

const folder = new URL("../../docs/gallery/", import.meta.url);
for (const name of readdirSync(folder).filter((name) => name.endsWith(".html")))
  test(`${name} draws every view`, async () => {
    const html = readFileSync(new URL(name, folder), "utf8");
    const { page, problems, close } = await openPage(browser, html, { width: 400 });
    const tabs = await page.getByRole("tab").all();
    assert.ok(tabs.length >= 5);
    for (const tab of tabs) {
      await tab.click();
      // A view reads its numbers before it states a fact about them.
      await page.waitForFunction(() => document.querySelector("#panel .fact")?.textContent.length > 10);
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(overflow <= 0, `${await tab.textContent()} is ${overflow} px wider than the window`);
    }
    assert.deepEqual(problems, []);
    await close();
  });
