// A story and a film as animated PNGs: what was saved is decoded chunk by chunk, and as pictures by the browser.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { crc32, deflateSync, inflateSync } from "node:zlib";
import { encode, launch, loadModule, makePage, sample } from "./browser.mjs";

let browser, folder;
before(async () => {
  browser = await launch();
  folder = mkdtempSync(join(tmpdir(), "apng-"));
});
after(async () => {
  rmSync(folder, { recursive: true });
  await browser.close();
});

function readChunks(bytes) {
  assert.equal(bytes.subarray(0, 8).toString("latin1"), "\x89PNG\r\n\x1a\n");
  const chunks = [];
  for (let at = 8; at < bytes.length; at = chunks.at(-1).end) {
    const start = at + 8;
    const stop = start + bytes.readUInt32BE(at);
    assert.equal(crc32(bytes.subarray(at + 4, stop)), bytes.readUInt32BE(stop), "CRC");
    chunks.push({ type: bytes.toString("latin1", at + 4, start), data: bytes.subarray(start, stop), end: stop + 4 });
  }
  return chunks;
}

/** Check the structure of an animated PNG; returns the delays of its frames in milliseconds. */
function checkStructure(bytes) {
  const chunks = readChunks(bytes);
  const types = chunks.map(({ type }) => type);
  const [header, control] = chunks.map(({ data }) => data);
  assert.deepEqual([types[0], types[1], types.at(-1)], ["IHDR", "acTL", "IEND"]);
  const [width, height] = [header.readUInt32BE(0), header.readUInt32BE(4)];
  const count = control.readUInt32BE(0);
  assert.equal(control.readUInt32BE(4), 0, "it repeats");
  const rest = chunks.slice(types.indexOf("fcTL"), -1);
  assert.deepEqual(
    rest.map(({ type }) => type),
    Array.from({ length: count }, (_, i) => ["fcTL", i === 0 ? "IDAT" : "fdAT"]).flat(),
  );
  const numbered = rest.filter(({ type }) => type !== "IDAT").map(({ data }) => data.readUInt32BE(0));
  assert.deepEqual([...numbered.keys()], numbered, "sequence numbers");
  const channels = { 2: 3, 6: 4 }[header[9]];
  return Array.from({ length: count }, (_, i) => {
    const [{ data: frame }, { data }] = rest.slice(2 * i, 2 * i + 2);
    const [wide, high, x, y] = [4, 8, 12, 16].map((at) => frame.readUInt32BE(at));
    assert.deepEqual([wide, high, x, y], [width, height, 0, 0], "every frame is a whole picture");
    assert.deepEqual([frame[24], frame[25]], [0, Number(i > 0)], "it covers the frame before");
    assert.equal(inflateSync(data.subarray(i === 0 ? 0 : 4)).length, height * (1 + width * channels));
    return (1000 * frame.readUInt16BE(20)) / frame.readUInt16BE(22);
  });
}

test("frames are joined with the delays they have, and unequal ones are refused", async () => {
  const { joinFrames } = await loadModule("apng.ts");
  const chunk = (type, data) => {
    const body = Buffer.concat([Buffer.from(type), data]);
    const number = (value) => Buffer.from(Uint32Array.of(value).buffer).reverse();
    return Buffer.concat([number(data.length), body, number(crc32(body))]);
  };
  const png = (width, color) => {
    const pixels = deflateSync(Buffer.concat([Buffer.of(0), Buffer.alloc(4 * width, color)]));
    const header = Buffer.of(0, 0, 0, width, 0, 0, 0, 1, 8, 6, 0, 0, 0);
    const data = [pixels.subarray(0, 3), pixels.subarray(3)].map((part) => chunk("IDAT", part)); // encoders split it
    const parts = [chunk("IHDR", header), ...data, chunk("IEND", Buffer.of())];
    return Uint8Array.from(Buffer.concat([Buffer.from("\x89PNG\r\n\x1a\n", "latin1"), ...parts]));
  };
  const frames = [100, 300, 60000].map((delay, i) => ({ png: png(3, 50 * i), delay, isOver: i > 0 }));
  assert.deepEqual(checkStructure(Buffer.from(joinFrames(frames))), [100, 300, 60000]);
  assert.throws(() => joinFrames([frames[0], { ...frames[1], png: png(4, 0) }]), /another size/);
});

test("a long animation has every k-th step and the last, at most 60 frames", async () => {
  const { chooseFrames, describeSaved } = await loadModule("animation.ts");
  assert.equal(describeSaved(1.25e6, 60), "Saved: 1.3 MB.");
  assert.equal(describeSaved(4000, 200), "Saved: 0.1 MB. Too long for 60 frames: it has one step in 4.");
  for (let count = 1; count < 400; count++) {
    const { stride, steps } = chooseFrames(count);
    assert.ok(steps.length <= 60 && steps[0] === 0 && steps.at(-1) === count - 1, `${count} steps: ${steps}`);
    assert.ok(steps.slice(0, -1).every((step, i) => step === i * stride) && count > 60 === stride > 1);
  }
});

