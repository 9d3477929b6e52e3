// The story steps by keys, buttons and address, plays on a clock, and can be read as a transcript.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { drawn, fullDocument, launch, loadModule, makePage, open, openPage, sample } from "./browser.mjs";

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

const count = (page) => page.locator(".story .count").textContent();
const caption = (page) => page.locator(".story .caption").textContent();
const hasHash = (page, wanted) => page.waitForFunction((text) => location.hash === text, wanted);

test("keys, buttons and the address step, and boxes open their views", async () => {
  const { page, problems, close } = await open(browser, fullDocument(), { width: 400 });
  await drawn(page);
  const steps = await page.locator(".transcript li").count();
  assert.equal(await count(page), `Step ${steps} of ${steps}`); // nothing moves: everything is written
  await page.keyboard.press("Home");
  await hasHash(page, "#story?step=1");
  assert.equal(await caption(page), await page.locator(".transcript li").first().textContent());
  await page.keyboard.press("ArrowRight");
  await page.locator(".story").getByRole("button", { name: "Next" }).click();
  await hasHash(page, "#story?step=3");
  await page.keyboard.press("ArrowLeft");
  assert.equal(await count(page), `Step 2 of ${steps}`);
  assert.match(await caption(page), /^It .* and writes “.+” \(.+ % sure\)\.$/);
  for (const button of await page.locator(".player button, .story .choice button, .strip button").all()) {
    const { width, height } = await button.boundingBox();
    assert.ok(width >= 44 && height >= 44, `${width} x ${height}`);
  }
  const findings = await page.locator(".findings li").count();
  assert.ok(findings >= 4 && findings <= 6, `${findings} findings`);
  assert.deepEqual(await page.locator(".strip b").allTextContents(), ["encoder", "decoder", "softmax"]);
  const shape = await page.locator(".strip button").nth(1).locator("span").first().textContent();
  const { model, sequences } = fullDocument();
  const read = sequences.target.findIndex((token) => token.word === 1); // tokens before the second word
  assert.equal(shape, `${read} × ${model.width}`);
  await page.locator(".strip button").first().click();
  await page.waitForSelector(".heads");
  assert.match(await page.locator(".detail h2").textContent(), /each word reads/);
  await page.goBack();
  await page.locator('[data-kind="head"] button').click();
  await page.waitForSelector(".break");
  assert.deepEqual(problems, []);
  await close();
});

test("a story plays once, pauses, and ends at the last step", async () => {
  const { page, problems, close } = await openPage(browser, makePage(sample()), { fresh: {}, view: "heads" });
  await page.clock.install({ time: 0 });
  await page.clock.pauseAt(1000); // otherwise it also runs by itself
  await page.emulateMedia({ reducedMotion: "no-preference" });
  await page.getByRole("tab", { name: "Story" }).click();
  const play = page.locator(".play");
  const says = (text) =>
    page.waitForFunction((wanted) => document.querySelector(".play")?.textContent === wanted, text);
  await says("Pause"); // it starts by itself
  assert.match(await count(page), /^Step 1 of/);
  await page.clock.runFor(1450);
  assert.match(await count(page), /^Step 3 of/);
  await page.locator(".story .stage").focus();
  await page.keyboard.press("Space");
  await says("Play");
  await page.clock.runFor(5000);
  assert.match(await count(page), /^Step 3 of/);
  await page.getByRole("button", { name: "0.5×" }).click();
  await play.click();
  await page.clock.runFor(1450);
  assert.match(await count(page), /^Step 4 of/); // 1.4 s per step
  await says("Play");
  assert.match(await count(page), /^Step (\d+) of \1$/);
  assert.deepEqual(problems, []);
  await close();
});

test("a document of an earlier version, and one that decides, have a story", async () => {
  const old = sample();
  delete old.next;
  delete old.reads;
  const decision = fullDocument();
  decision.sequences = { source: decision.sequences.source };
  decision.attention = decision.attention.filter((group) => group.name === "encoder.self");
  decision.predictions = decision.predictions.slice(1);
  decision.search = decision.sampling = decision.attribution = null;
  decision.hypotheses = [];
  for (const [doc, last] of [
    [old, /^It reads .* and writes/],
    [decision, /^It decides: the answer is “yes” \(90 % sure\)\.$/],
  ]) {
    const { page, problems, close } = await open(browser, doc);
    await drawn(page);
    await page.waitForFunction(() => /reads/.test(document.querySelector(".transcript").textContent));
    assert.match(await caption(page), last);
    assert.deepEqual(problems, []);
    await close();
  }
});

test("of a tagged text only the words with a tag are told, unless none has one", async () => {
  const { makeStory } = await loadModule("story.ts");
  const { outputWords } = await loadModule("compare.ts");
  const doc = sample();
  delete doc.sequences.target;
  delete doc.reads;
  doc.attribution = null;
  const tag = (position, label) => ({ position, labels: [label, "B"], probabilities: [0.75, 0.25] });
  const tell = (...labels) => {
    doc.predictions = labels.map((label, i) => tag(i + 1, label));
    const { outputs, steps } = makeStory(doc, () => undefined);
    assert.deepEqual(
      outputWords(doc).map(({ text }) => text),
      outputs.map(({ label }) => label),
    );
    return { told: outputs.map(({ prediction }) => prediction), last: steps.at(-1).text };
  };
  const some = tell("O", "PER", "O", "LOC");
  assert.deepEqual(some.told, [1, 3]);
  assert.match(some.last, / is “LOC” \(75 % sure\)\. 2 other words have no tag\.$/);
  const one = tell("O", "PER");
  assert.deepEqual(one.told, [1]);
  assert.match(one.last, /1 other word has no tag\.$/);
  for (const labels of [
    ["O", "O"],
    ["PER", "LOC"],
  ]) {
    const all = tell(...labels);
    assert.deepEqual(all.told, [0, 1]);
    assert.doesNotMatch(all.last, /no tag/);
  }
});
