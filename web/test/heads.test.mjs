import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { SIZES, decode, drawn, launch, open as openAny, sample as wholeSample } from "./browser.mjs";

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

const open = (browser, doc, options) => openAny(browser, doc, { view: "heads", ...options });

/** Without ablation the page opens at the cross-attention. */
const sample = () => ({ ...wholeSample(), ablation: null });

const stage = (page) => page.locator(".detail .stage");
const readout = (page) => page.locator(".detail .readout").textContent();

/** The heatmap's pixels as codes, by the colors of the ramp; -1 for a color that is not in it. */
function readCodes(page, ramp, rows, columns) {
  return page.evaluate(
    ([ramp, rows, columns]) => {
      const element = document.querySelector(".detail .stage");
      const [left, top, cell] = ["left", "top", "cell"].map((name) => Number(element.dataset[name]));
      const canvas = element.querySelector("canvas");
      const { data, width } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      return Array.from({ length: rows * columns }, (_, i) => {
        const x = Math.floor(left + ((i % columns) + 0.5) * cell);
        const y = Math.floor(top + (Math.floor(i / columns) + 0.5) * cell);
        return ramp.indexOf([0, 1, 2].map((channel) => data[(y * width + x) * 4 + channel]).join());
      });
    },
    [ramp, rows, columns],
  );
}

/** The colors of the key from 0 to 1: the key is drawn so wide that every code has a pixel. */
function readRamp(page) {
  return page.evaluate(() => {
    const canvas = document.querySelector(".key canvas");
    const { data } = canvas.getContext("2d").getImageData(0, 6, 256, 1);
    return Array.from({ length: 256 }, (_, i) => [...data.slice(i * 4, i * 4 + 3)].join());
  });
}

const cross = (doc) => doc.attention.find((item) => item.name === "decoder.cross");
const weights = (doc, group, name) => {
  const codes = decode(doc.blobs[group.maps[name]]);
  return (row, column) => (codes[row * group.column_count + column] / 255) ** 2;
};
/** What a label ends in: the token without its space. */
const ending = (token) => token.text.trim() + "”";
const numberIn = (text, pattern) => Number(pattern.exec(text)[1].replace("< ", ""));

for (const { width, scheme } of SIZES) {
  test(`heads by pointer, click and keys at ${width} px, ${scheme}`, async () => {
    const doc = sample();
    const group = cross(doc);
    const [source, generated] = [doc.sequences.source, doc.sequences.target.slice(group.row_start)];
    const weight = weights(doc, group, group.default_head.join("."));
    const { page, problems, close } = await open(browser, doc, { width, scheme });
    const before = await readout(page);
    await stage(page).scrollIntoViewIfNeeded();
    const frame = await stage(page).evaluate((element) => ({ ...element.dataset }));
    const [left, top, cell] = [frame.left, frame.top, frame.cell].map(Number);
    await stage(page).hover({ position: { x: left + 2.5 * cell, y: top + 3.5 * cell } });
    const hovered = await readout(page);
    assert.notEqual(hovered, before);
    const [from, to] = hovered.split(":")[0].split(" → ");
    assert.ok(from.startsWith("Generating") && from.endsWith(ending(generated[3])), hovered);
    assert.ok(to.endsWith(ending(source[2])), hovered);
    assert.ok(Math.abs(numberIn(hovered, /: ((?:< )?[\d.]+\d)/) - weight(3, 2)) <= 0.005, hovered);
    await stage(page).click({ position: { x: left + 2.5 * cell, y: top + 3.5 * cell } });
    await stage(page).hover({ position: { x: left + 5.5 * cell, y: top + 6.5 * cell } });
    assert.equal(await readout(page), hovered, "a locked cell stays while the pointer moves");
    await stage(page).focus();
    await page.keyboard.press("ArrowDown");
    assert.ok((await readout(page)).split(" → ")[0].endsWith(ending(generated[4])), await readout(page));
    await page.keyboard.press("Escape");
    await page.mouse.move(1, 1);
    assert.equal(await readout(page), before);

    // Another head by the keys of its overview.
    const overview = page.locator('[data-group="decoder.self"]');
    await overview.focus();
    for (const key of [
      "ArrowDown",
      ...Array(4).fill("ArrowLeft"),
      ...Array(4).fill("ArrowUp"),
      "ArrowRight",
      "ArrowDown",
    ])
      await page.keyboard.press(key);
    assert.equal(
      await page.locator(".detail h2").textContent(),
      "Which earlier words it reads (layer 2 of 2, head 2 of 4)",
    );

    await page.getByRole("button", { name: "Lines" }).click();
    await stage(page).hover({ position: { x: 30, y: 60 } });
    assert.match(await readout(page), /attends most to/);
    assert.deepEqual(problems, []);
    await close();
  });
}

