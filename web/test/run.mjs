// Run all tests, two files at a time, in one browser: starting chromium costs more than most tests.
//
//   npm test                                all tests
//   npm test -- --python                    those that compare a page with Python
//   npm test -- --pages                     all others
//   node --test test/search.test.mjs        one file, with a browser of its own
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
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
const needsPython = (file) => /PYTHON|cases\.mjs/.test(readFileSync(file, "utf8"));
const PARTS = { "--python": needsPython, "--pages": (file) => !needsPython(file), undefined: () => true };
const part = process.argv[2];
if (!(part in PARTS)) throw new Error(`${part} is not an option: there are --python and --pages`);
const files = [...SLOW, ...rest].map((name) => folder + name).filter(PARTS[part]);

process.env.OMP_NUM_THREADS ??= "1"; // threads of the Python programs would wait for each other
process.env.LOOK_CASES_FOLDER = mkdtempSync(join(tmpdir(), "cases-"));
if (part !== "--pages") runPython("make_cases", [process.env.LOOK_CASES_FOLDER, ...PROGRAMS]);
const server = await chromium.launchServer(OPTIONS);
process.env.LOOK_BROWSER = server.wsEndpoint();
const tests = run({ files, concurrency: 2 });
tests.on("test:fail", () => (process.exitCode = 1));
tests.on("end", () => {
  server.close();
  rmSync(process.env.LOOK_CASES_FOLDER, { recursive: true });
});
tests.compose(new Spec()).pipe(process.stdout);
