// Attention over an image and over a spectrogram, with the documents of real models from docs/gallery.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { AXE, decode, drawn, encode, launch, loadModule, open as openAny, openTab } from "./browser.mjs";

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

const open = (browser, doc, options) => openAny(browser, doc, { view: doc.picture.kind, ...options });

function gallery(name) {
  const html = readFileSync(new URL(`../../docs/gallery/${name}.html`, import.meta.url), "utf8");
  const doc = JSON.parse(/<script type="application\/json" id="document">(.*?)<\/script>/s.exec(html)[1]);
  return { ...doc, ablation: null }; // so that the page opens at the default head
}

const stage = (page) => page.locator(".detail .stage");
const readout = (page) => page.locator(".detail .readout").textContent();
const chip = (page, name) => page.locator(".chips").getByRole("button", { name, exact: true });

/** The weights of a row over the cells of the picture: the mean of some heads. */
function weights(doc, group, layer, heads, row) {
  const maps = heads.map((head) => decode(doc.blobs[group.maps[`${layer}.${head}`]]));
  return doc.sequences.source.slice(doc.picture.first).map((_, cell) => {
    const at = row * group.column_count + doc.picture.first + cell;
    return maps.reduce((sum, codes) => sum + (codes[at] / 255) ** 2, 0) / maps.length;
  });
}

/** Check that a sentence names the cell with the largest weight, and that weight. */
function assertLargest(doc, text, expected) {
  const best = expected.indexOf(Math.max(...expected));
  const name = doc.sequences.source[doc.picture.first + best].text;
  const [, said, weight] = /attends? most to (.*?) \(([\d.]+)\)/.exec(text);
  assert.equal(said, name, text);
  assert.ok(Math.abs(Number(weight) - expected[best]) <= 0.006, `${text} ${expected[best]}`);
}

/** The middle of a cell on the stage. */
async function place(page, column, row = 0) {
  const { left, top, cell } = await stage(page).evaluate((element) => ({ ...element.dataset }));
  return { position: { x: Number(left) + (column + 0.5) * cell, y: Number(top) + (row + 0.5) * cell } };
}