test("a click on a thumbnail opens its head", async () => {
  const { page, close } = await open(browser, sample());
  const overview = page.locator('[data-group="encoder.self"]');
  const { left, top, cell } = await overview.evaluate((element) => ({ ...element.dataset }));
  await overview.click({ position: { x: Number(left) + 2.5 * Number(cell), y: Number(top) + 1.5 * Number(cell) } });
  assert.equal(
    await page.locator(".detail h2").textContent(),
    "Which words each word reads (layer 2 of 2, head 3 of 4)",
  );
  await close();
});

test("on a phone a thumbnail brings its map into view, and a long sentence does not move it", async () => {
  const { page, problems, close } = await open(browser, sample(), {
    width: 400,
    height: 700,
    fresh: { hasTouch: true, isMobile: true },
  });
  assert.equal(await readout(page), "Tap a row to read its weights.");
  const overview = page.locator('[data-group="encoder.self"]');
  const { left, top, cell } = await overview.evaluate((element) => ({ ...element.dataset }));
  await overview.tap({ position: { x: Number(left) + 0.5 * Number(cell), y: Number(top) + 0.5 * Number(cell) } });
  const title = await page.locator(".detail h2").boundingBox();
  assert.ok(title.y >= -1 && title.y < 350, JSON.stringify(title));
  const place = async () => (await stage(page).boundingBox()).y + (await page.evaluate(() => scrollY));
  const before = await place();
  await stage(page).focus();
  for (const key of ["Enter", "ArrowDown"]) await page.keyboard.press(key);
  assert.equal(await place(), before);
  const side = await page.getByLabel("Numbers").evaluate((element) => element.getBoundingClientRect().width);
  assert.ok(side >= 24, `the checkbox is ${side} px wide`);
  assert.deepEqual(problems, []);
  await close();
});

test("words sum their subwords, and hidden special tokens are counted", async () => {
  const doc = sample();
  const group = cross(doc);
  const weight = weights(doc, group, group.default_head.join("."));
  const [source, generated] = [doc.sequences.source, doc.sequences.target.slice(group.row_start)];
  // The first generated word of several tokens, and the first source word of several tokens.
  const split = (tokens) => tokens.findIndex((token, i) => token.word !== null && tokens[i + 1]?.word === token.word);
  const members = (tokens, word) => tokens.flatMap((token, i) => (token.word === word ? [i] : []));
  const [rowWord, columnWord] = [generated[split(generated)].word, source[split(source)].word];
  const [rows, columns] = [members(generated, rowWord), members(source, columnWord)];
  const mean = (list) =>
    rows.reduce((sum, i) => sum + list.reduce((part, j) => part + weight(i, j), 0), 0) / rows.length;

  const { page, close } = await open(browser, doc);
  await page.getByLabel("Words").check();
  await page.getByLabel("Special tokens").uncheck();
  const { left, top, cell } = await stage(page).evaluate((element) => ({ ...element.dataset }));
  const at = (start, index) => Number(start) + (index + 0.5) * Number(cell);
  await stage(page).hover({ position: { x: at(left, columnWord), y: at(top, rowWord) } });
  const text = await readout(page);
  assert.ok(Math.abs(numberIn(text, /: ((?:< )?[\d.]+\d)/) - mean(columns)) <= 0.006, `${text} ${mean(columns)}`);
  const hidden = mean(source.flatMap((token, i) => (token.role === "special" ? [i] : [])));
  const said = /Hidden special tokens hold ([\d.]+\d)/.exec(text);
  assert.ok(Math.abs((said ? Number(said[1]) : 0) - hidden) <= 0.0101, `${text} ${hidden}`);
  await close();
});

