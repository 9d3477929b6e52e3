// Every number of a comparison equals Python's, on random models; LOOK_CASES=200 for many. Then the view itself.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { inflateSync } from "node:zlib";
import { build } from "esbuild";
import { AXE, HOSTILE, drawn, launch, open, sample } from "./browser.mjs";
import { readCases } from "./cases.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

async function load() {
  const contents = ["compare", "matrix"].map((name) => `export * from "../${name}.ts";`).join("");
  const options = { bundle: true, format: "esm", write: false, platform: "neutral" };
  const result = await build({ stdin: { contents, resolveDir: here }, ...options });
  const code = Buffer.from(result.outputFiles[0].contents).toString("base64");
  return import(`data:text/javascript;base64,${code}`);
}

test("the numbers of a comparison equal Python's within 1e-4", async (context) => {
  const { compareDocuments, compareNext, describeComparison, groupTokens, makeMatrix, makeUnits, ...page } =
    await load();
  const cases = readCases("compare_cases", (folder) => JSON.parse(readFileSync(join(folder, "cases.json"), "utf8")));
  let [count, worst, worstMap] = [0, 0, 0];
  const check = (actual, expected) => {
    count++;
    worst = Math.max(worst, Math.abs(actual - expected));
  };
  for (const { document: a, sides, isSameModel } of cases) {
    const b = a.against;
    const comparison = compareDocuments(a, b);
    assert.equal(comparison.isSameModel, isSameModel);
    assert.equal(comparison.isSameInput, a.text === b.text);
    assert.ok(describeComparison(comparison).every((fact) => fact.endsWith(".") && !/undefined|NaN/.test(fact)));
    ["a", "b"].forEach((key, side) => {
      check(comparison.sure[side].value, sides[side].sure);
      const words = comparison.output.flatMap((pair) => (pair[key] ? [pair[key].probability] : []));
      assert.equal(words.length, sides[side].words.length);
      words.forEach((probability, i) => check(probability, sides[side].words[i]));
    });
    const [left, right] = sides.map(({ tokens }) => tokens);
    const at = left.findIndex((key, i) => i < right.length && key !== right[i]);
    assert.equal(comparison.split === null, at < 0);
    if (comparison.split) {
      const { split } = comparison;
      check(split.a.probability, sides[0].next[at][left[at]]);
      check(split.b.probability, sides[1].next[at][right[at]]);
      for (const [own, side, other] of [
        [split.a, sides[0], right[at]],
        [split.b, sides[1], left[at]],
      ]) {
        assert.equal(own.ofOther !== null, side.listed[at].includes(other));
        if (own.ofOther !== null) check(own.ofOther, side.next[at][other]);
      }
    }
    for (const [i, j] of page.pairTokens(a, b))
      for (const row of compareNext(a, b, [i, j])) {
        assert.equal(row.a !== null, sides[0].listed[i].includes(row.key));
        assert.equal(row.b !== null, sides[1].listed[j].includes(row.key));
        if (row.a !== null) check(row.a, sides[0].next[i][row.key]);
        if (row.b !== null) check(row.b, sides[1].next[j][row.key]);
      }
    for (const [name, head] of Object.entries(sides[0].heads))
      for (const areWords of [false, true]) checkMaps(name, head, sides[1].heads[name], a, b, areWords);
  }

  /** A word's column is the sum of its tokens, its row their mean. */
  function merge(weights, row, column) {
    const sums = row.members.map((i) => column.members.reduce((sum, j) => sum + weights[i][j], 0));
    return sums.reduce((total, sum) => total + sum, 0) / sums.length;
  }

  function checkMaps(name, head, other, a, b, areWords) {
    const exact = [head.weights, other.weights];
    const matrices = [a, b].map((doc, i) => {
      const group = doc.attention.find((item) => item.name === name);
      const { rows, columns } = groupTokens(doc, group);
      const { layer, head: place } = [head, other][i];
      const blob = doc.blobs[group.maps[`${layer}.${place}`]];
      const codes = new Uint8Array(inflateSync(Buffer.from(blob.data, "base64")));
      const units = [rows, columns].map((tokens) => makeUnits(tokens, areWords, true));
      return makeMatrix(codes, blob.shape[1], ...units);
    });
    const expected = ({ rowPairs, columnPairs }, visit) =>
      rowPairs.forEach((rows, r) =>
        columnPairs.forEach((columns, c) => {
          const weight = (side) =>
            merge(exact[side], matrices[side].rows[rows[side]], matrices[side].columns[columns[side]]);
          visit(r * columnPairs.length + c, weight(0), weight(1));
        }),
      );
    if (!areWords) {
      const coarse = page.subtractMaps(...matrices); // 8 bits per weight, as in a saved page
      const allowed = (weight) => Math.sqrt(weight) / 255 + 1 / 510 ** 2 + 1e-6;
      expected(coarse, (at, x, y) => {
        worstMap = Math.max(worstMap, Math.abs(coarse.values[at] - (y - x)));
        assert.ok(Math.abs(coarse.values[at] - (y - x)) <= allowed(x) + allowed(y));
      });
    }
    matrices.forEach((matrix, i) =>
      matrix.rows.forEach(({ members }, row) =>
        matrix.refine(
          row,
          members.map((member) => exact[i][member]),
        ),
      ),
    );
    const fine = page.subtractMaps(...matrices);
    expected(fine, (at, x, y) => check(fine.values[at], y - x));
    for (const [side, units] of ["rows", "columns"].entries()) {
      const pairs = [fine.rowPairs, fine.columnPairs][side];
      const labels = (map) => map[units].map((unit) => unit.label);
      assert.deepEqual(pairs, page.pairUp(labels(matrices[0]), labels(matrices[1])));
      assert.ok(pairs.every(([i, j], at) => at === 0 || (i > pairs[at - 1][0] && j > pairs[at - 1][1])));
    }
  }
  context.diagnostic(
    `${cases.length} comparisons, ${count} numbers, largest difference ${worst.toExponential(1)}; ` +
      `8-bit maps ${worstMap.toExponential(1)}`,
  );
  assert.ok(worst <= 1e-4, `largest difference ${worst}`);
});

