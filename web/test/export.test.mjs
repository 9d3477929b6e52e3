// Figures saved as SVG, the page in a notebook's frame, and predictions of an encoder.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { launch, makePage, open, openTab, sample } from "./browser.mjs";

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

test("every view saves its drawing as SVG, with tokens as text only", async () => {
  const doc = sample();
  doc.sequences.source[0].text = " <script>";
  doc.vocabulary[doc.search.token[1]].text = " <script>";
  const { page, problems, close } = await open(browser, doc);
  for (const name of ["heads", "search", "alignment", "attribution", "break", "masks"]) {
    await openTab(page, name);
    await page.waitForFunction(() => !document.querySelector("#panel .readout").textContent.startsWith("Reading"));
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "Save as SVG" }).click(),
    ]);
    const text = Buffer.concat(await (await download.createReadStream()).toArray()).toString("utf8");
    const counts = await page.evaluate((text) => {
      const svg = new DOMParser().parseFromString(text, "image/svg+xml");
      const count = (tag) => svg.getElementsByTagName(tag).length;
      return {
        broken: count("parsererror"),
        script: count("script"),
        text: count("text"),
        root: svg.documentElement.tagName,
      };
    }, text);
    assert.equal(counts.root, "svg", name);
    assert.deepEqual([counts.broken, counts.script], [0, 0], name);
    assert.ok(counts.text >= 8, `${name}: ${counts.text} labels`);
  }
  assert.deepEqual(problems, []);
  await close();
});

test("the page draws in the isolated frame of a notebook", async () => {
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.setContent('<iframe sandbox="allow-scripts allow-downloads" width="1000" height="700"></iframe>');
  await page.evaluate((html) => (document.querySelector("iframe").srcdoc = html), makePage(sample()));
  const frame = page.frameLocator("iframe");
  await frame.getByText("What happened").waitFor();
  await frame.getByRole("tab", { name: "Search" }).click();
  await frame.getByText("The winner ended at step").waitFor();
  await context.close();
});

test("an encoder shows its candidates with their probabilities", async () => {
  const doc = sample();
  doc.model.family = "encoder_only";
  doc.attention = doc.attention.filter((group) => group.name === "encoder.self");
  doc.search = doc.ablation = doc.attribution = null;
  doc.hypotheses = [];
  doc.predictions = [
    { position: 1, labels: [" dogs", "<b>"], probabilities: [0.75, 0.2] },
    { position: null, labels: ["yes"], probabilities: [0.9] },
  ];
  const { page, problems, close } = await open(browser, doc, { view: "predictions" });
  const text = await page.locator(".predictions").innerText();
  assert.match(text, /The surest of 2 predictions: “yes”, probability 0\.90\./);
  assert.match(text, /dogs\s+0\.75\s+<b>\s+0\.20/);
  assert.match(text, /The whole text\s+yes\s+0\.90/);
  assert.deepEqual(await page.locator("[role=tab]").allTextContents(), [
    "Story",
    "Look",
    "Predictions",
    "More",
    "Masks",
    "Positions",
  ]);
  assert.deepEqual(problems, []);
  await close();
});

test("BPE merges by buttons, keys and click", async () => {
  const doc = sample();
  Object.assign(doc, { attention: [], search: null, ablation: null, attribution: null, masks: [], positions: [] });
  doc.hypotheses = [];
  doc.merges = {
    words: ["low▁", "<b>▁"],
    counts: [5, 2],
    start: ["low▁", "<b>▁"].map((word) => [...word]),
    steps: [
      { left: "l", right: "o", count: 5, words: [["lo", "w", "▁"], [..."<b>▁"]] },
      { left: "lo", right: "w", count: 5, words: [["low", "▁"], [..."<b>▁"]] },
    ],
  };
  const { page, problems, close } = await open(browser, doc);
  const fact = () => page.locator(".merges .fact").textContent();
  assert.deepEqual(await page.locator("[role=tab]").allTextContents(), ["BPE merges"]);
  assert.equal(await fact(), "Merge 1 of 2: “l” + “o” becomes “lo”, a most frequent pair: 5 times.");
  await page.getByRole("button", { name: "Next merge" }).click();
  assert.match(await fact(), /^Merge 2 of 2: “lo” \+ “w” becomes “low”/);
  assert.equal(
    await page.locator(".merges .readout").textContent(),
    "6 symbols spell the 2 words, 5 of them distinct.",
  );
  await page.locator(".merges .stage").focus();
  for (const _ of [0, 1, 2]) await page.keyboard.press("ArrowLeft");
  assert.match(await fact(), /^Before the first merge/);
  await page.locator(".merges .stage").click();
  assert.match(await fact(), /^Merge 1/);
  assert.deepEqual(problems, []);
  await close();
});