test("a line break is no part of a word, and stretched rows keep their numbers", async () => {
  const doc = sample();
  const { source } = doc.sequences;
  const at = source.findIndex((token, i) => token.word !== null && source[i + 1]?.word > token.word);
  Object.assign(source[at], { text: "\n", word: source[at + 1].word });
  const { page, problems, close } = await open(browser, doc);
  await page.getByLabel("Words").check();
  const before = new Set(source.slice(0, at).map((token, i) => token.word ?? `special ${i}`)).size;
  const { left, top, cell } = await stage(page).evaluate((element) => ({ ...element.dataset }));
  const point = (column) => ({ position: { x: Number(left) + (column + 0.5) * cell, y: Number(top) + 0.5 * cell } });
  await stage(page).hover(point(before));
  assert.match(await readout(page), /→ “↵”:/);
  await stage(page).hover(point(before + 1));
  assert.match(await readout(page), new RegExp(`→ “${source[at + 1].text.trim()}`));

  await page.mouse.move(1, 1);
  const picture = () => page.evaluate(() => document.querySelector(".detail .stage canvas").toDataURL());
  const key = page.locator(".key canvas");
  assert.equal(await key.getAttribute("aria-label"), "Color key: Weight from 0 to 1, square-root scale");
  await page.getByLabel("Numbers").uncheck();
  await page.getByLabel("Stretch rows").check();
  assert.equal(await key.getAttribute("aria-label"), "Color key: Share of the row's largest weight, square-root scale");
  const plain = await picture();
  await page.getByLabel("Numbers").check();
  assert.notEqual(await picture(), plain);
  assert.deepEqual(problems, []);
  await close();
});

for (const scheme of ["light", "dark"])
  test(`every pixel of the map is the quantized weight, ${scheme}`, async () => {
    const doc = sample();
    const group = cross(doc);
    const codes = decode(doc.blobs[group.maps["1.1"]]);
    const { page, close } = await open(browser, doc, { scheme });
    const ramp = await readRamp(page);
    assert.equal(new Set(ramp).size, 256, "all codes have distinct colors");
    const body = await page.evaluate(() => getComputedStyle(document.body).backgroundColor.match(/\d+/g).join());
    assert.equal(ramp[0], body, "zero is the page's color");
    const overview = page.locator('[data-group="decoder.cross"]');
    const { left, top, cell } = await overview.evaluate((element) => ({ ...element.dataset }));
    await overview.click({ position: { x: Number(left) + 1.5 * Number(cell), y: Number(top) + 1.5 * Number(cell) } });
    await page.waitForFunction(() =>
      document.querySelector(".detail h2").textContent.endsWith("(layer 2 of 2, head 2 of 4)"),
    );
    await drawn(page);
    assert.deepEqual(await readCodes(page, ramp, group.row_count, group.column_count), [...codes]);
    await close();
  });

test("past 100 heads a statistic colors the cells", async () => {
  const doc = sample();
  const [group] = doc.attention;
  group.layers = group.heads = 16;
  for (const name of Object.keys(group.statistics))
    group.statistics[name] = Array.from({ length: 16 }, (_, layer) =>
      Array.from({ length: 16 }, (_, head) => (layer + head) / 30),
    );
  group.errors = Array.from({ length: 16 }, () => Array(16).fill(1e-7));
  group.sampled_rows = 128;
  doc.attention = [group];
  const { page, problems, close } = await open(browser, doc);
  await page.locator(".overview select").selectOption("previous");
  const overview = page.locator('[data-group="encoder.self"]');
  const { left, top, cell } = await overview.evaluate((element) => ({ ...element.dataset }));
  await overview.hover({ position: { x: Number(left) + 15.5 * Number(cell), y: Number(top) + 15.5 * Number(cell) } });
  assert.match(
    await page.locator(".overview [role=status]").textContent(),
    /Layer 16, head 16: .*weight 1.00 on the previous token.*sampled: 128 rows/,
  );
  assert.deepEqual(problems, []);
  await close();
});

test("a live page asks for maps that the document left out", async () => {
  const doc = sample();
  doc.live = true;
  const group = cross(doc);
  const blob = doc.blobs[group.maps["0.0"]];
  group.maps = {};
  const asked = [];
  const answer = (name, parameters) => {
    asked.push(`${name}?${parameters}`);
    return blob;
  };
  const { page, problems, close } = await open(browser, doc, { answer });
  await stage(page).focus();
  await page.waitForFunction(() => document.querySelector(".detail .readout").textContent.startsWith("Point"));
  assert.deepEqual(asked, [`map?group=decoder.cross&layer=${group.default_head[0]}&head=${group.default_head[1]}`]);
  assert.deepEqual(problems, []);
  await close();
});

