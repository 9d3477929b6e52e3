// Words that two texts share: order, scripts without spaces, and agreement with the best possible alignment.
import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const entry = join(dirname(fileURLToPath(import.meta.url)), "../word_diff.ts");
const result = await build({ entryPoints: [entry], format: "esm", write: false });
const code = Buffer.from(result.outputFiles[0].contents).toString("base64");
const { countDifferent, diff, diffWords, splitWords } = await import(`data:text/javascript;base64,${code}`);

test("words, punctuation and scripts without spaces are split, and nothing is lost", () => {
  assert.deepEqual(splitWords("Two dogs, “don't”!"), ["Two", " dogs", ",", " “", "don't", "”", "!"]);
  assert.deepEqual(splitWords("我爱AI狗"), ["我", "爱", "AI", "狗"]);
  assert.deepEqual(splitWords(" \n"), []);
});

test("a replaced word is removed and added, and other words stay", () => {
  const pieces = diffWords("Two dogs play in the snow.", "Two cats play in snow.");
  const show = { same: "", removed: "-", added: "+" };
  assert.equal(
    pieces.map((piece) => show[piece.kind] + piece.text.trim()).join(" "),
    "Two -dogs +cats play in -the snow .",
  );
  assert.equal(countDifferent(pieces), 2);
  assert.equal(countDifferent(diffWords("a, b", "a; b")), 0);
  assert.equal(countDifferent(diffWords("", "a b c")), 3);
});

test("edits rebuild both lists and keep as much as possible", () => {
  let seed = 1;
  const random = (count) => (seed = (seed * 48271) % 2147483647) % count;
  for (let trial = 0; trial < 300; trial++) {
    const list = () => Array.from({ length: random(9) }, () => "abc"[random(3)]);
    const [a, b] = [list(), list()];
    const edits = diff(a, b);
    const places = (side) => edits.flatMap((edit) => (edit[side] === undefined ? [] : [edit[side]]));
    assert.deepEqual(places("a"), [...a.keys()]);
    assert.deepEqual(places("b"), [...b.keys()]);
    const kept = edits.filter((edit) => edit.kind === "same");
    assert.ok(kept.every((edit) => a[edit.a] === b[edit.b]));
    assert.equal(kept.length, longest(a, b));
  }
});

test("two very long texts are compared without a table", () => {
  const words = Array.from({ length: 5000 }, (_, i) => `w${i}`);
  const edits = diff(words, ["x", ...words.slice(1, -1).reverse(), words.at(-1)]);
  assert.equal(edits.filter((edit) => edit.kind === "same").length, 1);
});

/** Length of the longest common subsequence, by trying all. */
function longest(a, b) {
  if (!a.length || !b.length) return 0;
  if (a[0] === b[0]) return 1 + longest(a.slice(1), b.slice(1));
  return Math.max(longest(a.slice(1), b), longest(a, b.slice(1)));
}
