// The filters of the page equal those of Python, on 1,000 vectors x 128 combinations.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { readCases } from "./cases.mjs";

const here = dirname(fileURLToPath(import.meta.url));

async function loadFilters() {
  const result = await build({ entryPoints: [join(here, "../filters.ts")], format: "esm", write: false });
  return import("data:text/javascript;base64," + Buffer.from(result.outputFiles[0].contents).toString("base64"));
}

test("filters equal Python's within 1e-6", async (context) => {
  const { applyFilters } = await loadFilters();
  const floats = (path) => {
    const bytes = readFileSync(path);
    return new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
  };
  const { vocabulary, history, combinations, logprobs, expected } = readCases("filter_cases", (folder) => ({
    ...JSON.parse(readFileSync(join(folder, "cases.json"), "utf8")),
    logprobs: floats(join(folder, "logprobs.f32")),
    expected: floats(join(folder, "expected.f32")),
  }));
  let [worst, leftOut, cases] = [0, 0, 0];
  combinations.forEach((settings, c) =>
    history.forEach((tokens, row) => {
      cases++;
      const { stages, margin } = applyFilters(
        logprobs.subarray(row * vocabulary, (row + 1) * vocabulary),
        tokens,
        settings,
      );
      if (margin < 1e-6) return leftOut++; // single precision may decide otherwise
      const actual = stages[stages.length - 1].probabilities;
      const start = (c * history.length + row) * vocabulary;
      for (let i = 0; i < vocabulary; i++) worst = Math.max(worst, Math.abs(actual[i] - expected[start + i]));
    }),
  );
  context.diagnostic(`${cases} cases, largest difference ${worst.toExponential(1)}, ${leftOut} left out`);
  assert.ok(worst <= 1e-6, `largest difference ${worst}`);
  assert.ok(leftOut <= cases / 1000, `${leftOut} of ${cases} left out`);
});

test("temperature 0 takes the best token, and a distribution sums to 1 after every filter", async () => {
  const { applyFilters } = await loadFilters();
  const logprobs = [0.1, 0.5, 0.15, 0.25].map(Math.log);
  const greedy = applyFilters(logprobs, [], { temperature: 0, top_k: 2 }).stages;
  assert.deepEqual([...greedy.at(-1).probabilities], [0, 1, 0, 0]);
  const settings = { repetition_penalty: 2, temperature: 0.5, top_k: 3, top_p: 0.9, min_p: 0.1, typical_p: 0.95 };
  for (const stage of applyFilters(logprobs, [1], settings, [3]).stages)
    assert.ok(
      Math.abs(stage.probabilities.reduce((a, b) => a + b) - 1) < 1e-12 && stage.probabilities[3] === 0,
      stage.name,
    );
});