test("a live page states the exact weights of the row under the pointer", async () => {
  const doc = sample();
  doc.live = true;
  const group = cross(doc);
  const source = doc.sequences.source;
  const asked = [];
  const answer = (name, parameters) => {
    asked.push(`${name}?${parameters}`);
    return { weights: source.map((_, column) => (column === 2 ? 0.123456 : column === 1 ? 0.7 : 0)) };
  };
  const { page, problems, close } = await open(browser, doc, { answer });
  const { left, top, cell } = await stage(page).evaluate((element) => ({ ...element.dataset }));
  const at = (start, index) => Number(start) + (index + 0.5) * Number(cell);
  await stage(page).hover({ position: { x: at(left, 2), y: at(top, 3) } });
  await page.waitForFunction(() => document.querySelector(".detail .readout").textContent.includes("0.1235"));
  assert.match(await readout(page), /: 0\.1235\. The row attends most to .* 0\.7000, .* 0\.1235\./);
  const [layer, head] = group.default_head;
  assert.deepEqual(asked, [`row?group=decoder.cross&layer=${layer}&head=${head}&row=3`]);
  assert.deepEqual(problems, []);
  await close();
});

test("the header of a worked example names no parameters", async () => {
  const doc = sample();
  const header = async () => {
    const { page, close } = await open(browser, doc);
    const text = await page.locator("header").innerText();
    await close();
    return text;
  };
  assert.match(await header(), /[1-9][\d,]* parameters/);
  Object.assign(doc.model, { name: "lectures", parameters: 0, layers: {} });
  assert.doesNotMatch(await header(), /parameters|layer/);
});

test("the page opens with what happened: how sure the model is, and the head that matters most", async () => {
  const doc = wholeSample();
  const heads = Object.entries(doc.ablation.delta).flatMap(([group, table]) =>
    table.flatMap((row, layer) => row.map((delta, head) => ({ group, layer, head, delta }))),
  );
  const worst = heads.reduce((best, item) => (item.delta < best.delta ? item : best));
  assert.equal(worst.group, "decoder.self");
  const headline = async (document) => {
    const { page, problems, close } = await open(browser, document);
    const said = [await page.locator("h1").innerText(), await page.locator(".detail h2").innerText()];
    assert.deepEqual(problems, []);
    await close();
    return said;
  };
  const logprobs = doc.sequences.target.flatMap(({ logprob }) => (logprob === undefined ? [] : [logprob]));
  const total = logprobs.reduce((sum, logprob) => sum + logprob, 0);
  const [title, place] = await headline(doc);
  const [, whole, each] = /probability (?:< )?([\d.]+) %, ([\d.]+) % per token$/.exec(title);
  assert.ok(title.startsWith(doc.output), title);
  assert.ok(Math.abs(whole / 100 - Math.exp(total)) < 0.005, `${title} ${Math.exp(total)}`);
  assert.ok(Math.abs(each / 100 - Math.exp(total / logprobs.length)) < 0.005, title);
  assert.ok(place.endsWith(`(layer ${worst.layer + 1} of 2, head ${worst.head + 1} of 4)`), place);

  doc.predictions = [{ position: null, labels: ["Ankle boot", "Sneaker"], probabilities: [0.7437, 0.2] }];
  doc.output = "Ankle boot";
  assert.equal((await headline(doc))[0], "Ankle boot 74 % sure");
  doc.predictions[0].labels[0] = doc.output = "9";
  assert.equal((await headline(doc))[0], "Label 9 74 % sure");

  // Words with the tag O are left out; a word of several tokens is named as a whole.
  const words = doc.sequences.source.flatMap((token, position) =>
    token.word === null ? [] : [{ ...token, position }],
  );
  const [first, last] = [words[0], words.at(-1)].map(({ word }) => words.filter((token) => token.word === word));
  const [name, other] = [first, last].map((tokens) =>
    tokens
      .map((token) => token.text)
      .join("")
      .trim(),
  );
  doc.predictions = [
    { position: first[0].position, labels: ["PER", "O"], probabilities: [0.9, 0.1] },
    { position: last[0].position, labels: ["O", "PER"], probabilities: [0.8, 0.2] },
  ];
  doc.output = `${name}/PER ${other}/O`;
  assert.equal((await headline(doc))[0], `${name}: PER at least 80 % sure`);
});
