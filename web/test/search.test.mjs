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
    await surface(page).hover({ position: { x: 8 + 76 + 20, y: 26 + 10 } });
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

test("the winner's path is the returned hypothesis, drawn once in the accent color", async () => {
  const doc = sample();
  const { page, close } = await open(browser, doc, { view: "search" });
  const [accent, strokes] = await page.evaluate(() => {
    const accent = getComputedStyle(document.documentElement).getPropertyValue("--accent").trim();
    return [
      accent,
      [...document.querySelectorAll(".stage svg:first-child path")].map((path) => path.getAttribute("stroke")),
    ];
  });
  assert.equal(strokes.filter((stroke) => stroke === accent).length, doc.search.lineage.length - 1);
  await close();
});

test("steps after the winner's end are folded, and the page says so", async () => {
  const doc = sample();
  const extra = doc.search.last_step - doc.search.winner_step;
  assert.ok(extra > 0, "the sample has a search that continues");
  const { page, close } = await open(browser, doc, { view: "search" });
  const size = async () => (await surface(page).boundingBox()).width;
  const folded = await size();
  assert.match(
    await page.locator(".beam .fact").textContent(),
    new RegExp(`continued to step ${doc.search.last_step}`),
  );
  await page.getByRole("button", { name: `Unfold the ${extra} steps` }).click();
  assert.ok(Math.abs((await size()) - folded - extra * 76) < 1);
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
  assert.match(await page.locator(".card").textContent(), /leads to: .* and more.*Worse than the winner by \d/);
  assert.deepEqual(problems, []);
  await close();
});
