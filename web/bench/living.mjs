// Measure the attention of an exported page: node bench/living.mjs PAGE [CASES] [--text TEXT]
//
// PAGE is an export. A sentence is typed, and each key timed until its attention is drawn; CPU time counts all processes of
// the browser. CASES is what test/living_cases.py wrote: all weights of its sentences are compared with Python's.
// A request after the model is loaded fails the run; so do a median of more than 300 ms and other weights.
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { launch } from "../test/browser.mjs";
import { TOLERANCE, compareCase, openExport, showSentence } from "../test/living.mjs";
import { serve } from "../test/static_server.mjs";

const LIMIT = 300; // milliseconds
const FILES = ["page.js", "worker.js", "look.js", "look.css", "encoder.onnx", "decoder.onnx"];
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { text: { type: "string", default: "Where did you buy that old book?" } },
});
const [folder, casesFile] = positionals;
console.log(FILES.map((name) => `${name} ${statSync(join(folder, name)).size.toLocaleString("en")} bytes`).join(", "));
const browser = await launch();
const session = await browser.newBrowserCDPSession();
const problems = [];
try {
  for (const view of ["heads", "story"]) await timeKeys(view);
  if (casesFile) await compareWeights(JSON.parse(readFileSync(casesFile, "utf8")));
} finally {
  await browser.close();
}
for (const problem of problems) console.error(problem);
process.exit(problems.length ? 1 : 0);

async function open() {
  const server = await serve(folder);
  const page = await openExport(browser, server.url);
  server.close(); // nothing could be loaded any more
  return page;
}

async function compareWeights(cases) {
  const { page, problems: found, close } = await open();
  let [worst, printed, numbers] = [0, 0, 0];
  for (const item of cases) {
    const result = await compareCase(page, item);
    worst = Math.max(worst, result.worst);
    printed = Math.max(printed, result.printed);
    numbers += result.numbers;
  }
  console.log(
    `${cases.length} sentences: ${numbers} weights differ from Python's by at most ${worst.toExponential(1)}`,
  );
  console.log(`weights in the page's text, with four digits: by at most ${printed.toExponential(1)}`);
  if (worst > TOLERANCE || printed > TOLERANCE) problems.push(`the weights differ by more than ${TOLERANCE}`);
  problems.push(...found);
  await close();
}

/** Type the text key by key: from a key's event to the frame that shows its attention. */
async function timeKeys(view) {
  const { page, problems: found, close } = await open();
  await showSentence(page, "Hello");
  await page.click(`#tab-${view}`);
  await page.fill("textarea", "");
  await page.waitForFunction(() => window.regard.inside === null);
  const times = [];
  const start = await readCpu();
  for (const key of values.text) {
    const listening = await page.evaluateHandle(waitForDrawing);
    await page.keyboard.press(key);
    const time = await listening.evaluate(({ done }) => done);
    if (key !== " ") times.push(time); // a space alone changes no sentence
  }
  const cpu = (1000 * ((await readCpu()) - start)) / times.length;
  times.sort((a, b) => a - b);
  const at = (share) => times[Math.min(times.length - 1, Math.floor(share * times.length))].toFixed(0);
  const figures = `median ${at(0.5)} ms, 95 % ${at(0.95)} ms, most ${at(1)} ms; CPU time ${cpu.toFixed(0)} ms`;
  console.log(`key to drawn ${view}, ${times.length} keys: ${figures}`);
  if (Number(at(0.5)) > LIMIT) problems.push(`a key takes more than ${LIMIT} ms until ${view} are drawn`);
  problems.push(...found);
  await close();
}

/** In the page: `done` is the time from the next key to the frame in which its sentence is drawn. */
function waitForDrawing() {
  const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
  const input = document.querySelector("textarea");
  const isDrawn = () =>
    window.regard.inside?.doc.text === input.value.trim() &&
    !document.querySelector("#panel .readout")?.textContent.startsWith("Reading");
  const done = new Promise((resolve) => {
    const press = async (event) => {
      do await frame();
      while (!isDrawn());
      await frame(); // it is on the screen
      resolve(performance.now() - event.timeStamp);
    };
    document.addEventListener("keydown", press, { once: true, capture: true });
  });
  return { done };
}

/** CPU seconds of all processes of the browser. */
async function readCpu() {
  const { processInfo } = await session.send("SystemInfo.getProcessInfo");
  return processInfo.reduce((sum, { cpuTime }) => sum + cpuTime, 0);
}
