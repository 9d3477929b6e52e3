// The site of the lectures: every station is visited, its controls are moved, and their numbers compared with Python's.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { AXE, launch } from "./browser.mjs";

const python = process.env.PYTHON ?? "python";
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const folder = mkdtempSync(join(tmpdir(), "lectures-"));
const NUMBERS = [1, 2, 3, 4, 5];
const TOLERANCE = 1e-4;

let browser;
before(async () => {
  const run = spawnSync(python, ["-m", "regard", "lectures", "--save", folder], { encoding: "utf8" });
  assert.equal(run.status, 0, `PYTHON must name a Python that imports regard. ${run.stderr ?? run.error}`);
  browser = await launch();
});
after(async () => {
  await browser.close();
  rmSync(folder, { recursive: true });
});

/** Open a file of the site from the file system; `problems` collects errors and requests that are not files of it. */
async function openFile(name, { width = 1280, scheme = "light" } = {}) {
  const context = await browser.newContext({
    viewport: { width, height: 900 },
    colorScheme: scheme,
    reducedMotion: "reduce",
  });
  const page = await context.newPage();
  const problems = [];
  page.on("pageerror", (error) => problems.push(`error: ${error.message}`));
  page.on("console", (message) => message.type() === "error" && problems.push(`console: ${message.text()}`));
  page.on("request", (request) => {
    const url = request.url();
    const isInside = url.startsWith(pathToFileURL(folder).href) || /^(data|blob|about):/.test(url);
    if (!isInside) problems.push(`request: ${url}`);
  });
  await page.goto(pathToFileURL(join(folder, name)).href);
  return { page, problems, close: () => context.close() };
}

/** Set the inputs of each probe, and return the outputs; in the page, because a lecture has hundreds of them. */
function runProbes(control, probes) {
  return control.evaluate((element, probes) => {
    const change = (input, value) => {
      if (input.matches("button")) for (let i = 0; i < value; i++) input.click();
      else input.value = String(value);
      input.dispatchEvent(new Event(input.matches("select") ? "change" : "input", { bubbles: true }));
    };
    return probes.map(({ inputs, outputs }) => {
      for (const [name, value] of Object.entries(inputs)) change(element.querySelector(`[name="${name}"]`), value);
      return Object.keys(outputs).map((name) => element.querySelector(`[data-output="${name}"]`).dataset.value);
    });
  }, probes);
}

for (const number of NUMBERS)
  test(`lecture ${number}: every station answers, and every control computes what Python computes`, async () => {
    const { page, problems, close } = await openFile(`lecture-${number}.html`);
    const { lecture } = JSON.parse(await page.locator("#document").textContent());
    for (const station of lecture.stations) {
      const section = page.locator(`[id="${station.name}"]`);
      const quiz = section.locator(".quiz").first();
      const judged = await quiz.evaluate((element) =>
        [...element.querySelectorAll("button")].map((button) => {
          button.click();
          return element.querySelector(".consequence").dataset.right;
        }),
      );
      assert.deepEqual(
        judged,
        station.predict.options.map((option) => String(option.is_right)),
      );
      const blocks = station.blocks.filter((block) => block.kind === "control");
      for (const [i, block] of blocks.entries()) {
        const control = section.locator(".control-block").nth(i);
        const results = await runProbes(control, block.probes);
        for (const [j, probe] of block.probes.entries())
          for (const [k, [name, expected]] of Object.entries(probe.outputs).entries()) {
            const value = Number(results[j][k]);
            const where = `${station.name}, ${block.control}, probe ${j}: ${name} is ${value}, Python has ${expected}`;
            if (typeof expected === "string") assert.equal(value, Number(expected.replace("inf", "Infinity")), where);
            else assert.ok(Math.abs(value - expected) <= TOLERANCE * Math.max(1, Math.abs(expected)), where);
          }
      }
    }
    const terms = lecture.stations.flatMap((station) => station.terms);
    const list = await page.locator(".terms span").allTextContents();
    assert.deepEqual(
      list,
      [...new Set(terms)].map((term) => `☑ ${term}`),
    );
    await page.reload();
    const progress = page.locator("header progress");
    assert.equal(await progress.getAttribute("value"), String(lecture.stations.length), "answers survive a reload");
    assert.deepEqual(problems, []);
    await close();
  });

for (const [width, scheme] of [
  [1280, "light"],
  [400, "dark"],
])
  test(`axe finds nothing serious, and nothing is wider than the window, ${width} px, ${scheme}`, async () => {
    const { page, close } = await openFile("index.html", { width, scheme });
    for (const name of ["index", ...NUMBERS.map((number) => `lecture-${number}`)]) {
      await page.goto(pathToFileURL(join(folder, `${name}.html`)).href);
      await page.evaluate(() => document.querySelectorAll("iframe").forEach((frame) => frame.remove()));
      await page.evaluate(axe);
      const { violations } = await page.evaluate((options) => window.axe.run(document, options), AXE);
      assert.deepEqual(
        violations.map(({ id, nodes }) => `${name}: ${id}: ${nodes[0].html}`),
        [],
      );
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(overflow <= 0, `${name}: ${overflow} px too wide`);
    }
    await close();
  });

test("a page is used by keyboard alone, and P enlarges it", async () => {
  const { page, problems, close } = await openFile("lecture-1.html");
  const quiz = page.locator(".quiz").first();
  await quiz.locator("button").first().focus();
  await page.keyboard.press("Enter");
  assert.equal(await quiz.locator("button").first().getAttribute("aria-pressed"), "true");
  const slider = page.locator(".control-block input[type=range]").first();
  await slider.focus();
  const before = await slider.inputValue();
  await page.keyboard.press("ArrowLeft");
  assert.notEqual(await slider.inputValue(), before);
  await page.locator("h1").click();
  await page.keyboard.press("p");
  assert.equal(await page.locator("html").getAttribute("class"), "present");
  const third = page.locator("section[id]").nth(2);
  const topOfThird = () => third.evaluate((station) => station.getBoundingClientRect().top);
  await third.evaluate((station) => station.scrollIntoView());
  for (let i = 0; i < 2; i++) {
    await page.keyboard.press("p");
    const top = await topOfThird();
    assert.ok(top >= 0 && top < 200, `the station stays in place, its top is at ${top}`);
  }
  assert.deepEqual(problems, []);
  await close();
});

test("a point is dragged with the pointer, and its sliders follow", async () => {
  const { page, problems, close } = await openFile("lecture-2.html");
  const control = page.locator('[data-control="points"]');
  await control.scrollIntoViewIfNeeded();
  const before = Number(await control.locator('[data-output="out_x_0"]').getAttribute("data-value"));
  const box = await control.locator("circle[style]").first().boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  await page.mouse.down();
  await page.mouse.move(box.x + 60, box.y - 40);
  await page.mouse.up();
  const [x, y] = await Promise.all(["x_0", "y_0"].map((name) => control.locator(`[name=${name}]`).inputValue()));
  assert.ok(Number(x) > 1 && Number(y) > 0, `the first point is at ${x}, ${y}`);
  assert.notEqual(Number(await control.locator('[data-output="out_x_0"]').getAttribute("data-value")), before);
  assert.deepEqual(problems, []);
  await close();
});

test("an embedded page of regard look draws", async () => {
  const { page, problems, close } = await openFile("lecture-1.html");
  const frame = page.locator("iframe").first();
  await frame.scrollIntoViewIfNeeded();
  await frame.contentFrame().locator("#panel > *").first().waitFor();
  assert.deepEqual(problems, []);
  await close();
});
