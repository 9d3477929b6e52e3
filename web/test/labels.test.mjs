// What a reader needs to read a drawing: room, scales, units, names of axes, and which controls are off.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { decode, drawn, encode, fullDocument, launch, open, openTab, sample, sampledDocument } from "./browser.mjs";

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

function gallery(name) {
  const html = readFileSync(new URL(`../../docs/gallery/${name}.html`, import.meta.url), "utf8");
  return JSON.parse(/<script type="application\/json" id="document">(.*?)<\/script>/s.exec(html)[1]);
}

/** Save the drawing of a view as SVG; return its texts with their rotation. */
async function readTexts(page) {
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("button", { name: "Save as SVG" }).first().click(),
  ]);
  const svg = Buffer.concat(await (await download.createReadStream()).toArray()).toString("utf8");
  return [...svg.matchAll(/<text[^>]*>([^<]*)<\/text>/g)].map(([tag, text]) => ({
    text,
    isTurned: tag.includes("rotate("),
  }));
}

/** Draw a view; return the texts on its canvases. */
async function drawnTexts(page, view) {
  await page.evaluate(() => {
    window.texts = [];
    const draw = CanvasRenderingContext2D.prototype.fillText;
    CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
      window.texts.push(text);
      return draw.call(this, text, ...rest);
    };
  });
  await openTab(page, view);
  await drawn(page);
  return page.evaluate(() => window.texts);
}

test("a picture says what its full color is, and that a map of heads has another scale", async () => {
  const doc = { ...gallery("boot"), ablation: null };
  const [group] = doc.attention;
  const { page, close } = await open(browser, doc, { view: "image" });
  await drawn(page);
  const codes = decode(doc.blobs[group.maps[group.default_head.join(".")]]);
  const row = [...codes.slice(doc.picture.first, group.column_count)].map((code) => (code / 255) ** 2);
  const said = /Full color is the largest weight here, ([\d.]+); in Heads it is 1\./.exec(
    await page.locator("#panel").textContent(),
  );
  assert.ok(Math.abs(Number(said[1]) - Math.max(...row)) <= 0.006, `${said[0]} ${Math.max(...row)}`);
  await openTab(page, "heads");
  await page.waitForSelector(".heads");
  assert.match(await page.locator("#panel").textContent(), /Weight from 0 to 1, square-root scale/);
  await close();
});

test("every view uses the width of the page", async () => {
  const doc = fullDocument();
  doc.predictions = Array.from({ length: 6 }, (_, position) => ({ ...doc.predictions[0], position }));
  const { page, close } = await open(browser, doc, { width: 1920, height: 1080 });
  for (const view of ["predictions", "break", "alignment", "search", "heads", "attribution"]) {
    await openTab(page, view);
    await drawn(page);
    const right = await page
      .locator("#panel .stage, #panel .card, #panel .switches")
      .evaluateAll((list) => Math.max(...list.map((item) => item.getBoundingClientRect().right)));
    assert.ok(right >= 0.55 * 1920, `${view} ends at ${right} of 1920 pixels`);
  }
  await close();
});

test("short labels stand upright, and labels are whole", async () => {
  const doc = sample();
  const letters = doc.sequences.target.map((token, i) =>
    Object.assign(token, { text: "abcdefghijkl"[i % 12], word: i }),
  );
  const view = "heads?attention=decoder.self";
  const short = await open(browser, { ...doc, ablation: null }, { view });
  await drawn(short.page);
  const texts = await readTexts(short.page);
  for (const { text } of letters.slice(0, -1)) {
    const found = texts.filter((item) => item.text === text); // a row and a column; the last token is not read
    assert.deepEqual(
      found.map((item) => item.isTurned),
      [false, false],
      text,
    );
  }
  await short.close();
  const long = sample();
  const words = long.sequences.source.map((token, i) => {
    token.word = i;
    token.text = `Donauschiffe${"abcdefghijkl"[i % 12]}`;
    return token.text;
  });
  const { page, close } = await open(browser, { ...long, ablation: null }, { view: "heads?attention=encoder.self" });
  await drawn(page);
  const shown = (await readTexts(page)).map((item) => item.text);
  for (const word of words) assert.equal(shown.filter((text) => text === word).length, 2, word); // row and column
  await close();
});

