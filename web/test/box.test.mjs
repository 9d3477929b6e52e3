// The box of a live page, with the real local server: other texts, comparisons, errors, strange texts.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { AXE, HOSTILE, launch, open, sample } from "./browser.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const root = fileURLToPath(new URL("../..", import.meta.url));
const problems = [];
let browser, server, url, page;

before(async () => {
  const paths = [root, `${root}src`, process.env.PYTHONPATH].filter(Boolean).join(":");
  const program = fileURLToPath(new URL("look_server.py", import.meta.url));
  server = spawn(process.env.PYTHON ?? "python", [program], { env: { ...process.env, PYTHONPATH: paths } });
  let errors = "";
  server.stderr.on("data", (text) => (errors += text));
  browser = await launch();
  [url] = (await Promise.race([once(server.stdout, "data"), once(server, "exit")])).map((text) => String(text).trim());
  assert.match(url, /^http/, errors);
  page = await (await browser.newContext({ bypassCSP: false, viewport: { width: 1280, height: 900 } })).newPage();
  page.on("pageerror", (error) => problems.push(`error: ${error.message}`));
  page.on("dialog", (dialog) => {
    problems.push(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  page.on("request", (request) => request.url().startsWith(url) || problems.push(`request: ${request.url()}`));
  await page.goto(url);
});

after(async () => {
  await page?.context().close();
  await browser?.close();
  server?.kill();
});

const field = (name = "Text") => page.getByRole("textbox", { name, exact: true });
const models = () => page.getByRole("combobox", { name: "Model" });
const heading = () => page.locator("h1").textContent();

/** Press Enter in a field and wait for the answer of the server. */
async function enter(name = "Text") {
  const answer = page.waitForResponse((response) => response.url().endsWith("/look"));
  await field(name).press("Enter");
  const response = await answer;
  await page.waitForFunction(() => !document.querySelector(".box [aria-disabled]"));
  return response;
}

test("an empty second row gives the other model the same text", async () => {
  assert.equal(await field("Compare with").inputValue(), "");
  await field().fill("Three dogs");
  assert.equal((await enter()).status(), 200);
  assert.match(await page.locator(".facts li").first().textContent(), /^Two models, the same input\.$/);
  assert.equal(await field("Compare with").inputValue(), "");
  assert.match(await page.locator("footer code").textContent(), /--against-model second$/);
});

test("entering a text replaces the document, and the address keeps its view", async () => {
  await page.getByRole("tab", { name: "Predictions" }).click();
  await field().fill("Two dogs");
  await page.getByRole("button", { name: "Without comparison" }).click();
  assert.equal((await enter()).status(), 200);
  assert.equal(await field().inputValue(), "Two dogs");
  assert.equal(await page.title(), "Two dogs → no · Regard");
  assert.equal(new URL(page.url()).hash, "#predictions");
  assert.equal(await page.locator("[role=tab][aria-selected=true]").first().textContent(), "Predictions");
  assert.ok(await field().evaluate((element) => element === document.activeElement));
  assert.ok(!(await page.locator("#app").textContent()).includes("Two young men"));
  await page.reload();
  assert.equal(await field().inputValue(), "Two dogs");
  assert.deepEqual(problems, []);
});

test("another model and another text can be compared", async () => {
  await models().first().selectOption("second");
  await field().fill("One man");
  await enter();
  assert.match(await heading(), /^(one|two|three) /);
  await page.getByRole("button", { name: "Compare with" }).click();
  assert.ok(await field("Compare with").evaluate((element) => element === document.activeElement));
  await field("Compare with").fill("One woman");
  await models().nth(1).selectOption("first");
  await enter("Compare with");
  assert.equal(await field("Compare with").inputValue(), "One woman");
  assert.match(await page.locator("footer code").textContent(), /--against-model first --against 'One woman'/);
  assert.deepEqual(problems, []);
});

test("texts of a stranger are text", async () => {
  for (const text of HOSTILE.filter((text) => text.trim() && text.length < 5000 && !text.includes("\u0000"))) {
    await field().fill(text);
    await field("Compare with").fill(`${text} "&text=x`);
    assert.equal((await enter()).status(), 200, text);
    assert.equal(await field().inputValue(), text);
    assert.equal(await field("Compare with").inputValue(), `${text} "&text=x`);
    assert.equal(await page.locator("#app script, #app img").count(), 0);
  }
  await field().fill("One");
  await field().press("Shift+Enter");
  assert.equal(await field().inputValue(), "One\n");
  assert.deepEqual(problems, []);
});

test("errors are said, the page stays, and the next text works", async () => {
  const before = await heading();
  for (const [text, message] of [
    [" ", "The text is empty."],
    ["x".repeat(5001), "5,001 characters"],
  ]) {
    await field().fill(text);
    await enter();
    assert.ok((await page.getByRole("alert").textContent()).includes(message));
    assert.equal(await heading(), before);
  }
  await field().fill("Two men");
  await enter();
  assert.equal(await page.locator(".problem").textContent(), "");
  assert.deepEqual(problems, []);
});

test("a page that shows an earlier input is told to reload", async () => {
  const answer = await page.evaluate(async () => {
    const response = await fetch("row?group=encoder.self&layer=0&head=0&row=0&session=0");
    return [response.status, await response.json()];
  });
  assert.equal(answer[0], 400);
  assert.match(answer[1].error, /earlier input/);
});

test("the box is accessible and fits a phone", async () => {
  await page.setViewportSize({ width: 400, height: 800 });
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(overflow <= 0, `${overflow} px wider than the window`);
  await page
    .context()
    .newCDPSession(page)
    .then((session) => session.send("Page.setBypassCSP", { enabled: true }));
  await page.reload();
  await page.addScriptTag({ content: axe });
  const { violations } = await page.evaluate((options) => axe.run(document, options), AXE);
  assert.deepEqual(
    violations
      .filter(({ impact }) => ["serious", "critical"].includes(impact))
      .map(({ id, nodes }) => [id, nodes[0].html]),
    [],
  );
});

test("a saved page has no box", async () => {
  const opened = await open(browser, sample());
  assert.equal(await opened.page.locator(".box").count(), 0);
  await opened.close();
});