test("pairs are equal items, and items between them if their numbers agree", async () => {
  const { pairUp } = await load();
  const pairs = (a, b) => pairUp([...a], [...b]).join(" ");
  assert.equal(pairs("abc", "abc"), "0,0 1,1 2,2");
  assert.equal(pairs("axc", "ayc"), "0,0 1,1 2,2"); // replaced
  assert.equal(pairs("abcd", "bcde"), "1,0 2,1 3,2"); // shifted
  assert.equal(pairs("axyc", "azc"), "0,0 3,2"); // two instead of one: no pair
  assert.equal(pairs("", "ab"), "");
});

/** The sample compared with itself, with another last word, less certain, and with another text. */
function comparedDocument({ isSameModel = true } = {}) {
  const doc = sample();
  const other = sample();
  other.text = other.text.replace(/\w+/, "Three");
  const target = other.sequences.target.filter((token) => token.logprob !== undefined);
  target.forEach((token) => (token.logprob -= 0.5));
  target[1].text = " Katzen";
  if (!isSameModel) other.model = { ...other.model, sha256: "0", name: "other-model" };
  const next = (tokens) => ({
    first: tokens.findIndex((token) => token.logprob !== undefined),
    tokens: tokens.filter((token) => token.logprob !== undefined).map(() => [5, 6]),
    probabilities: tokens.filter((token) => token.logprob !== undefined).map(() => [0.75, 0.125]),
  });
  for (const item of [doc, other]) {
    item.next = next(item.sequences.target);
    item.vocabulary[5] ??= { text: " fünf", role: "text" };
    item.vocabulary[6] ??= { text: " sechs", role: "text" };
  }
  return { ...doc, against: other };
}

test("the view marks what differs, and follows heads, cells, keys and the address", async () => {
  const { page, problems, close } = await open(browser, comparedDocument(), { view: "compare" });
  await drawn(page);
  assert.equal(await page.getByRole("tab", { selected: true }).textContent(), "Compare");
  const facts = await page.locator(".facts li").allTextContents();
  assert.match(facts[0], /^One model, two inputs: 1 word differs\.$/);
  assert.match(facts.join(" "), /A is surer: its output is about \d+ times as likely \(both < 0.01 %\)/);
  assert.deepEqual(await page.locator(".compare .card").nth(1).locator(".small mark").allTextContents(), ["Three"]);
  assert.match(await page.locator(".compare .card").nth(1).locator(".words mark").first().textContent(), /Katzen/);
  assert.equal(await page.locator(".compare .stage").count(), 3);
  const stage = page.locator(".compare .stage").nth(2);
  await stage.focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowRight");
  assert.match(await page.locator(".readout").textContent(), / in A, .* in B \(\+0\)\.$/);
  await page.getByRole("combobox", { name: "Head" }).selectOption("layer 1, head 2");
  await drawn(page);
  await page.waitForFunction(() => location.hash.includes("head=2"));
  await page.locator(".chips button").nth(2).click();
  await page.waitForFunction(() => location.hash.includes("position=3"));
  assert.match(await page.locator("table.next").textContent(), /75 %/);
  assert.match(await page.locator(".maps + .legend + p").textContent(), /Every cell of A is compared/);
  assert.deepEqual(problems, []);
  await close();
});

test("two models have a choice of heads each, and the address keeps it", async () => {
  const view = "compare?against=2.1";
  const { page, problems, close } = await open(browser, comparedDocument({ isSameModel: false }), { view });
  await drawn(page);
  assert.equal(await page.getByRole("combobox", { name: "Head of B" }).inputValue(), "1.0");
  assert.match((await page.locator(".facts li").allTextContents())[0], /^Two models, two inputs/);
  assert.deepEqual(problems, []);
  await close();
});

for (const [width, scheme] of [
  [1280, "light"],
  [400, "dark"],
])
  test(`texts of a stranger do nothing, and axe finds nothing serious at ${width} px, ${scheme}`, async () => {
    const doc = comparedDocument();
    doc.text = HOSTILE.join(" ");
    doc.against.text = [...HOSTILE].reverse().join(" ");
    doc.against.model.name = HOSTILE[1];
    const tokens = [doc, doc.against].flatMap((item) => Object.values(item.sequences).flat());
    tokens.forEach((token, i) => (token.text = HOSTILE[i % HOSTILE.length]));
    const { page, problems, close } = await open(browser, doc, { view: "compare", width, scheme, bypassCSP: true });
    await drawn(page);
    assert.equal(await page.locator("#panel script, #panel img").count(), 0);
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(overflow <= 0, `${overflow} px wider than the window`);
    await page.addScriptTag({ content: axe });
    const { violations } = await page.evaluate((options) => window.axe.run(document, options), AXE);
    const serious = violations.filter(({ impact }) => ["serious", "critical"].includes(impact));
    assert.deepEqual(
      serious.map(({ id, nodes }) => [id, nodes[0].html]),
      [],
    );
    assert.deepEqual(problems, []);
    await close();
  });