test("drawings name their units and axes, and empty columns say why", async () => {
  const doc = sample();
  const { page, close } = await open(browser, doc, { view: "story" });
  const overview = await drawnTexts(page, "heads");
  for (const name of ["layer", "head"]) assert.ok(overview.filter((text) => text === name).length >= 3, name);
  await drawnTexts(page, "attribution");
  const said = await page.locator("#panel").textContent();
  assert.match(said, /numbers: change of the logit/);
  assert.match(said, /Special tokens are the same in the input and in the baseline, so their columns are empty\./);
  doc.positions.forEach((item) => assert.equal(item.kind, "sinusoidal"));
  const axes = await drawnTexts(page, "positions");
  for (const name of ["position ↓", "dimension →", "pair of dimensions →", "tokens (log scale)"])
    assert.ok(axes.includes(name), `${name}: ${axes.join(" ")}`);
  await close();
});

test("sampling says how many of the tokens it shows, and which filters are off", async () => {
  const { page, close } = await open(browser, sampledDocument(), { view: "sampling" });
  await page.waitForFunction(() => document.querySelector(".readout").textContent.startsWith("These are"));
  const title = await page.locator(".columns .wide h3").textContent();
  const [kept, shown] = /^(\d+) of 50 tokens are left, (\d+) of them shown$/.exec(title).slice(1).map(Number);
  assert.ok(kept > shown && shown === 12, title);
  const states = await page.locator(".slider").evaluateAll((rows) =>
    rows.map((row) => {
      const range = row.querySelector("input[type=range]");
      const isOn = row.querySelector("input[type=checkbox]").checked;
      return [range.dataset.name, isOn, row.querySelector("output").textContent, getComputedStyle(range).opacity];
    }),
  );
  const on = states.filter(([, isOn]) => isOn).map(([name, , output, opacity]) => [name, output, opacity]);
  assert.deepEqual(on, [
    ["temperature", "0.8", "1"],
    ["top_p", "0.9", "1"],
  ]);
  for (const [name, isOn, output, opacity] of states)
    if (!isOn) assert.ok(output === "off" && Number(opacity) < 0.5, `${name}: ${output}, opacity ${opacity}`);
  await close();
});

test("a byte token is explained", async () => {
  const doc = sample();
  const says = async () => {
    const { page, close } = await open(browser, doc, { view: "heads" });
    const text = await page.locator("#panel").textContent();
    await close();
    return text;
  };
  assert.doesNotMatch(await says(), /written as bytes/);
  Object.assign(doc.sequences.source[0], { text: "\ufffd", bytes: "e282" });
  assert.match(await says(), /‹E2 82›: part of a character, written as bytes\./);
});

for (const scheme of ["light", "dark"])
  test(`a small contribution against an output can be seen, ${scheme}`, async () => {
    const doc = sample();
    const { methods, outputs, source_columns: sources, target_columns: targets } = doc.attribution;
    const values = new Float32Array(outputs.length * (sources + targets));
    [values[0], values[1]] = [2, -0.02]; // one percent of the largest
    doc.blobs[methods.integrated_gradients] = {
      dtype: "f32",
      curve: "linear",
      scale: 1,
      shape: [outputs.length, sources + targets],
      data: encode(Buffer.from(values.buffer)),
    };
    const { page, close } = await open(browser, doc, { view: "attribution", scheme });
    await drawn(page);
    const colors = await page.locator(".attribution .stage").evaluate((element) => {
      const [left, top, cell] = ["left", "top", "cell"].map((name) => Number(element.dataset[name]));
      const context = element.querySelector("canvas").getContext("2d");
      return [1, 2].map((column) => [
        ...context
          .getImageData(Math.floor(left + (column + 0.5) * cell), Math.floor(top + 0.5 * cell), 1, 1)
          .data.slice(0, 3),
      ]);
    });
    const difference = Math.max(...colors[0].map((value, i) => Math.abs(value - colors[1][i])));
    assert.ok(difference >= 24, `${colors[0]} against ${colors[1]}`); // 16 of 255 levels hardly show
    await close();
  });
