// The page of a run: its numbers are Python's, every frame can be reached, and news of a live run arrive.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { AXE, HOSTILE, SIZES, launch, open } from "./browser.mjs";
import { readCases } from "./cases.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

let browser, cases;
before(async () => {
  browser = await launch();
  cases = readCases("film_cases", (folder) => JSON.parse(readFileSync(join(folder, "cases.json"), "utf8")));
});
after(() => browser.close());

/** A document with the film of a case. */
function makeDocument({ film } = cases[0]) {
  film = structuredClone(film);
  const losses = { steps: [1, 2, 3], values: [8.5, 7.25, 6] };
  const run = {
    name: "run",
    task: "translation",
    metric: "loss",
    steps: 9,
    is_finished: false,
    training: { loss: losses, learning_rate: { steps: [1, 2, 3], values: [0.1, 0.2, 0.1] } },
    validation: { loss: { steps: [3], values: [5.5] }, bleu: { steps: [3], values: [1.5] } },
  };
  film.frames.forEach((frame, i) => Object.assign(frame, { step: i, loss: i === 0 ? null : losses.values[i - 1] }));
  const rest = { live: false, text: "Training of run", version: "1", notes: [] };
  return { format: "regard-film/1", ...rest, runs: [run], film };
}

const where = (page) => page.locator(".scrubber-row output").textContent();
const shown = (page, frame) => page.waitForSelector(`.detail .stage[data-frame="${frame}"]`);

test("numbers and maps equal Python's", async (context) => {
  const result = await build({
    entryPoints: [join(here, "../film/document.ts")],
    format: "esm",
    write: false,
    bundle: true,
  });
  const facts = await import(
    "data:text/javascript;base64," + Buffer.from(result.outputFiles[0].contents).toString("base64")
  );
  let [worst, worstMap, count] = [0, 0, 0];
  for (const { film, expected } of cases)
    for (const [i, frame] of film.frames.entries()) {
      const { codes } = await facts.decodeMaps(frame);
      for (const [probe, [output, reference, weights]] of expected[i].entries()) {
        const { logprob, reference_logprob, length } = frame.probes[probe];
        const size = film.probes[probe].reference_length;
        for (const [value, total, tokens] of [
          [facts.perToken(logprob, length), output, length],
          [facts.perToken(reference_logprob, size), reference, size],
        ])
          worst = Math.max(worst, Math.abs(value - Math.exp(total / tokens)));
        for (let head = 0; head < film.attention.heads; head++) {
          const place = facts.locateMap(film, frame, probe, film.attention.layers - 1, head);
          if (!place) continue;
          count++;
          weights[head].flat().forEach((weight, at) => {
            const error = Math.abs((codes[place.start + at] / 255) ** 2 - weight);
            worstMap = Math.max(worstMap, error - Math.sqrt(weight) / 255); // what 8 bits allow
          });
        }
      }
    }
  context.diagnostic(`${cases.length} films, ${count} maps, largest difference ${worst.toExponential(1)}`);
  assert.ok(count > 0 && worst <= 1e-4, `largest difference ${worst}`);
  assert.ok(worstMap <= 1e-4, `a weight differs by ${worstMap} more than 8 bits allow`);
});

test("keys, slider and address move through the frames", async () => {
  const { page, problems, close } = await open(browser, makeDocument());
  await shown(page, 1);
  assert.equal(await where(page), "Step 1 · loss 8.500");
  await page.keyboard.press("Home");
  await shown(page, 0);
  assert.equal(await where(page), "Step 0 · before the first step");
  assert.equal(await page.locator("mark").count(), 0);
  await page.waitForFunction(() => location.hash === "#film?step=0");
  await page.keyboard.press("ArrowRight");
  await shown(page, 1);
  assert.ok((await page.locator("mark").count()) > 0, "words of another model are marked");
  await page.locator(".example").nth(2).click();
  await page.getByRole("button", { name: "head 2" }).first().click();
  await page.getByLabel("Curve").selectOption("bleu");
  await page.getByLabel("Steps").selectOption("linear");
  await page.keyboard.press("Tab");
  await page.locator(".scrubber").fill("0");
  await shown(page, 0);
  await page.waitForFunction(() => /step=0.*axis=linear/.test(location.hash)); // written some time after the change
  const link = await page.evaluate(() => location.hash);
  assert.match(
    link,
    /^#film\?step=0&example=3&layer=\d&head=2&curve=bleu&axis=linear$|^#film\?step=0&example=3&curve=/,
  );
  await page.goto("about:blank");
  await page.goto(`http://page.test/look/${link}`);
  await shown(page, 0);
  assert.equal(await page.locator('.example[aria-pressed="true"]').count(), 1);
  assert.equal(await page.getByLabel("Curve").inputValue(), "bleu");
  assert.deepEqual(problems, []);
  await close();
});

test("with reduced motion, Space moves one frame", async () => {
  const { page, close } = await open(browser, makeDocument(), { view: "film?step=0" });
  await page.emulateMedia({ reducedMotion: "reduce" });
  await page.keyboard.press("Space");
  await shown(page, 1);
  assert.equal(await page.getByRole("button", { name: "Play" }).count(), 1);
  await page.emulateMedia({ reducedMotion: null });
  await close();
});

test("a live page shows new frames, and asks no more when the run has finished", async () => {
  const news = makeDocument();
  const doc = makeDocument();
  doc.live = true;
  doc.film.frames.pop();
  Object.assign(news, { live: true, version: "2" });
  news.runs[0].is_finished = true;
  const asked = [];
  const answer = (name, query) => (asked.push(`${name} ${query.get("version")}`), news);
  const { page, problems, close } = await open(browser, doc, { answer });
  await shown(page, 0);
  const ask = () => page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
  await ask();
  await shown(page, 1);
  assert.match(await page.locator("header").textContent(), /finished at step 3 · validation loss 5\.500/);
  await ask();
  assert.deepEqual(asked, ["document 1"]);
  assert.deepEqual(problems, []);
  await close();
});

test("every kind of film fits all sizes, and strange texts stay texts", async () => {
  const docs = cases.map(makeDocument);
  docs[0].film.probes.forEach((probe, i) => Object.assign(probe, { text: HOSTILE[i], reference: HOSTILE[i + 5] }));
  for (const [i, text] of HOSTILE.slice(0, 5).entries()) docs[0].film.frames[1].probes[i].output = text;
  docs[0].film.frames[1].probes[0].tokens.forEach((token, i) => (token[0] = HOSTILE[i % HOSTILE.length]));
  docs.push({ ...makeDocument(), film: null });
  for (const [i, { width, scheme }] of SIZES.entries()) {
    const doc = docs[i % docs.length];
    const { page, problems, close } = await open(browser, doc, { width, scheme, bypassCSP: true });
    if (doc.film) await shown(page, 1);
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(overflow <= 0, `${overflow} px too wide at ${width} px`);
    await page.evaluate(axe);
    const { violations } = await page.evaluate((options) => window.axe.run(document, options), AXE);
    assert.deepEqual(
      violations.filter(({ impact }) => ["serious", "critical"].includes(impact)).map(({ id }) => id),
      [],
    );
    assert.deepEqual(problems, []);
    await close();
  }
});
