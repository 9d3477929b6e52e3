// What leaves the page: a link, and a drawing as a picture with its caption.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { drawn, fullDocument, launch, makePage, open, openTab, sample } from "./browser.mjs";

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

async function load(file) {
  const entry = fileURLToPath(new URL(`../${file}`, import.meta.url));
  const result = await build({ entryPoints: [entry], bundle: true, format: "esm", write: false });
  return import("data:text/javascript;base64," + Buffer.from(result.outputFiles[0].contents).toString("base64"));
}

test("the address to copy says where it works", async () => {
  const { describeAddress } = await load("share.ts");
  const of = (href) => describeAddress(href, "#heads?head=2");
  assert.deepEqual(of("https://example.org/a.html#x"), { text: "https://example.org/a.html#heads?head=2", note: "" });
  assert.match(of("http://127.0.0.1:8000/token/").note, /this computer/);
  assert.match(of("file:///home/me/dogs.html").note, /send the file and #heads\?head=2/);
  assert.equal(of("about:srcdoc").text, "#heads?head=2");
});

test("Copy link copies the address of the view that is shown", async () => {
  const { page, problems, close } = await open(browser, sample(), { view: "heads" });
  await page.evaluate(() =>
    Object.defineProperty(navigator, "clipboard", {
      value: { writeText: async (text) => void (window.copied = text) },
    }),
  );
  const copy = async () => {
    await page.getByRole("button", { name: "Copy link" }).click();
    await page.waitForFunction(() => document.querySelector(".tools [role=status]").textContent === "Copied");
    return page.evaluate(() => window.copied);
  };
  assert.equal(await copy(), "http://page.test/look/#heads");
  await page.locator(".detail .stage").focus();
  for (const key of ["Enter", "ArrowDown", "ArrowRight"]) await page.keyboard.press(key);
  assert.equal(await copy(), "http://page.test/look/#heads?pin=2,2");
  await openTab(page, "search");
  assert.equal(await page.locator(".tools [role=status]").textContent(), "");
  assert.equal(await copy(), "http://page.test/look/#search");
  assert.deepEqual(problems, []);
  await close();
});

test("Copy link in a notebook's frame copies the fragment and says what it is for", async () => {
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.setContent('<iframe sandbox="allow-scripts allow-downloads" width="1000" height="700"></iframe>');
  await page.evaluate((html) => (document.querySelector("iframe").srcdoc = html), makePage(sample()));
  const frame = page.frameLocator("iframe");
  await frame.getByRole("button", { name: "Copy link" }).click();
  await frame.getByText(/Copied\. A frame has no address|Copy it from here/).waitFor();
  await context.close();
});

/** Size of a picture, and how many pixels of its parts differ from the background. */
const inspect = (page, bytes) =>
  page.evaluate(async (data) => {
    const image = new Image();
    image.src = `data:image/png;base64,${data}`;
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [image.width, image.height];
    const context = canvas.getContext("2d");
    context.drawImage(image, 0, 0);
    const pixels = new Uint32Array(context.getImageData(0, 0, image.width, image.height).data.buffer);
    const count = (x, y, width, height) => {
      let sum = 0;
      for (let row = y; row < y + height; row++)
        for (let column = x; column < x + width; column++)
          sum += Number(pixels[row * image.width + column] !== pixels[0]);
      return sum;
    };
    return {
      width: image.width,
      height: image.height,
      margin: count(0, 0, image.width, 40),
      title: count(48, 48, 600, 44),
      credit: count(48, image.height - 76, 300, 48),
      right: count(image.width - 40, 0, 40, image.height),
    };
  }, bytes.toString("base64"));

test("every drawing is saved as a PNG of twice its size, with title and credit", async () => {
  const { page, problems, close } = await open(browser, fullDocument(), { view: "heads" });
  for (const view of ["heads", "search", "alignment", "attribution", "break", "masks", "sampling"]) {
    await openTab(page, view);
    await drawn(page);
    const save = async (name) => {
      const [download] = await Promise.all([
        page.waitForEvent("download"),
        page.getByRole("button", { name: `Save as ${name}` }).click(),
      ]);
      assert.ok(download.suggestedFilename().endsWith(`.${name.toLowerCase()}`));
      return Buffer.concat(await (await download.createReadStream()).toArray());
    };
    const found = await inspect(page, await save("PNG"));
    const svg = (await save("SVG")).toString("utf8");
    const [width, height] = ["width", "height"].map((name) => Number(svg.match(new RegExp(`${name}="([\\d.]+)"`))[1]));
    // 24 px on each side; above the drawing at least a title and two lines, below it the credit.
    assert.ok(Math.abs(found.width - 2 * Math.ceil(Math.max(width, 560) + 48)) <= 2, `${view}: ${found.width}`);
    const above = found.height / 2 - height - 48 - 22;
    assert.ok(above > 26 + 12 && above < 26 * 2 + 21 * 6 + 14, `${view}: ${above} px of text`);
    assert.ok(found.title > 300 && found.credit > 100, `${view}: ${JSON.stringify(found)}`);
    assert.deepEqual([found.margin, found.right], [0, 0], view);
  }
  assert.deepEqual(problems, []);
  await close();
});
