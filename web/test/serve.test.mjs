// The page at `/` of a real `regard serve` with keys and small models.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { AXE, HOSTILE, launch } from "./browser.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const SOURCE = "Two young men are outside near many bushes.";
const TARGET = "Zwei junge weiße Männer sind im Freien in der Nähe vieler Büsche.";
const KEY = "page-test-key";
const authorization = `Basic ${Buffer.from(`page:${KEY}`).toString("base64")}`;
const DOT = Buffer.from(
  "424d3a0000000000000036000000280000000100000001000000010018000000000004000000130b0000130b000000000000000000002040c000",
  "hex",
); // one orange pixel as a BMP file
const folder = mkdtempSync(join(tmpdir(), "serve-"));
let browser, server, url, context, page;
const problems = [];

before(async () => {
  const port = await findPort();
  url = `http://127.0.0.1:${port}/`;
  const environment = { ...process.env, PYTHONPATH: `${join(root, "src")}:${root}`, OMP_NUM_THREADS: "1" };
  const program = fileURLToPath(new URL("serve_models.py", import.meta.url));
  server = spawn(process.env.PYTHON ?? "python", [program, folder, String(port)], { env: environment });
  let log = "";
  for (const output of [server.stdout, server.stderr]) output.on("data", (text) => (log += text));
  browser = await launch();
  while ((await ask("ready").catch(() => null))?.status !== 200) {
    assert.equal(server.exitCode, null, log);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  context = await browser.newContext({ httpCredentials: { username: "", password: KEY } });
  page = await context.newPage();
  page.on("pageerror", (error) => problems.push(`error: ${error.message}`));
  page.on("console", (message) => message.type() === "error" && problems.push(`console: ${message.text()}`));
  page.on("dialog", (dialog) => {
    problems.push(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(url) && !/^(data|blob):/.test(request.url())) problems.push(request.url());
  });
});

after(async () => {
  await context?.close();
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

function makeWav(rate, samples) {
  const file = Buffer.alloc(44 + 2 * samples);
  file.write("RIFF", 0);
  file.writeUInt32LE(36 + 2 * samples, 4);
  file.write("WAVEfmt ", 8);
  file.writeUInt32LE(16, 16);
  file.writeUInt16LE(1, 20);
  file.writeUInt16LE(1, 22);
  file.writeUInt32LE(rate, 24);
  file.writeUInt32LE(2 * rate, 28);
  file.writeUInt16LE(2, 32);
  file.writeUInt16LE(16, 34);
  file.write("data", 36);
  file.writeUInt32LE(2 * samples, 40);
  return file;
}

const ask = (path, body) =>
  fetch(url + path, {
    headers: { authorization, "content-type": "application/json" },
    ...(body && { method: "POST", body: JSON.stringify(body) }),
  });

const input = () => page.getByLabel("Text to translate");
const output = () => page.locator(".output");
const readout = () => page.locator(".readout").textContent();
const word = (text) => page.locator(".output .word", { hasText: text }).first();
const translated = () =>
  page.waitForFunction(() => / in \d+\.\d\d s/.test(document.querySelector(".readout").textContent));

async function openPage({ width = 1280, scheme = "light" } = {}) {
  await page.setViewportSize({ width, height: 800 });
  await page.emulateMedia({ colorScheme: scheme });
  await page.goto(url);
  await page.waitForSelector("textarea");
}

async function translate(text) {
  await input().fill(text);
  await translated();
}

const overflow = () => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);

test("without its key the page is not shown, and with it no other site can frame it", async () => {
  const refused = await fetch(url);
  assert.equal(refused.status, 401);
  assert.match(refused.headers.get("www-authenticate"), /^Basic /);
  const policy = (await ask("")).headers.get("content-security-policy");
  assert.match(policy, /^default-src 'none'; script-src 'sha256-[^ ]+'; style-src 'sha256-[^ ]+'; connect-src 'self';/);
  assert.match(policy, /frame-ancestors 'none'/);
  for (const path of ["", "look"])
    assert.match(await (await ask(path)).text(), /<link rel="icon" href="data:image\/svg\+xml,/);
});

test("a translation streams, and its words carry confidence and alignment", async () => {
  // A busy browser may get all events of this fast model at once: one translation of twenty must be seen to grow.
  let seen = [];
  for (let i = 0; i < 20 && seen.length < 2; i++) {
    await openPage();
    await page.evaluate(() => {
      window.seen = new Set();
      const output = document.querySelector(".output");
      const observer = new MutationObserver(() => window.seen.add(output.textContent));
      observer.observe(output, { childList: true, subtree: true });
    });
    await translate(SOURCE);
    assert.equal(await output().textContent(), TARGET);
    seen = (await page.evaluate(() => [...window.seen])).filter((text) => text !== "…");
    assert.ok(
      seen.every((text) => TARGET.startsWith(text)),
      seen.join("|"),
    );
  }
  assert.ok(
    seen.some((text) => text && text !== TARGET),
    seen.join("|"),
  );
  const details = { tokens: true, confidence: true, alignment: true };
  const answer = await (await ask("translate", { q: SOURCE, beam_size: 1, ...details })).json();
  const words = TARGET.split(" ");
  assert.deepEqual(await page.locator(".output .word").allTextContents(), words);
  const spelled = answer.tokens[0].join(""); // letters of two bytes are two tokens: the words chosen here have none
  for (const text of ["Zwei", "junge", "Freien", "vieler"]) {
    await word(text).hover();
    const index = words.indexOf(text);
    const sources = answer.alignment
      .filter(([, target]) => target === index)
      .map(([source]) => SOURCE.split(" ")[source]);
    assert.deepEqual(await page.locator(".marks mark").allTextContents(), sources);
    let end = 0;
    const from = spelled.indexOf(text);
    const confidence = answer.tokens[0].reduce((product, token, i) => {
      end += token.length;
      return end > from && end <= from + text.length && token ? product * answer.confidence[0][i] : product;
    }, 1);
    const said = await readout();
    const sure = /, (?:over |under )?([\d.]+) % sure\./.exec(said);
    assert.ok(said.startsWith(`“${text}” from “${sources[0]}”, `) && sure, said);
    assert.ok(Math.abs(sure[1] - 100 * confidence) <= 0.5, `${said} ${confidence}`);
  }
  await word("Männer").hover();
  assert.match(await readout(), /^“Männer” from “[a-z.]+”, .*\d % sure\./i);
  assert.deepEqual(problems, []);
});

test("only a new sentence is translated when a text grows", async () => {
  await openPage();
  await translate(SOURCE);
  const asked = [];
  const listen = (request) => request.url().endsWith("translate") && asked.push(request.postDataJSON().q);
  page.on("request", listen);
  await input().fill(`${SOURCE} A little girl climbs into a wooden playhouse.`);
  await page.waitForFunction(() => document.querySelector(".output").textContent.endsWith("Spielhaus aus Holz."));
  await translated();
  page.off("request", listen);
  assert.deepEqual(asked, Array(2).fill(["A little girl climbs into a wooden playhouse."]));
  const all = (await output().textContent()).split(" ").length;
  const added = all - TARGET.split(" ").length;
  assert.match(await readout(), new RegExp(`^${all} words, ${added} of them new, in \\d+\\.\\d\\d s\\.`));
});

test("a click on a word offers others, by pointer and by keys", async () => {
  await openPage();
  await translate(SOURCE);
  await word("Männer").click();
  await page.waitForSelector(".card > :not([aria-busy]) .alternatives button"); // they come in several rounds
  assert.match(await page.locator(".card h2").textContent(), /^Instead of “Männer” \([\d.]+ %\)$/);
  const [card, box] = [await page.locator(".card").boundingBox(), await word("Männer").boundingBox()];
  assert.ok(card.y > box.y && card.y - box.y - box.height < 20, "the card opens below its word");
  assert.ok(card.x <= box.x + box.width && card.x + card.width >= box.x);
  const first = page.locator(".alternatives button").first();
  const name = await first.locator("strong").textContent();
  assert.notEqual(name, "Männer");
  const rest = (await first.locator(".line").textContent()).split(name).slice(1).join(name);
  // The percentages are the probabilities of the words, in order.
  const shown = await page.locator(".alternatives .percent").allTextContents();
  const values = shown.map((text) => Number(/^(?:under )?([\d.]+) %$/.exec(text)[1]));
  assert.deepEqual(
    values,
    values.toSorted((a, b) => b - a),
  );
  const prefix = "Zwei junge weiße ";
  const { tokens, confidence } = await (
    await ask("translate", { q: SOURCE, prefix: prefix + name + rest, beam_size: 1, tokens: true, confidence: true })
  ).json();
  let bytes = 0; // the last token that ends before the word, and the last one of the word
  const length = (text) => text.replaceAll("\ufffd", "x").length;
  const ends = tokens[0].map((token) => (bytes += length(token)));
  const [from, to] = [length(prefix.replace("ß", "xx")) - 1, length(prefix.replace("ß", "xx") + name)];
  const probability = confidence[0].reduce((all, value, i) => (ends[i] > from && ends[i] <= to ? all * value : all), 1);
  assert.ok(Math.abs(values[0] - 100 * probability) <= 0.5, `${shown} ${probability}`);
  await first.click();
  const expected = `Zwei junge weiße ${name}${rest}`;
  await page.waitForFunction((text) => document.querySelector(".output").textContent === text, expected);
  await page.locator('.output .word[tabindex="0"]').focus();
  await page.keyboard.press("ArrowRight");
  const focused = await page.evaluate(() => document.activeElement.textContent);
  await page.keyboard.press("Enter");
  await page.waitForFunction((text) => document.querySelector(".card").textContent.includes(text), focused.slice(0, 3));
  await page.keyboard.press("Escape");
  assert.equal(await page.locator(".card").isVisible(), false);
  assert.equal(await page.evaluate(() => document.activeElement.textContent), focused);
  await page.keyboard.press("Enter");
  await page.locator("h1").click();
  assert.equal(await page.locator(".card").isVisible(), false);
  assert.deepEqual(problems, []);
});

test("“See inside” shows how the model translated the sentence", async () => {
  await openPage();
  const second = "A little girl climbs into a wooden playhouse.";
  await translate(`${SOURCE} ${second}`);
  await page.locator(".output .word", { hasText: "Spielhaus" }).click();
  await page.keyboard.press("Escape");
  const button = page.getByRole("button", { name: "See inside" });
  let [tab] = await Promise.all([context.waitForEvent("page"), button.click()]);
  tab.on("pageerror", (error) => problems.push(`error: ${error.message}`));
  tab.on("console", (message) => message.type() === "error" && problems.push(`console: ${message.text()}`));
  await tab.waitForSelector("#panel > *");
  assert.equal(tab.url().split("#")[0], `${url}look`); // the text is not in the address
  assert.ok((await tab.title()).startsWith(second));
  const header = await tab.locator("header").textContent();
  assert.ok(header.includes(second) && header.includes("Spielhaus"), header);
  await tab.close();
  tab = await context.newPage();
  await tab.goto(`${url}look`);
  await tab.waitForFunction(() => document.querySelector("#status.error")?.textContent.includes("See inside"));
  await tab.close();
  assert.deepEqual(problems, []);
});

test("a correction is sent, stored and shown", async () => {
  await openPage();
  await translate(`${SOURCE} A little girl climbs into a wooden playhouse.`);
  await word("Zwei").click();
  await page.keyboard.press("Escape");
  const button = page.getByRole("button", { name: "Correct" });
  await button.click();
  const box = page.getByLabel(`A better translation of “${SOURCE}”`);
  assert.equal(await box.inputValue(), TARGET);
  await box.press("Escape");
  assert.equal(await box.isVisible(), false);
  await button.click();
  await box.fill(" ");
  await page.getByRole("button", { name: "Send" }).click();
  await page.locator(".correction .error").waitFor();
  problems.length = 0; // the browser itself reports the answer 422
  const better = "Zwei junge Männer <b>'); --";
  await box.fill(better);
  await page.getByRole("button", { name: "Send" }).click();
  await page.waitForFunction(() => /was stored/.test(document.querySelector(".readout").textContent));
  assert.ok((await output().textContent()).startsWith(`${better} Ein kleines`), await output().textContent());
  const python = "import sys; from regard.data.suggestions import *; print(read_suggestions(Path(sys.argv[1]))[-1])";
  const environment = { ...process.env, PYTHONPATH: join(root, "src") };
  const stored = spawnSync(process.env.PYTHON ?? "python", ["-c", python, join(folder, "suggestions.db")], {
    env: environment,
    encoding: "utf8",
  });
  const expected = `text='${SOURCE}', translation="${better}", source='en', target='de'`;
  assert.equal(stored.stdout, `Suggestion(${expected})\n`, stored.stderr);
  assert.deepEqual(problems, []);
});

test("the caret in the source marks the words of the translation", async () => {
  await openPage();
  await translate(SOURCE);
  const { alignment } = await (await ask("translate", { q: SOURCE, beam_size: 1, alignment: true })).json();
  const [[source, target]] = alignment;
  await input().evaluate(
    (element, at) => element.setSelectionRange(at, at),
    SOURCE.indexOf(SOURCE.split(" ")[source]) + 1,
  );
  await page.keyboard.press("Shift");
  assert.ok((await page.locator(".word.linked").allTextContents()).includes(TARGET.split(" ")[target]));
});

test("a file comes back with its structure", async () => {
  await openPage();
  const lines = ["1", "00:00:01,000 --> 00:00:02,500", SOURCE, "", "2", "00:00:03,000 --> 00:00:04,000", SOURCE, ""];
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.setInputFiles("#file", { name: "a film.srt", mimeType: "text/plain", buffer: Buffer.from(lines.join("\n")) }),
  ]);
  assert.equal(download.suggestedFilename(), "a film.translated.srt");
  const text = Buffer.concat(await (await download.createReadStream()).toArray()).toString("utf8");
  const cue = TARGET.replace("im Freien", "im\nFreien"); // subtitles have at most 42 characters in a line
  assert.equal(text, lines.map((line) => (line === SOURCE ? cue : line)).join("\n"));
  await page.setInputFiles("#file", { name: "x.exe", mimeType: "text/plain", buffer: Buffer.from("x") });
  const refusal = page.locator('.file [role="alert"].error');
  await refusal.waitFor();
  assert.match(await refusal.textContent(), /^x\.exe was not translated\. .*\.exe.*\.srt/);
  const color = (locator) => locator.evaluate((element) => getComputedStyle(element).color);
  assert.notEqual(await color(refusal), await color(page.locator("p.key")));
  problems.length = 0; // the browser itself reports the answer 422
});

test("a language model continues a text, and stops", async () => {
  await openPage();
  await page.getByLabel("Model").selectOption("writer");
  await page.getByLabel("Prompt").fill("Two young");
  await page.getByRole("button", { name: "Continue" }).click();
  await page.waitForFunction(() => document.querySelector(".new").textContent.length > 3);
  const stop = page.getByRole("button", { name: "Stop" });
  await stop.evaluate((button) => button.click()); // it may end by itself first: then the button is disabled
  await page.waitForFunction(() => / tokens in /.test(document.querySelector("main > p").textContent));
  assert.ok((await output().textContent()).startsWith("Two young"));
  assert.equal(await stop.isEnabled(), false);
  assert.deepEqual(problems, []);
});

test("a chosen image gets labels or a caption, a chosen sound its transcript, and a wrong file an explanation", async () => {
  await openPage();
  await page.getByLabel("Model").selectOption("shapes");
  await page.waitForSelector("#file");
  const choose = (name, content) => page.setInputFiles("#file", { name, mimeType: "", buffer: content });
  await choose("dot.bmp", DOT);
  await page.waitForSelector(".labels");
  const send = async (path, model) => {
    const form = new FormData();
    form.append("model", model);
    form.append("file", new Blob([DOT]));
    const answer = await fetch(url + path, { method: "POST", body: form, headers: { authorization } });
    return (await answer.json()).data[0];
  };
  const { probabilities } = await send("classify", "shapes");
  const expected = Object.entries(probabilities).sort((a, b) => b[1] - a[1]);
  const cells = await page.locator(".labels tr").allTextContents();
  assert.deepEqual(
    cells,
    expected.map(([label, value]) => `${label}${(100 * value).toFixed(1)} %`),
  );
  assert.equal(await page.locator(".preview img").evaluate((image) => image.naturalWidth), 1);
  assert.equal(await page.locator(".output img").count(), 0);
  await page.getByLabel("Model").selectOption("captions");
  assert.equal(await page.locator("h1").textContent(), "Caption an image");
  await choose("dot.bmp", DOT);
  await page.waitForFunction(() => /\d s$/.test(document.querySelector("main > p").textContent));
  assert.equal(await output().textContent(), (await send("caption", "captions")).text);
  assert.equal(await page.locator(".preview img").count(), 1);
  await page.getByLabel("Model").selectOption("speech");
  await choose("silence.wav", makeWav(8000, 2400));
  await page.waitForFunction(() => /\d s$/.test(document.querySelector("main > p").textContent));
  assert.equal(await page.locator(".preview audio").count(), 1);
  assert.deepEqual(problems, []);
  await choose("fast.wav", makeWav(16000, 2400));
  await page.waitForFunction(() => /ffmpeg/.test(document.querySelector("main > p.error")?.textContent));
  assert.equal(await output().textContent(), "");
  problems.length = 0; // the browser itself reports the answer 422
});

test("hostile text does nothing, and the page fits 400 px", async () => {
  await openPage({ width: 400 });
  await input().fill(`${HOSTILE.join(".\n")}. ${SOURCE}`);
  await page.waitForFunction(() => !/^$|^Translating/.test(document.querySelector(".readout").textContent));
  // A sentence that is too long for the server stays as it is; the others are translated.
  assert.ok((await output().textContent()).includes("x".repeat(5000)), await readout());
  assert.match(await readout(), /token|character/);
  assert.ok((await output().textContent()).endsWith(TARGET));
  problems.length = 0; // the browser itself reports the answer 422
  await page.locator(".output .word").last().click();
  await page.waitForFunction(() => !document.querySelector(".card > div").textContent.endsWith("…"));
  assert.equal(await page.locator("main script, main img").count(), 0);
  assert.ok((await overflow()) <= 0);
  assert.deepEqual(problems, []);
});

test("the page follows its window, and a long text scrolls in its box", async () => {
  await openPage();
  const gap = "\n".repeat(60);
  await translate(SOURCE + gap + SOURCE);
  await input().press("ControlOrMeta+Home");
  await page.waitForFunction(() => document.querySelector(".source").scrollTop === 0);
  await input().press("ControlOrMeta+End");
  await page.waitForFunction(() => document.querySelector(".source").scrollTop > 100); // the caret stays in view
  for (const [width, bottom] of [
    [1280, 800],
    [400, 900], // the boxes stand one above the other
  ]) {
    await page.setViewportSize({ width, height: 800 });
    const controls = await page.getByRole("button", { name: "Copy" }).boundingBox();
    assert.ok(controls.y + controls.height < bottom, `${width}: ${controls.y}`);
    for (const box of [page.locator(".source"), output()])
      assert.ok(await box.evaluate((element) => element.scrollHeight > 2 * element.clientHeight));
  }
  assert.equal(await output().textContent(), TARGET + gap + TARGET);
  await input().fill(SOURCE);
  await page.waitForFunction((text) => document.querySelector(".output").textContent === text, TARGET);
  await page.setViewportSize({ width: 1280, height: 800 });
  const place = async () => [await page.locator(".source").boundingBox(), await output().boundingBox()];
  let [left, right] = await place();
  assert.ok(right.x > left.x + left.width && Math.abs(right.y - left.y) < 40);
  await page.setViewportSize({ width: 400, height: 800 });
  [left, right] = await place();
  assert.ok(right.y > left.y + left.height && (await overflow()) <= 0);
});

for (const { width, scheme } of [
  { width: 1280, scheme: "light" },
  { width: 400, scheme: "dark" },
])
  test(`axe-core finds nothing serious at ${width} px, ${scheme}`, async () => {
    await openPage({ width, scheme });
    await page.evaluate(axe);
    await translate(SOURCE);
    await word("Männer").click();
    await page.waitForSelector(".alternatives button");
    const views = [await page.evaluate((options) => window.axe.run(options), AXE)];
    for (const model of ["writer", "shapes"]) {
      await page.getByLabel("Model").selectOption(model);
      if (model === "shapes") {
        await page.setInputFiles("#file", { name: "dot.bmp", mimeType: "", buffer: DOT });
        await page.waitForSelector(".labels");
      }
      views.push(await page.evaluate((options) => window.axe.run(options), AXE));
    }
    const serious = views.flatMap(({ violations }) =>
      violations.filter((item) => ["serious", "critical"].includes(item.impact)),
    );
    assert.deepEqual(
      serious.map((item) => `${item.id} ${item.nodes[0].html}`),
      [],
    );
  });
