import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { SIZES, decode, launch, open, sample } from "./browser.mjs";

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

const readout = (page) => page.locator(".alignment .readout").textContent();

for (const { width, scheme } of SIZES)
  test(`alignment by keys and pointer at ${width} px, ${scheme}`, async () => {
    const doc = sample();
    const { page, problems, close } = await open(browser, doc, { width, scheme, view: "alignment" });
    await page.waitForFunction(() => document.querySelector(".alignment .readout").textContent.startsWith("Point"));
    await page.locator(".alignment .stage").focus();
    await page.keyboard.press("ArrowRight");
    const first = await readout(page);
    assert.ok(first.startsWith("Generating “"), first);
    await page.keyboard.press("ArrowRight");
    assert.notEqual(await readout(page), first);
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Matrix" }).click();
    await page.locator(".alignment .stage").hover({ position: { x: 140, y: 120 } });
    await page.getByRole("button", { name: "All heads" }).click();
    assert.match(await page.locator(".alignment .fact").textContent(), /chosen heads/);
    assert.deepEqual(problems, []);
    await close();
  });

test("the sentence states the mean of the heads that align best", async () => {
  const doc = sample();
  const [hypothesis] = doc.hypotheses;
  const blob = doc.blobs[hypothesis.cross];
  const codes = decode(blob);
  const [, heads, rows, columns] = blob.shape;
  hypothesis.link_heads = [
    [1, 0],
    [0, 2],
  ];
  const { page, close } = await open(browser, doc, { view: "alignment" });
  const fact = await page.locator(".alignment .fact").textContent();
  await page.getByLabel("Tokens instead of words").check();
  await page.locator(".alignment .stage").focus();
  await page.keyboard.press("Enter");
  const mean = Array.from({ length: columns }, (_, column) => {
    let sum = 0;
    for (const [layer, head] of hypothesis.link_heads)
      sum += (codes[(layer * heads + head) * rows * columns + column] / 255) ** 2;
    return sum / 2;
  });
  const shown = mean.filter((_, column) => doc.sequences.source[column].role === "text");
  const said = Number(/attends to “.*?” ([\d.]+\d)/.exec(await readout(page))[1]);
  assert.ok(Math.abs(said - Math.max(...shown)) <= 0.006, `${said} ${Math.max(...shown)}`);
  assert.equal(fact, "Average of the 2 heads that align best: layer 2, head 1; layer 1, head 3.");
  await close();
});
