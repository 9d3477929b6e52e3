// The page of an exported model shows an error of the model, and answers the next request.
import assert from "node:assert/strict";
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { launch } from "./browser.mjs";
import { serve } from "./static_server.mjs";

const pageFolder = join(dirname(fileURLToPath(import.meta.url)), "../../src/regard/exchange/web/static");
const ERROR = "The prompt is longer than the 8 positions that the model has learned.";

/** A worker without a model: it refuses the first request and answers the others. */
const makeWorker = (task) => `
  const description = { task: "${task}", languages: [], language_tags: {}, labels: [], dtype: "float32", parameters: 1e6 };
  self.onmessage = ({ data }) => {
    if (data.kind === "load") return postMessage({ kind: "ready", description, bytes: 1, seconds: 1 });
    if (data.id === 1) return postMessage({ kind: "error", id: 1, message: "${ERROR}" });
    postMessage({ kind: "part", id: data.id, text: "new text" });
    postMessage({ kind: "result", id: data.id, value: "new text", seconds: 1 });
  };`;

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

for (const task of ["causal_lm", "translation"])
  test(`an error of the model does not lock the page: ${task}`, async () => {
    const folder = mkdtempSync(join(tmpdir(), "regard-"));
    cpSync(pageFolder, folder, { recursive: true });
    writeFileSync(join(folder, "worker.js"), makeWorker(task));
    const server = await serve(folder);
    try {
      const page = await (await browser.newContext({ serviceWorkers: "block" })).newPage();
      await page.goto(server.url);
      const request = async (text) => {
        await page.locator("textarea").fill(text);
        if (task === "causal_lm") await page.getByRole("button", { name: "Continue" }).click({ timeout: 5000 });
      };
      await request("first");
      await page.getByText(ERROR).waitFor();
      await request("second");
      await page.locator(".output", { hasText: "new text" }).waitFor();
      assert.equal(await page.getByText(ERROR).count(), 0);
    } finally {
      server.close();
      rmSync(folder, { recursive: true });
    }
  });
