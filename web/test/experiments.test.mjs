// Attribution, Break it, sampling, masks and positions.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { deflateSync } from "node:zlib";
import { SIZES, decode, launch, open, openTab, sample, sampledDocument } from "./browser.mjs";

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

const readout = (page) => page.locator("#panel .readout").textContent();

for (const { width, scheme } of SIZES)
  test(`sampling by sliders at ${width} px, ${scheme}`, async () => {
    const { page, problems, close } = await open(browser, sampledDocument(), { width, scheme, view: "sampling" });
    await page.waitForFunction(() =>
      document.querySelector(".readout").textContent.startsWith("These are the recorded"),
    );
    assert.equal(await page.getByRole("heading", { name: "How the dice fell" }).count(), 1);
    const left = async () => Number((await page.locator(".columns .wide h3").textContent()).split(" ")[0]);
    const recorded = await left();
    const slider = page.locator("#slider-top_k");
    await slider.focus();
    await page.keyboard.press("Home");
    for (let i = 0; i < 4; i++) await page.keyboard.press("ArrowRight");
    assert.equal(await left(), 5);
    assert.match(await readout(page), /Not the recorded settings: .* was sampled with temperature 0.8, top_p 0.9/);
    assert.match(await page.locator("#panel .fact").textContent(), /impossible/);
    await page.getByRole("button", { name: "Draw again" }).click();
    assert.equal(await page.getByRole("heading", { name: "Another draw, not the recorded one" }).count(), 1);
    await page.getByRole("button", { name: "Recorded settings" }).click();
    assert.equal(await left(), recorded);
    assert.equal(await page.getByRole("heading", { name: "How the dice fell" }).count(), 1);
    assert.deepEqual(problems, []);
    await close();
  });

const EFFECTS = { "encoder.self": [-0.4, 0.3], "decoder.cross": [-2.14, -0.001] };

/** A document whose first heads have known effects, with the new output of every head. */
function breakable() {
  const doc = sample();
  doc.output = "two dogs play";
  doc.ablation.baseline = Math.log(0.51);
  for (const [group, table] of Object.entries(doc.ablation.delta))
    table.forEach((row, layer) =>
      row.forEach((_, head) => {
        row[head] = (layer === 0 && EFFECTS[group]?.[head]) || 0;
        doc.ablation.texts[`${group}.${layer}.${head}`] = row[head] < -1 ? "two cats play" : doc.output;
      }),
    );
  return doc;
}

const off = (page) =>
  page.locator('.switch[aria-checked="false"]').evaluateAll((list) => list.map((item) => item.dataset.key));
const effect = (page) => page.locator(".result .effect").textContent();

for (const { width, scheme } of SIZES)
  test(`break it by switches, buttons and keys at ${width} px, ${scheme}`, async () => {
    const { page, problems, close } = await open(browser, breakable(), { width, scheme, view: "ablation" });
    assert.equal(await page.locator("#panel h2").textContent(), "What breaks if a head is switched off?");
    await page.getByRole("button", { name: "Switch off the head that matters most" }).click();
    assert.deepEqual(await off(page), ["decoder.cross.0.0"]);
    assert.equal(await effect(page), "Without this head the probability of the translation falls from 51 % to 6.0 %.");
    assert.deepEqual(await page.locator(".result del, .result ins").allTextContents(), [" dogs", " cats"]);
    await page.waitForFunction(() => location.hash === "#break?off=decoder.cross.1.1");
    await page.getByRole("button", { name: "Switch off the head that hurts most" }).click();
    assert.deepEqual(await off(page), ["encoder.self.0.1"]); // a saved page: one at a time
    assert.match(await effect(page), /rises from 51 % to 69 %/);
    assert.match(await page.locator(".result .verdict").textContent(), /stays the same/);
    await page.getByRole("button", { name: "All on" }).click();
    assert.deepEqual(await off(page), []);
    // Arrow keys move within a group, Space switches, Escape switches all on.
    await page.locator('[data-key="decoder.cross.0.0"]').focus();
    await page.keyboard.press("ArrowRight");
    assert.match(await readout(page), /Cross-attention, layer 1, head 2\. Without this head the translation stays as/);
    await page.keyboard.press("Space");
    assert.deepEqual(await off(page), ["decoder.cross.0.1"]);
    assert.match(await effect(page), /does nothing here that the other heads do not replace/);
    await page.keyboard.press("Escape");
    assert.deepEqual(await off(page), []);
    assert.match(await page.locator("#panel").textContent(), /A saved page switches off one head at a time/);
    assert.equal(await page.locator('[data-key="decoder.cross.0.0"]').textContent(), "÷8.5");
    assert.deepEqual(problems, []);
    await close();
  });

