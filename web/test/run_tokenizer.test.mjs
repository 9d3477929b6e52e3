// The tokenizer of the page gives Python's ids and texts, for every kind of tokenizer that Regard learns.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { readCases } from "./cases.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const python = process.env.PYTHON ?? "python";

async function loadModule(path) {
  const options = { bundle: true, format: "esm", write: false, absWorkingDir: join(here, "..") };
  const { outputFiles } = await build({ entryPoints: [path], ...options });
  return import("data:text/javascript;base64," + Buffer.from(outputFiles[0].contents).toString("base64"));
}

/** A prompt begins with bos where the model was trained so, and an empty prompt always does. */
async function checkPrompts(item, text) {
  const { Model } = await loadModule("run/model.ts");
  const { bos, eos, unk, size } = item;
  class Tensor {
    constructor(type, data, dims) {
      Object.assign(this, { data, dims });
    }
  }
  const prompts = [];
  const session = {
    outputNames: ["logits"],
    run: async ({ input_ids: ids }) => {
      prompts.push(Array.from(ids.data, Number));
      const logits = new Float32Array(ids.dims[1] * size).fill(-9);
      for (let row = 0; row < ids.dims[1]; row++) logits[row * size + eos] = 9;
      return { logits: new Tensor("float32", logits, [1, ids.dims[1], size]) };
    },
  };
  const shared = { specials: { bos, eos, unk }, language_tags: {}, suppressed: [], cache: [] };
  for (const starts_with_bos of [true, false]) {
    const model = new Model({ Tensor }, { ...shared, starts_with_bos }, [session], [item.file, item.file]);
    for (const prompt of [text, ""]) await model.generate(prompt, 1, { temperature: 0 }, () => true);
  }
  assert.deepEqual(prompts, [[bos, ...item.ids.at(-1)], [bos], item.ids.at(-1), [bos]]);
}

test("ids and texts equal Python's", async () => {
  const read = (folder) => JSON.parse(readFileSync(join(folder, "cases.json"), "utf8"));
  const { lines, cases } = readCases("tokenizer_cases", read);
  const { Tokenizer } = await loadModule("run/tokenizer.ts");
  assert.ok(cases.length >= 12 && lines.length > 1000);
  for (const item of cases) {
    const tokenizer = new Tokenizer(item.file, item.control, item.unk);
    lines.forEach((line, i) => {
      const where = `${item.kind}: ${JSON.stringify(line.slice(0, 60))}`;
      assert.deepEqual(tokenizer.encode(line), item.ids[i], where);
      assert.equal(tokenizer.decode(item.ids[i]), item.texts[i], where);
      assert.equal(tokenizer.isBlank(line), item.blank[i], where);
    });
    const described = item.tokens.map((tokens) => tokens.map(({ id }) => id));
    described.forEach((ids, i) => assert.deepEqual(tokenizer.describe(ids), item.tokens[i], `${item.kind}: ${ids}`));
    item.odd_ids.forEach((ids, i) => assert.equal(tokenizer.decode(ids), item.odd_texts[i], `${item.kind}: ${ids}`));
  }
  await checkPrompts(cases[0], lines.at(-1));
});

test("sentences are split as in Python", async () => {
  const { splitSentences } = await loadModule("run/sentences.ts");
  const texts = [
    "He said: “Wait!” Then he left.\n\nDr. Who came at 5 p.m. today.",
    "\nA b. C d! e f? G\n\n H. i.  ",
    "1. The first point. z. B. no. Yes... “Quote.” (In brackets.) Next",
    "行こう。」と言った。次の文！終わり",
    "",
    "  \n ",
    "Word . Next. X. Y",
  ];
  const program =
    "import json,sys;from regard.text.sentences import split_sentences as s;" +
    "print(json.dumps([s(t) for t in json.load(sys.stdin)]))";
  const made = spawnSync(python, ["-c", program], { encoding: "utf8", input: JSON.stringify(texts) });
  assert.equal(made.status, 0, made.stderr);
  assert.deepEqual(texts.map(splitSentences), JSON.parse(made.stdout));
});
