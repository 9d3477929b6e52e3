// Every number that a story states equals the model's, for random models of all kinds. LOOK_CASES=200 takes more of them.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { loadModule } from "./browser.mjs";
import { readCases } from "./cases.mjs";

const COUNTS = ["place", "column", "other", "favorites", "total", "step", "rank", "prediction", "needed", "count"];

test("findings equal the model's numbers within 1e-4", async (context) => {
  const { makeStory } = await loadModule("story.ts");
  const { findFindings } = await loadModule("findings.ts");
  const { showPercent } = await loadModule("views/common.ts");
  const { completeDocument, decodeBlob } = await loadModule("document.ts");
  const read = (folder) => JSON.parse(readFileSync(join(folder, "cases.json"), "utf8"));
  const { cases } = readCases("story_cases", read);
  let [worst, numbers] = [0, 0];
  const kinds = new Set();
  for (const { name, document, found } of cases) {
    const blobs = new Map();
    for (const [key, blob] of Object.entries(document.blobs)) blobs.set(key, await decodeBlob(blob));
    completeDocument(document);
    const findings = findFindings(
      document,
      makeStory(document, (key) => blobs.get(key)),
    );
    assert.deepEqual(
      findings.map((item) => item.kind),
      found.map(([kind]) => kind),
      name,
    );
    assert.ok(findings.length >= 3 && findings.length <= 6, `${name}: ${findings.length}`);
    findings.forEach(({ kind, numbers: stated, text }, i) => {
      kinds.add(kind);
      const expected = found[i][1];
      assert.deepEqual(Object.keys(stated).sort(), Object.keys(expected).sort(), `${name}: ${kind}`);
      for (const [key, value] of Object.entries(expected)) {
        const difference = Math.abs(stated[key] - value);
        numbers++;
        if (!COUNTS.includes(key)) worst = Math.max(worst, difference);
        if (["share", "probability", "second", "otherProbability"].includes(key))
          assert.ok(text.includes(showPercent(stated[key])), `${name}: ${text}`);
        const limit = COUNTS.includes(key) ? 0 : 1e-4;
        assert.ok(difference <= limit, `${name}: ${kind}.${key} is ${stated[key]}, the model's ${value}. ${text}`);
      }
    });
  }
  context.diagnostic(
    `${cases.length} models, ${numbers} numbers of ${kinds.size} kinds, largest difference ${worst.toExponential(1)}`,
  );
});