test("a live page switches off any combination of heads", async () => {
  const doc = breakable();
  doc.live = true;
  const asked = [];
  const answer = (name, parameters) => {
    asked.push(`${name} ${parameters.getAll("head").join()}`);
    return { text: "cats", delta: -3, token_deltas: doc.ablation.outputs?.map(() => -0.5) ?? [] };
  };
  const { page, problems, close } = await open(browser, doc, { view: "break", answer });
  await page.locator('[data-key="decoder.cross.0.0"]').click();
  await page.locator('[data-key="encoder.self.0.0"]').click();
  await page.waitForSelector(".result .effect");
  assert.match(
    await effect(page),
    /^Without these 2 heads the probability of the translation falls from 51 % to 2\.5 %/,
  );
  assert.deepEqual(asked, ["ablate decoder.cross.0.0,encoder.self.0.0"]);
  await page.waitForFunction(() => location.hash.endsWith("off=decoder.cross.1.1,encoder.self.1.1"));
  await page.locator('[data-key="decoder.cross.0.0"]').click();
  assert.deepEqual(await off(page), ["encoder.self.0.0"]);
  assert.deepEqual(problems, []);
  await close();
});

test("a head without its output says so, and a page without needed heads has no button for one", async () => {
  const doc = breakable();
  doc.ablation.texts = { "decoder.cross.0.0": "two cats play" };
  doc.ablation.delta["encoder.self"][0] = doc.ablation.delta["encoder.self"][0].map(() => 0);
  const { page, problems, close } = await open(browser, doc, { view: "break?off=encoder.self.1.1" });
  assert.match(await page.locator(".result").textContent(), /does not have the new output of this head/);
  assert.match(await page.locator("#panel").textContent(), /has the new output of 1 of \d+ heads/);
  assert.equal(await page.getByRole("button", { name: "hurts most" }).count(), 0);
  assert.deepEqual(problems, []);
  await close();
});

test("breaking a classifier shows the old and the new label", async () => {
  const doc = sample();
  doc.model.family = "encoder_only";
  doc.attention = doc.attention.filter((group) => group.name === "encoder.self");
  doc.search = doc.attribution = null;
  doc.hypotheses = [];
  doc.predictions = [{ position: null, labels: ["Ankle boot", "Sandal"], probabilities: [0.74, 0.2] }];
  doc.ablation = {
    output: "the label 'Ankle boot'",
    baseline: Math.log(0.74),
    delta: { "encoder.self": doc.ablation.delta["encoder.self"].map((row) => row.map(() => -1)) },
    texts: {},
    predictions: {
      "encoder.self.0.0": [{ position: null, labels: ["Sandal", "Ankle boot"], probabilities: [0.51, 0.27] }],
    },
  };
  const { page, problems, close } = await open(browser, doc, { view: "break?off=encoder.self.1.1" });
  assert.equal(await page.locator(".result .retyped").textContent(), "Ankle boot 74 % → Sandal 51 %");
  assert.equal(await page.locator(".result .verdict").textContent(), "The label changes.");
  assert.match(await effect(page), /probability of the label 'Ankle boot' falls from 74 % to 27 %/);
  delete doc.ablation.predictions; // a page of an earlier version
  const old = await open(browser, doc, { view: "break?off=encoder.self.1.1" });
  assert.match(await effect(old.page), /falls from 74 % to 27 %/);
  assert.deepEqual([...problems, ...old.problems], []);
  await close();
});

