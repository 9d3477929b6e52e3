import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { SIZES, launch, open, sample } from "./browser.mjs";

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

const surface = (page) => page.locator(".beam .stage");
const readout = (page) => page.locator(".beam .readout").textContent();
const textOf = (doc, candidate) => {
  const parts = [];
  for (; doc.search.step[candidate] > 0; candidate = doc.search.parent[candidate])
    parts.unshift(doc.vocabulary[doc.search.token[candidate]].text);
  return parts.join("").trim();
};

for (const { width, scheme } of SIZES)
  test(`search by pointer, click and keys at ${width} px, ${scheme}`, async () => {
    const doc = sample();
    const { page, problems, close } = await open(browser, doc, { width, scheme, view: "search" });
    // The root is at the left, its best candidate one step to the right.
    const step = Number(await surface(page).evaluate((element) => element.dataset.step));
    await surface(page).hover({ position: { x: 8 + step + 20, y: 26 + 10 } });
    const best = doc.search.step.findIndex((step) => step === 1);
    assert.ok((await readout(page)).includes(`“${textOf(doc, best)}”`), await readout(page));
    await surface(page).focus();
    for (const key of ["ArrowRight", "ArrowRight"]) await page.keyboard.press(key);
    assert.ok((await page.locator(".card strong").textContent()).length > 2);
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowLeft");
    await page.keyboard.press("Escape");
    assert.equal(await page.locator(".card").isVisible(), false);
    assert.deepEqual(problems, []);
    await close();
  });

test("the winner's path is the returned hypothesis; the accent color is left to what a reader selects", async () => {
  const doc = sample();
  const { page, close } = await open(browser, doc, { view: "search" });
  const [accent, strokes] = await page.evaluate(() => {
    const accent = getComputedStyle(document.documentElement).getPropertyValue("--accent").trim();
    return [
      accent,
      [...document.querySelectorAll(".stage svg:first-child path")].map((path) => [
        path.getAttribute("stroke"),
        path.getAttribute("stroke-width"),
      ]),
    ];
  });
  assert.equal(strokes.filter(([, width]) => width === "3.5").length, doc.search.lineage.length - 1);
  assert.equal(strokes.filter(([stroke]) => stroke === accent).length, 0);
  await surface(page).focus();
  for (const key of ["ArrowRight", "ArrowRight"]) await page.keyboard.press(key);
  assert.ok((await page.locator(`.stage svg:last-child [stroke="${accent}"]`).count()) > 0);
  await close();
});

test("steps after the winner's end are folded, and the page says so", async () => {
  const doc = sample();
  const extra = doc.search.last_step - doc.search.winner_step;
  assert.ok(extra > 0, "the sample has a search that continues");
  const { page, close } = await open(browser, doc, { view: "search" });
  // The header of each step, and the probability of each token as a number.
  const texts = () => page.locator(".beam svg:first-child text").allTextContents();
  const folded = await texts();
  assert.ok(!folded.includes(String(doc.search.last_step)));
  const shown = doc.search.step.filter((step) => step > 0 && step <= doc.search.winner_step).length;
  assert.equal(folded.filter((text) => text.endsWith(" %")).length, shown);
  assert.match(
    await page.locator(".beam .fact").textContent(),
    new RegExp(`continued to step ${doc.search.last_step}`),
  );
  await page.getByRole("button", { name: `Show ${extra} more steps` }).click();
  assert.ok((await texts()).includes(String(doc.search.last_step)));
  await close();
});

test("one more step is not called steps", async () => {
  const doc = sample();
  doc.search.last_step = doc.search.winner_step + 1;
  const { page, close } = await open(browser, doc, { view: "search" });
  await page.getByRole("button", { name: "Show 1 more step", exact: true }).click();
  assert.equal(await page.getByRole("button", { name: "Hide the last step", exact: true }).count(), 1);
  await close();
});

test("a live page forces a dropped hypothesis", async () => {
  const doc = sample();
  doc.live = true;
  doc.search.continuations = {};
  const dropped = doc.search.status.findIndex((status, i) => status === "dropped" && doc.search.step[i] === 1);
  const answer = (name, parameters) => ({
    continuation: {
      tokens: [doc.search.token[dropped], 9999],
      forced: 1,
      logprobs: [-3, -1],
      text: `${textOf(doc, dropped)} and more`,
      score: -9,
    },
    vocabulary: { 9999: { text: ` ${name}${parameters.get("candidate")}`, role: "text" } },
  });
  const { page, problems, close } = await open(browser, doc, { view: "search", answer });
  await surface(page).focus();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  const kept = doc.search.step.filter((step, i) => step === 1 && doc.search.status[i] !== "dropped").length;
  for (let i = 0; i < kept; i++) await page.keyboard.press("ArrowDown");
  await page.waitForSelector(".card mark");
  assert.match(
    await page.locator(".card").textContent(),
    /had to begin this way: .* and more.*\d lower than the winner \(higher is better\)/,
  );
  assert.deepEqual(problems, []);
  await close();
});