for (const { width, scheme } of [
  { width: 1280, scheme: "light" },
  { width: 400, scheme: "dark" },
])
  test(`an image by pointer, click and keys at ${width} px, ${scheme}`, async () => {
    const doc = gallery("boot");
    const [group] = doc.attention;
    const [layer, head] = group.default_head;
    const of = (row) => weights(doc, group, layer, [head], row);
    const { page, problems, close } = await open(browser, doc, { width, scheme, bypassCSP: true });
    await drawn(page);
    const first = await readout(page);
    assert.ok(first.startsWith("The class token attends most to"), first);
    assertLargest(doc, first, of(0));

    await stage(page).hover(await place(page, 3, 2));
    const said = /attends to patch 2,3: (?:< )?([\d.]+\d|0)\./.exec(await readout(page));
    assert.ok(Math.abs(Number(said[1]) - of(0)[2 * 7 + 3]) <= 0.006, await readout(page));
    await stage(page).click(await place(page, 3, 2));
    await page.mouse.move(1, 1);
    assert.ok((await readout(page)).startsWith("Patch 2,3 attends"), await readout(page));
    assertLargest(doc, await readout(page), of(1 + 2 * 7 + 3));
    assert.equal(await chip(page, "patch 2,3").getAttribute("aria-pressed"), "true");
    await stage(page).focus();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowRight");
    assertLargest(doc, await readout(page), of(1 + 3 * 7 + 4));
    await page.keyboard.press("Escape");
    assert.equal(await readout(page), first);

    await page.getByLabel("Mean of the heads").check();
    const heads = Array.from({ length: group.heads }, (_, i) => i);
    assertLargest(doc, await readout(page), weights(doc, group, layer, heads, 0));
    await chip(page, "All patches (mean)").click();
    assert.ok((await readout(page)).startsWith("All patches (mean) attend most to"), await readout(page));
    await page.evaluate(readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8"));
    const { violations } = await page.evaluate((options) => window.axe.run(options), AXE);
    assert.deepEqual(
      violations.filter((item) => ["serious", "critical"].includes(item.impact)).map((item) => item.id),
      [],
    );
    assert.deepEqual(problems, []);
    await close();
  });

test("the picture shows the pixels that the model read, tinted where it attends", async () => {
  const doc = gallery("boot");
  const [group] = doc.attention;
  const expected = weights(doc, group, ...[group.default_head[0], [group.default_head[1]], 0]);
  const pixels = decode(doc.blobs[doc.picture.pixels]);
  const { page, close } = await open(browser, doc);
  await drawn(page);
  const shown = await stage(page).evaluate((element) => {
    const [left, top, cell] = ["left", "top", "cell"].map((name) => Number(element.dataset[name]));
    const canvas = element.querySelector("canvas");
    const { data, width } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    const pixel = cell / 4; // of a patch of 4 x 4
    return Array.from({ length: 28 * 28 }, (_, i) => {
      const x = Math.floor(left + ((i % 28) + 0.5) * pixel);
      const y = Math.floor(top + (Math.floor(i / 28) + 0.5) * pixel);
      return [...data.slice((y * width + x) * 4, (y * width + x) * 4 + 3)];
    });
  });
  const largest = Math.max(...expected);
  const tint = [0x1f, 0x9b, 0xff];
  shown.forEach((color, i) => {
    const patch = Math.floor(i / 28 / 4) * 7 + Math.floor((i % 28) / 4);
    const share = 0.75 * Math.sqrt(expected[patch] / largest);
    color.forEach((value, channel) => {
      const mixed = pixels[i] * (1 - share) + tint[channel] * share;
      assert.ok(Math.abs(value - mixed) <= 4, `pixel ${i}, channel ${channel}: ${value}, not ${mixed}`);
    });
  });
  await close();
});

test("a transcript over its spectrogram, token by token", async () => {
  const doc = gallery("six");
  const cross = doc.attention.find((group) => group.name === "decoder.cross");
  const [layer, head] = cross.default_head;
  const { page, problems, close } = await open(browser, doc);
  await drawn(page);
  assert.ok((await readout(page)).startsWith("Generating “s”, the decoder attends most to"), await readout(page));
  assertLargest(doc, await readout(page), weights(doc, cross, layer, [head], 0));
  // The spectrogram is clear where the decoder reads it, and faded elsewhere.
  const read = weights(doc, cross, layer, [head], 0);
  const shape = doc.blobs[doc.picture.pixels].shape;
  const levels = decode(doc.blobs[doc.picture.pixels]);
  const [clearest, faintest] = [Math.max(...read), Math.min(...read)].map((weight) => read.indexOf(weight));
  const shown = await stage(page).evaluate(
    (element, [offset, ...columns]) => {
      const [left, top, cell] = ["left", "top", "cell"].map((name) => Number(element.dataset[name]));
      const context = element.querySelector("canvas").getContext("2d");
      return columns.map((column) => [
        ...context
          .getImageData(Math.floor(left + (column + offset) * cell), Math.floor(top + 1), 1, 1)
          .data.slice(0, 3),
      ]);
    },
    [0.5 / doc.picture.cell[1], clearest, faintest], // the middle of a cell's first pixel
  );
  const [page_, ink] = [255, [0x1b, 0x1e, 0x26]];
  const clear = (cell) => {
    const level = levels[cell * doc.picture.cell[1] * shape[2]] / 255;
    return ink.map((value) => page_ + level * (value - page_));
  };
  const near = (a, b) => a.every((value, i) => Math.abs(value - b[i]) <= 4);
  assert.ok(near(shown[0], clear(clearest)), `${shown[0]}`);
  const faint = clear(faintest).map((value) => value + (page_ - value) * 0.75);
  assert.ok(near(shown[1], faint), `${shown[1]} ${faint}`);
  await chip(page, "x").click();
  assertLargest(doc, await readout(page), weights(doc, cross, layer, [head], 2));
  await stage(page).focus();
  await page.keyboard.press("ArrowRight");
  assertLargest(doc, await readout(page), weights(doc, cross, layer, [head], 3));
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("button", { name: "Save as SVG" }).click(),
  ]);
  const svg = Buffer.concat(await (await download.createReadStream()).toArray()).toString("utf8");
  assert.match(svg, /<image .*4 kHz.*0\.2 s/s);

  await page.getByRole("button", { name: "Encoder self-attention" }).click();
  const self = doc.attention.find((group) => group.name === "encoder.self");
  await stage(page).click(await place(page, 5));
  await page.mouse.move(1, 1);
  assert.ok((await readout(page)).startsWith("0.10 s attends most to"), await readout(page));
  assertLargest(doc, await readout(page), weights(doc, self, self.default_head[0], [self.default_head[1]], 5));
  // A head among generated tokens, chosen in another tab, has no place here.
  await openTab(page, "heads");
  await page.locator('[data-group="decoder.self"]').focus();
  await page.keyboard.press("ArrowDown");
  await openTab(page, "spectrogram");
  assert.match(await page.locator(".detail h2").textContent(), /^Which time steps each time step reads/);
  assert.deepEqual(problems, []);
  await close();
});