for (const { width, scheme } of SIZES)
  test(`masks and positions at ${width} px, ${scheme}`, async () => {
    const doc = sample();
    const mask = doc.masks.find((item) => item.group === "decoder.self");
    mask.terms = [{ kind: "causal" }, { kind: "window", width: 3 }];
    const { page, problems, close } = await open(browser, doc, { width, scheme, view: "masks" });
    const stage = page.locator(".masks .stage");
    await stage.focus();
    for (const key of ["ArrowDown", "ArrowRight", "ArrowRight"]) await page.keyboard.press(key);
    assert.match(await readout(page), /may not attend to .*: it comes later\./);
    await page.getByLabel("causal").uncheck();
    assert.match(await readout(page), /may attend to/);
    assert.match(await page.locator(".masks .fact").textContent(), /What if: no causal mask \(the model does use it\)/);
    for (let i = 0; i < 3; i++) await page.keyboard.press("ArrowRight");
    await stage.focus();
    for (let i = 0; i < 3; i++) await page.keyboard.press("ArrowRight");
    assert.match(await readout(page), /outside the window/);
    assert.match(
      await page.locator(".masks .card").textContent(),
      /Leak test: No future leaks.*First \d+ predictions unchanged when the rest is replaced/,
    );
    // A cell at the right of another view's table is no cell of the mask.
    await openTab(page, "attribution");
    await page.waitForFunction(() => !document.querySelector(".readout").textContent.startsWith("Reading"));
    await page.locator(".attribution .stage").focus();
    const { source_columns: sources, target_columns: targets } = doc.attribution;
    for (let i = 0; i < sources + targets; i++) await page.keyboard.press("ArrowRight");
    await openTab(page, "masks");
    assert.match(await readout(page), /^Point at a cell/);
    assert.match(await page.locator(".masks .card").textContent(), /Leak test/);
    await openTab(page, "positions");
    assert.ok((await page.locator(".figures canvas").count()) >= 3);
    await page.getByRole("button", { name: "Decoder" }).click();
    assert.deepEqual(problems, []);
    await close();
  });

for (const { width, scheme } of SIZES)
  test(`attribution by pointer, keys and method at ${width} px, ${scheme}`, async () => {
    const doc = sample();
    const { methods, outputs, source_columns: sources, target_columns: targets } = doc.attribution;
    const { page, problems, close } = await open(browser, doc, { width, scheme, view: "attribution" });
    const stage = page.locator(".attribution .stage");
    for (const [name, title] of [
      ["occlusion", "Occlusion"],
      ["integrated_gradients", "Integrated gradients"],
    ]) {
      await page.getByRole("button", { name: title }).click();
      await page.waitForFunction(() => !document.querySelector(".readout").textContent.startsWith("Reading"));
      const bytes = decode(doc.blobs[methods[name]]);
      const values = new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
      assert.equal(values.length, outputs.length * (sources + targets));
      await stage.focus();
      await page.keyboard.press("Escape");
      for (const key of ["ArrowDown", "ArrowDown", "ArrowRight"]) await page.keyboard.press(key);
      const said = /contributes ([−+])([\d.]+) to/.exec(await readout(page));
      const value = values[sources + targets + 1];
      assert.ok(Math.abs(Number(said[2]) * (said[1] === "−" ? -1 : 1) - value) <= 0.0051, `${said[0]} ${value}`);
    }
    assert.deepEqual(problems, []);
    await close();
  });

test("every kind of position encoding has a figure", async () => {
  const doc = sample();
  const blob = (dtype, array, shape, scale = 1) => ({
    dtype,
    curve: "linear",
    scale,
    shape,
    data: deflateSync(Buffer.from(array.buffer)).toString("base64"),
  });
  doc.blobs.vectors = blob(
    "i8",
    Int8Array.from({ length: 64 }, (_, i) => i - 32),
    [8, 8],
    0.1,
  );
  doc.blobs.curves = blob(
    "f32",
    Float32Array.from({ length: 10 }, (_, i) => i),
    [1, 2, 5],
  );
  const kinds = [
    { kind: "sinusoidal", width: 16, base: 10000, interleaved: true },
    { kind: "learned", vectors: "vectors" },
    { kind: "rotary", key_dim: 16, base: 10000, interleaved: false },
    { kind: "alibi", slopes: [0.25, 0.0625] },
    { kind: "relative", offsets: [-2, -1, 0, 1, 2], curves: "curves" },
  ];
  for (const kind of kinds) {
    doc.positions = [{ stack: "decoder", length: 5, max_positions: null, ...kind }];
    const { page, problems, close } = await open(browser, doc, { view: "positions" });
    await page.waitForSelector(".figures canvas");
    assert.deepEqual(problems, [], kind.kind);
    await close();
  }
});

test("sampling opens at the least probable token", async () => {
  const doc = sampledDocument();
  const [step] = doc.sampling.steps;
  doc.sampling.steps = [-0.1, -3, -1].map((logprob, i) => ({ ...step, logprob, token: i, position: i + 1 }));
  const { page, close } = await open(browser, doc, { view: "sampling" });
  const pressed = await page.locator(".chips button").evaluateAll((list) => list.map((item) => item.ariaPressed));
  assert.deepEqual(pressed, ["false", "true", "false"]);
  await close();
});
