// Attribution, ablation, sampling, masks and positions.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { deflateSync } from "node:zlib";
import { SIZES, decode, launch, open, sample, sampledDocument } from "./browser.mjs";

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
    assert.equal(await page.getByRole("heading", { name: "The race that took place" }).count(), 1);
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
    assert.equal(await page.getByRole("heading", { name: "The race that took place" }).count(), 1);
    assert.deepEqual(problems, []);
    await close();
  });

for (const { width, scheme } of SIZES)
  test(`ablation by pointer and keys at ${width} px, ${scheme}`, async () => {
    const doc = sample();
    const [group] = doc.attention;
    doc.live = true;
    doc.ablation.texts = {};
    const asked = [];
    const answer = (name, parameters) => {
      asked.push(`${name} ${parameters.get("head")}`);
      return { text: "A new text.", delta: -1 };
    };
    const { page, problems, close } = await open(browser, doc, { width, scheme, view: "ablation", answer });
    const stage = page.locator(`.ablation [data-group="${group.name}"]`);
    const { left, top } = await stage.evaluate((element) => ({ ...element.dataset }));
    await stage.hover({ position: { x: Number(left) + 5, y: Number(top) + 5 } });
    const value = doc.ablation.delta[group.name][0][0];
    assert.ok((await readout(page)).includes(Math.abs(value).toFixed(2)), await readout(page));
    await stage.focus();
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowRight");
    await page.waitForSelector(".card mark");
    assert.equal(await page.locator(".card mark").textContent(), "A new text.");
    assert.ok(asked.includes(`ablate ${group.name}.0.1`), asked.join());
    await page.keyboard.press("Escape");
    assert.equal(await page.locator(".card").isVisible(), false);
    assert.deepEqual(problems, []);
    await close();
  });

test("the ablation of an encoder shows numbers, not a text that it does not generate", async () => {
  const doc = sample();
  doc.model.family = "encoder_only";
  doc.attention = doc.attention.filter((group) => group.name === "encoder.self");
  doc.search = doc.attribution = null;
  doc.hypotheses = [];
  doc.ablation.delta = { "encoder.self": doc.ablation.delta["encoder.self"] };
  doc.ablation.output = "the label";
  const { page, problems, close } = await open(browser, doc, { view: "ablation" });
  await page.locator('.ablation [data-group="encoder.self"]').focus();
  await page.keyboard.press("ArrowRight");
  const card = await page.locator(".card").textContent();
  const value = doc.ablation.delta["encoder.self"][0][0].toFixed(2);
  assert.ok(card.includes(`The log-probability of the label changes by ${value} nats without this head.`), card);
  assert.deepEqual(problems, []);
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
    assert.match(await page.locator(".masks .fact").textContent(), /Not the model's mask/);
    for (let i = 0; i < 3; i++) await page.keyboard.press("ArrowRight");
    await stage.focus();
    for (let i = 0; i < 3; i++) await page.keyboard.press("ArrowRight");
    assert.match(await readout(page), /outside the window/);
    assert.match(await page.locator(".masks .card").textContent(), /Leak test: No future leaks/);
    await page.getByRole("tab", { name: "Positions" }).click();
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
