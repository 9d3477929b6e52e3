// Every number and text of Break it equals Python's, on random models; LOOK_CASES=200 for many.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { inflateSync } from "node:zlib";
import { build } from "esbuild";
import { readCases } from "./cases.mjs";

const here = dirname(fileURLToPath(import.meta.url));

async function load() {
  const contents = ["effects", "word_diff"].map((name) => `export * from "../${name}.ts";`).join("");
  const options = { bundle: true, format: "esm", write: false, platform: "neutral" };
  const result = await build({ stdin: { contents, resolveDir: here }, ...options });
  const code = Buffer.from(result.outputFiles[0].contents).toString("base64");
  return import(`data:text/javascript;base64,${code}`);
}

const sum = (values) => values.reduce((a, b) => a + b, 0);

test("the numbers and texts of Break it equal Python's within 1e-4", async (context) => {
  const page = await load();
  const cases = readCases("break_cases", (folder) => JSON.parse(readFileSync(join(folder, "cases.json"), "utf8")));
  let [worst, numbers, texts, labels, differing] = [0, 0, 0, 0, 0];
  const check = (actual, expected) => {
    numbers++;
    worst = Math.max(worst, Math.abs(actual - expected));
  };
  // A percentage in a sentence is the probability, up to the rounding of its last digit.
  const checkPercent = (text, expected) => {
    if (text.startsWith("<")) return assert.ok(expected < 1.01e-4, `${text} ${expected}`);
    const value = /([\d.]+) %/.exec(text)[1];
    const digit = 10 ** -(value.split(".")[1]?.length ?? 0);
    assert.ok(Math.abs(Number(value) - 100 * expected) <= 0.5 * digit + 0.01, `${text} ${expected}`);
  };
  for (const { document: doc, facts } of cases) {
    const data = doc.ablation;
    const effects = page.listEffects(data);
    assert.deepEqual(effects.map(({ key }) => key).sort(), Object.keys(facts).sort());
    const change = (key) => sum(facts[key].after) - sum(facts[key].before);
    for (const { key, group, layer, head, delta } of effects) {
      const { before, after, text, labels: expected } = facts[key];
      const shown = page.probabilities(data, delta);
      check(shown.before, Math.exp(sum(before)));
      check(shown.after, Math.exp(sum(after)));
      const sentence = page.effectSentence(data, delta);
      const said = / (falls|rises) from (.*) to (.*)\.$/.exec(sentence);
      if (said) {
        assert.equal(said[1], change(key) < 0 ? "falls" : "rises");
        checkPercent(said[2], Math.exp(sum(before)));
        checkPercent(said[3], Math.exp(sum(after)));
      } else if (!page.hasEffect(delta)) assert.ok(Math.abs(change(key)) < 0.006, sentence);
      else assert.match(sentence, / times (less|more) probable/);
      // Each output by itself, and the words of a generated text.
      const blob = doc.blobs[data.token_deltas[group]];
      const bytes = inflateSync(Buffer.from(blob.data, "base64"));
      const all = new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
      const [, heads, n] = blob.shape;
      const deltas = Array.from(all.subarray((layer * heads + head) * n, (layer * heads + head + 1) * n));
      deltas.forEach((value, i) => check(Math.exp(before[i] + value), Math.exp(after[i])));
      const words = page.wordChanges(doc, deltas);
      assert.deepEqual(words.flatMap((word) => word.outputs).length, doc.model.family === "encoder_only" ? 0 : n);
      for (const word of words) {
        check(word.before, Math.exp(sum(word.outputs.map((i) => before[i]))));
        check(word.after, Math.exp(sum(word.outputs.map((i) => after[i]))));
      }
      const hurt = page.findHurtWord(words);
      const loss = (word) => sum(word.outputs.map((i) => after[i] - before[i]));
      if (hurt) assert.ok(loss(hurt) <= Math.min(...words.map(loss)) + 1e-3);
      else assert.ok(words.every((word) => loss(word) > -0.006));
      if (text === undefined) continue;
      if (text !== null) {
        texts++;
        if (data.texts[key] !== text) differing++;
        const pieces = page.diffWords(doc.output, data.texts[key]);
        const side = (left) =>
          pieces.flatMap(({ kind, text: piece }) => (kind === left ? [] : [piece.trim()])).join("");
        assert.equal(side("removed"), data.texts[key].replace(/\s/g, ""));
        assert.equal(side("added"), doc.output.replace(/\s/g, ""));
      }
      const changes = page.labelChanges(doc, data.predictions?.[key] ?? []);
      const changed = expected.filter(([label], i) => label !== doc.predictions[i].labels[0]).length;
      if (expected.length === 1) assert.equal(changes.length, 1);
      else assert.equal(changes.length, changed);
      expected.forEach(([label, probability], i) => {
        labels++;
        const [now] = [data.predictions[key][i]];
        check(now.probabilities[0], probability);
        if (now.labels[0] !== label) differing++;
        else if (expected.length === 1) {
          assert.ok(changes[0].includes(` → ${page.nameLabel(label)} `), changes[0]);
          checkPercent(changes[0].split(" → ")[1].slice(page.nameLabel(label).length + 1), probability);
        }
      });
    }
    const keys = effects.map(({ key }) => key);
    const [needed, harmful] = [page.findNeeded(data), page.findHarmful(data)];
    const [least, most] = [Math.min(...keys.map(change)), Math.max(...keys.map(change))];
    if (needed) assert.ok(change(needed.key) <= least + 1e-3);
    else assert.ok(least > -0.05);
    if (harmful) assert.ok(change(harmful.key) >= most - 1e-3);
    else assert.ok(most < 0.05);
  }
  context.diagnostic(`${numbers} numbers within ${worst.toExponential(1)}; ${texts} texts and ${labels} labels`);
  assert.ok(worst <= 1e-4, `largest difference ${worst}`);
  // Rounding may decide otherwise between two outputs that are equally probable.
  assert.ok(differing <= (texts + labels) / 200, `${differing} texts or labels differ`);
});

test("effects in words", async () => {
  const { cellText, effectSentence, times } = await load();
  const data = { output: "the translation", baseline: Math.log(0.51), delta: {}, texts: {} };
  assert.equal(
    effectSentence(data, Math.log(0.06 / 0.51)),
    "Without this head the probability of the translation falls from 51 % to 6.0 %.",
  );
  assert.match(effectSentence(data, 0.3, 3), /^Without these 3 heads .* rises from 51 % to 69 %\.$/);
  assert.match(effectSentence(data, 0.001), /stays as probable/);
  assert.equal(
    effectSentence({ ...data, baseline: -40 }, -9.8),
    "Without this head the translation is about 18,000 times less probable.",
  );
  assert.deepEqual([-Math.log(8), 0.2, 0.01, -12].map(cellText), ["÷8.0", "×1.2", "", "÷1e5"]);
  assert.equal(times(Math.log(2)), "2.0 times");
});