test("an audio clip plays, shows where it is, and stops", async () => {
  const doc = gallery("six");
  const seconds = 30; // a longer clip, so that it still plays when it is stopped
  const codes = Uint8Array.from({ length: seconds * doc.picture.rate }, (_, i) => 127 + 60 * Math.sin(i / 5));
  doc.blobs.audio = { dtype: "u8", curve: "linear", scale: 1, shape: [codes.length], data: encode(codes) };
  doc.picture.audio = "audio";
  const { decodeMuLaw } = await loadModule("audio.ts");
  const decoded = [...decodeMuLaw([0, 127, 140, 254])]; // as tests/look/test_media.py decodes them
  [-1, 0, 0.0029963, 1].forEach((value, i) => assert.ok(Math.abs(decoded[i] - value) < 1e-6, `${decoded}`));
  const { page, problems, close } = await open(browser, doc);
  await drawn(page);
  const overlay = () => stage(page).evaluate((element) => element.querySelector(".overlay").toDataURL());
  const before = await overlay();
  const play = page.getByRole("button", { name: "Play" });
  await play.focus();
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Stop" }).waitFor();
  assert.notEqual(await overlay(), before, "a playhead");
  const size = page.viewportSize();
  for (const width of [size.width - 10, size.width]) {
    await page.setViewportSize({ ...size, width }); // draws the controls again; the button keeps the focus
    await drawn(page);
  }
  await page.waitForFunction(() => document.activeElement?.className === "play");
  await page.keyboard.press("Enter");
  await play.waitFor();
  await drawn(page);
  assert.equal(await overlay(), before);
  await play.click();
  await openTab(page, "heads"); // and the clip stops
  await openTab(page, "spectrogram");
  await play.waitFor();
  delete doc.picture.audio;
  await close();
  const old = await open(browser, doc);
  assert.equal(await old.page.getByRole("button", { name: "Play" }).count(), 0);
  assert.deepEqual([...problems, ...old.problems], []);
  await old.close();
});

/** The weights of a word: the mean over its rows. */
function wordWeights(doc, group, rows) {
  const [layer, head] = group.default_head;
  const parts = rows.map((row) => weights(doc, group, layer, [head], row));
  return parts[0].map((_, cell) => parts.reduce((sum, part) => sum + part[cell], 0) / parts.length);
}

