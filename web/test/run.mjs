// Run all tests, two files at a time, in one browser: starting chromium costs more than most tests.
//
//   npm test                                all tests
//   node --test test/search.test.mjs        one file, with a browser of its own
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { run } from "node:test";
import { spec as Spec } from "node:test/reporters";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { OPTIONS } from "./browser.mjs";
import { PROGRAMS, runPython } from "./cases.mjs";

const folder = fileURLToPath(new URL(".", import.meta.url));
// The files with the most work come first, so that the two workers end at about the same time.
const SLOW = ["living", "lectures", "serve", "experiments", "safety", "heads"].map((name) => `${name}.test.mjs`);
const rest = readdirSync(folder).filter((name) => name.endsWith(".test.mjs") && !SLOW.includes(name));
const files = [...SLOW, ...rest].map((name) => folder + name);

process.env.OMP_NUM_THREADS ??= "1"; // threads of the Python programs would wait for each other
process.env.LOOK_CASES_FOLDER = mkdtempSync(join(tmpdir(), "cases-"));
runPython("make_cases", [process.env.LOOK_CASES_FOLDER, ...PROGRAMS]);
const server = await chromium.launchServer(OPTIONS);
process.env.LOOK_BROWSER = server.wsEndpoint();
const tests = run({ files, concurrency: 2 });
tests.on("test:fail", () => (process.exitCode = 1));
tests.on("end", () => {
  server.close();
  rmSync(process.env.LOOK_CASES_FOLDER, { recursive: true });
});
tests.compose(new Spec()).pipe(process.stdout);
