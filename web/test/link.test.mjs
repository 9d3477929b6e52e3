// The address names what the page shows: it can be shared, and Back returns.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { drawn, launch, open, openTab, sample } from "./browser.mjs";

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

const hash = (page) => page.evaluate(() => location.hash);
const hasHash = (page, wanted) => page.waitForFunction((text) => location.hash === text, wanted);
const selected = (page) => page.locator("[aria-selected=true]").last().textContent();
const readout = (page) => page.locator("#panel .readout").textContent();

test("the address follows the page, opens the same view, and Back returns", async () => {
  const doc = sample();
  const group = doc.attention.find((item) => item.name === "encoder.self");
  const { page, problems, close } = await open(browser, doc, { view: "heads" });
  const overview = page.locator('[data-group="encoder.self"]');
  const { left, top, cell } = await overview.evaluate((element) => ({ ...element.dataset }));
  await overview.click({ position: { x: Number(left) + 2.5 * Number(cell), y: Number(top) + 1.5 * Number(cell) } });
  await page.locator(".detail .stage").focus();
  for (const key of ["Enter", "ArrowDown", "ArrowRight"]) await page.keyboard.press(key);
  await hasHash(page, "#heads?attention=encoder.self&layer=2&head=3&pin=2,2");
  const [link, said, title] = [await hash(page), await readout(page), await page.locator(".detail h2").textContent()];
  await openTab(page, "search");
  assert.equal(await hash(page), "#search");
  await page.goBack();
  await page.waitForFunction((text) => document.querySelector(".detail h2").textContent === text, title);
  await drawn(page);
  assert.deepEqual([await hash(page), await readout(page), await selected(page)], [link, said, "Look"]);
  await page.goForward();
  await page.waitForSelector(".beam");

  await page.goto("about:blank");
  await page.goto(`http://page.test/look/${link}`);
  await drawn(page);
  assert.deepEqual([await page.locator(".detail h2").textContent(), await readout(page)], [title, said]);
  for (const [address, ready] of [
    ["#break?off=decoder.cross.2.1", ".break .card p"],
    ["#search?hypothesis=3&steps=all", ".beam .card strong"],
    ["#positions?stack=decoder", '.positions [aria-pressed="true"]'],
  ]) {
    await page.evaluate((text) => (location.hash = text), address);
    await page.waitForSelector(ready);
    assert.equal(await hash(page), address);
  }
  assert.ok(group.layers >= 2 && group.heads >= 3);
  assert.deepEqual(problems, []);
  await close();
});

test("an address that the document does not have opens what there is", async () => {
  const { page, problems, close } = await open(browser, sample(), {
    view: "heads?attention=no&layer=99&head=0&pin=400,400",
  });
  await drawn(page);
  assert.equal(await selected(page), "Look");
  for (const address of [
    "#masks?attention=x&pin=400,400",
    "#attribution?method=constructor&pin=1,400",
    "#alignment?pin=99&heads=9.9",
  ]) {
    await page.evaluate((text) => (location.hash = text), address);
    await page.waitForSelector(`.${address.slice(1).split("?")[0]}`);
    await drawn(page);
    assert.match(await readout(page), /^Point at/);
  }
  assert.deepEqual(problems, []);
  await close();
});

test("an address entered just before the last change is written is opened", async () => {
  const { page, problems, close } = await open(browser, sample(), { view: "heads" });
  await drawn(page);
  await page.evaluate(() => {
    window.writers = [];
    window.setTimeout = (write) => window.writers.push(write);
  });
  await page.locator(".detail .stage").focus();
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => window.writers.length > 0);
  await page.evaluate(() => {
    location.hash = "#alignment";
    for (const write of window.writers) write(); // before the page is told of the new address
  });
  await page.waitForSelector(".alignment");
  assert.equal(await hash(page), "#alignment");
  assert.deepEqual(problems, []);
  await close();
});
