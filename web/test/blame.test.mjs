// "Which training pairs taught this?" on the server's page and on a live look, with a real run that has planted errors.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { AXE, launch } from "./browser.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const PLANTED = ["all.en:31", "all.en:77", "all.en:150"]; // "moon" became "Brot"
const folder = mkdtempSync(join(tmpdir(), "blame-"));
const problems = [];
let browser, server, page, url, look;

before(async () => {
  const port = await findPort();
  url = `http://127.0.0.1:${port}/`;
  const environment = { ...process.env, PYTHONPATH: `${join(root, "src")}:${root}`, OMP_NUM_THREADS: "1" };
  const program = fileURLToPath(new URL("blame_pages.py", import.meta.url));
  server = spawn(process.env.PYTHON ?? "python", [program, folder, String(port)], { env: environment });
  let log = "";
  for (const output of [server.stdout, server.stderr]) output.on("data", (text) => (log += text));
  browser = await launch();
  while ((await fetch(`${url}ready`).catch(() => null))?.status !== 200) {
    assert.equal(server.exitCode, null, log);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  look = /http:\S+/.exec(log)[0];
  page = await browser.newPage({ viewport: { width: 1000, height: 760 } });
  page.on("pageerror", (error) => problems.push(error.message));
  page.on("console", (message) => message.type() === "error" && problems.push(message.text()));
  await page.addInitScript({ content: axe });
});

after(async () => {
  await browser?.close();
  server?.kill();
  await new Promise((resolve) => (server && server.exitCode === null ? server.once("exit", resolve) : resolve()));
  rmSync(folder, { recursive: true });
});

function findPort() {
  const probe = createServer();
  return new Promise((resolve) =>
    probe.listen(0, "127.0.0.1", () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    }),
  );
}

async function checkPairs(name) {
  await page.waitForSelector(".pairs li");
  const places = await page.locator(".pairs .place").allTextContents();
  assert.ok(
    places.slice(0, 3).some((place) => PLANTED.some((planted) => place.startsWith(planted))),
    String(places),
  );
  assert.deepEqual([...new Set(await page.locator(".pairs mark").allTextContents())], ["Brot"]);
  const { violations } = await page.evaluate((options) => window.axe.run(options), AXE);
  const described = violations.map(({ id, nodes }) => `${id}: ${nodes[0].html}`);
  assert.deepEqual(described, []);
  if (process.env.PICTURES) await page.screenshot({ path: join(process.env.PICTURES, `blame-${name}.png`) });
}

test("the card of a word shows the training pairs that may have taught it", async () => {
  await page.goto(url);
  await page.getByLabel("Text to translate").fill("dog finds moon");
  await page.locator(".word", { hasText: "Brot" }).click();
  await page.getByRole("button", { name: "Which training pairs taught this?" }).click();
  await checkPairs("serve");
  await page.locator(".card > :not([aria-busy])").first().waitFor();
  assert.ok(await page.locator(".pairs").isVisible(), "other words arrive without hiding the pairs");
});

test("a word of a live look shows its pairs, and a word that the corpus lacks is reported", async () => {
  await page.goto(look);
  await page.locator(".words button", { hasText: "Brot" }).click();
  await checkPairs("look");
  await page.route("**/blame?*", (route) => route.fulfill({ json: { candidates: [] } }));
  await page.locator(".words button", { hasText: "Hund" }).click();
  await page.waitForFunction(() => document.querySelector(".blame").textContent === "No training pair has “Hund”.");
});

test("nothing was reported", () => assert.deepEqual(problems, []));