/** A film of five frames whose map and output change. */
function makeFilm() {
  const maps = (i) => encode(Uint8Array.from({ length: 6 }, (_, cell) => (cell * 40 + i * 3) % 256));
  const frames = Array.from({ length: 5 }, (_, i) => ({
    step: i,
    loss: i === 0 ? null : 4 / i,
    probes: [
      {
        output: i < 3 ? "ein" : "ein Hund",
        length: 2,
        logprob: -1 - 1 / (i + 1),
        reference_logprob: -2,
        tokens: [
          ["ein", 0],
          ["Hund", 1],
        ],
        shape: [1, 1, 2, 3],
      },
    ],
    maps: { dtype: "u8", curve: "sqrt", scale: 1, shape: [6], data: maps(i) },
  }));
  const tokens = ["a", "big", "dog"].map((text, i) => [text, i]);
  const probes = [{ text: "a big dog", reference: "ein Hund", reference_length: 2, tokens }];
  const film = { attention: { name: "decoder.cross", layers: 1, heads: 1 }, default_head: [0, 0], probes, frames };
  const loss = { steps: frames.slice(1).map(({ step }) => step), values: frames.slice(1).map((frame) => frame.loss) };
  const rest = { task: "translation", metric: "loss", steps: 4, is_finished: true, validation: {} };
  const runs = [{ name: "run", ...rest, training: { loss } }];
  return { format: "regard-film/1", live: false, text: "Training of run", version: "1", notes: [], runs, film };
}

/** Decode an animation in the browser: its number of frames, and how many pixels differ between frames. */
const decodePictures = (page, bytes) =>
  page.evaluate(async (data) => {
    if (!globalThis.ImageDecoder) return null;
    const decoder = new ImageDecoder({ data: Uint8Array.from(atob(data), (c) => c.charCodeAt(0)), type: "image/png" });
    await decoder.completed;
    await decoder.tracks.ready;
    const count = decoder.tracks.selectedTrack.frameCount;
    const read = async (frameIndex) => {
      const { image } = await decoder.decode({ frameIndex });
      const { displayWidth: width, displayHeight: height } = image;
      const context = Object.assign(document.createElement("canvas"), { width, height }).getContext("2d");
      context.drawImage(image, 0, 0);
      return { height, width, pixels: new Uint32Array(context.getImageData(0, 0, width, height).data.buffer) };
    };
    const [first, last] = [await read(0), await read(count - 1)];
    const differs = (from, to) => {
      let sum = 0;
      for (let i = from * last.width; i < to * last.width; i++) sum += Number(first.pixels[i] !== last.pixels[i]);
      return sum;
    };
    const isOpaque = last.pixels.every((pixel) => pixel >>> 24 === 255);
    const credit = last.height - 60;
    return {
      count,
      isOpaque,
      title: differs(0, 75),
      middle: differs(75, credit),
      credit: differs(credit, last.height),
    };
  }, bytes.toString("base64"));

test("story and film are saved as animations from a file, without requests", async () => {
  const context = await browser.newContext({ reducedMotion: "reduce", offline: true, acceptDownloads: true });
  const page = await context.newPage();
  const problems = [];
  page.on("pageerror", (error) => problems.push(error.message));
  page.on("console", (message) => message.type() === "error" && problems.push(message.text()));
  page.on("request", (request) => /^(file|blob|data):/.test(request.url()) || problems.push(request.url()));
  const story = sample();
  for (const [name, doc] of [
    ["story", story],
    ["film", makeFilm()],
  ]) {
    writeFileSync(join(folder, `${name}.html`), makePage(doc));
    await page.goto(pathToFileURL(join(folder, `${name}.html`)).href);
    const button = page.locator(".animation button");
    const status = page.locator(".animation [role=status]");
    const [download] = await Promise.all([page.waitForEvent("download"), button.click()]);
    assert.equal(download.suggestedFilename(), `${name}.png`);
    const bytes = Buffer.concat(await (await download.createReadStream()).toArray());
    assert.ok(bytes.length <= 4.1e6, `${bytes.length} bytes`);
    const delays = checkStructure(bytes);
    const steps = name === "film" ? 5 : await page.locator(".transcript li").count();
    assert.deepEqual(delays, [...Array(steps - 1).fill(name === "film" ? 300 : 1400), 3000]);
    assert.match(await status.textContent(), /^Saved: \d\.\d MB\.$/);
    assert.equal(await button.textContent(), "Save animation");
    const shown = await decodePictures(page, bytes);
    if (shown === null) continue; // this browser has no ImageDecoder
    assert.equal(shown.count, steps);
    assert.ok(shown.isOpaque && shown.middle > 500, JSON.stringify(shown));
    assert.deepEqual([shown.title, shown.credit], [0, 0], "title and credit stay");
  }
  // A second click cancels; the page saves again afterward.
  const button = page.locator(".animation button");
  await page.evaluate(() => {
    const button = document.querySelector(".animation button");
    button.click();
    button.click();
  });
  await page.waitForFunction(() => document.querySelector(".animation button").textContent === "Save animation");
  assert.equal(await page.locator(".animation [role=status]").textContent(), "");
  assert.deepEqual(problems, []);
  await context.close();
});