for (const { width, scheme } of [
  { width: 1280, scheme: "light" },
  { width: 400, scheme: "dark" },
])
  test(`a caption word by word over its image at ${width} px, ${scheme}`, async () => {
    const doc = gallery("shapes");
    const cross = doc.attention.find((group) => group.name === "decoder.cross");
    const target = doc.sequences.target.slice(1);
    target[1].word = target[0].word; // a word of two tokens
    const joined = (target[0].text + target[1].text).trim();
    const words = target.slice(2).map((token, i) => ({ text: token.text.trim(), rows: [i + 2] }));
    words.unshift({ text: joined, rows: [0, 1] });
    const { page, problems, close } = await open(browser, doc, { width, scheme, bypassCSP: true });
    await drawn(page);
    const buttons = page.locator(".chips button");
    assert.deepEqual(await buttons.allTextContents(), ["All words (mean)", ...words.map(({ text }) => text)]);
    assert.equal(await page.locator(".chips canvas").count(), words.length + 1);
    const everything = target.map((_, row) => row);
    assert.ok((await readout(page)).startsWith("All generated words (mean) attend most to"), await readout(page));
    assertLargest(doc, await readout(page), wordWeights(doc, cross, everything));
    await buttons.nth(1).click();
    assert.ok((await readout(page)).startsWith(`Generating “${joined}”, the decoder attends most to`));
    assertLargest(doc, await readout(page), wordWeights(doc, cross, [0, 1]));

    await stage(page).focus();
    await page.keyboard.press("ArrowRight");
    assert.ok((await readout(page)).startsWith(`Generating “${words[1].text}”`), await readout(page));
    assertLargest(doc, await readout(page), wordWeights(doc, cross, [2]));
    await buttons.last().click();
    assertLargest(doc, await readout(page), wordWeights(doc, cross, words.at(-1).rows));
    await buttons.first().click();
    assertLargest(doc, await readout(page), wordWeights(doc, cross, everything));

    // The small picture of each word is tinted like the large one.
    const pixels = decode(doc.blobs[doc.picture.pixels]);
    const [height, columns] = doc.blobs[doc.picture.pixels].shape;
    for (const [i, { rows }] of words.entries()) {
      const expected = wordWeights(doc, cross, rows);
      const shown = await buttons.nth(i + 1).evaluate((button, side) => {
        const canvas = button.querySelector("canvas");
        const { data, width } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        const scale = width / side;
        return Array.from({ length: side * side }, (_, j) => {
          const [x, y] = [j % side, Math.floor(j / side)].map((at) => Math.floor((at + 0.5) * scale));
          return [...data.slice((y * width + x) * 4, (y * width + x) * 4 + 3)];
        });
      }, columns);
      assert.equal(shown.length, height * columns);
      const largest = Math.max(...expected);
      shown.forEach((color, j) => {
        if (j % columns === 0 || j < columns || j % columns === columns - 1 || j >= columns * (height - 1)) return; // rim
        const cell =
          Math.floor(j / columns / doc.picture.cell[0]) * doc.picture.grid[1] +
          Math.floor((j % columns) / doc.picture.cell[1]);
        const share = 0.75 * Math.sqrt(expected[cell] / largest);
        [0x1f, 0x9b, 0xff].forEach((tint, channel) => {
          const mixed = pixels[j] * (1 - share) + tint * share;
          assert.ok(Math.abs(color[channel] - mixed) <= 8, `word ${i}, pixel ${j}: ${color[channel]}, not ${mixed}`);
        });
      });
    }
    await page.evaluate(readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8"));
    const { violations } = await page.evaluate((options) => window.axe.run(options), AXE);
    assert.deepEqual(
      violations.filter((item) => ["serious", "critical"].includes(item.impact)).map((item) => item.id),
      [],
    );
    assert.deepEqual(problems, []);
    await close();
  });

test("a file without the map of a head says so", async () => {
  const doc = gallery("boot");
  doc.attention[0].maps = {};
  const { page, problems, close } = await open(browser, doc);
  assert.match(await page.locator(".detail .readout").textContent(), /no complete map/);
  assert.deepEqual(problems, []);
  await close();
});
