// What the test and the benchmark of an exported page share: they type into it and compare what it shows with Python.
import assert from "node:assert/strict";

export const TOLERANCE = 1e-4;

/** Open a page in a tab of its own. `problems` collects errors and, once the model is loaded, requests. */
export async function openExport(browser, url, options = {}) {
  // The service worker fetches all files again, for offline visits.
  const context = await browser.newContext({ serviceWorkers: "block", reducedMotion: "reduce", ...options });
  const page = await context.newPage();
  const problems = [];
  page.on("pageerror", (error) => problems.push(`error: ${error.message}`));
  page.on("console", (message) => message.type() === "error" && problems.push(`console: ${message.text()}`));
  await page.goto(url);
  await page.waitForFunction(() => window.regard?.ready, null, { timeout: 120000 });
  page.on("request", (request) => problems.push(`request: ${request.url()}`));
  return { page, problems, close: () => context.close() };
}

/** Type a sentence and wait until its attention is drawn. */
export async function showSentence(page, text) {
  await page.fill("textarea", text);
  await page.waitForFunction((text) => window.regard.inside?.doc.text === text, text, { timeout: 30000 });
}

/** The largest difference of all weights behind the page, and of those that it prints, from Python's. */
export async function compareCase(page, item) {
  await showSentence(page, item.text);
  const { doc, weights } = await page.evaluate(() => {
    const { doc, row } = window.regard.inside;
    const weights = doc.attention.map(({ name, layers, heads, row_count: rows }) =>
      Array.from({ length: layers }, (_, layer) =>
        Array.from({ length: heads }, (_, head) =>
          Array.from({ length: rows }, (_, index) => row(name, layer, head, index)),
        ),
      ),
    );
    return { doc, weights };
  });
  const where = JSON.stringify(item.text);
  assert.equal(doc.output, item.output, where);
  let worst = 0;
  let count = 0;
  const close = (actual, expected) => {
    if (Array.isArray(expected)) {
      assert.equal(actual.length, expected.length, where);
      return expected.forEach((value, i) => close(actual[i], value));
    }
    if (expected === null) return assert.equal(actual, null, where);
    worst = Math.max(worst, Math.abs(actual - expected));
    count++;
  };
  doc.attention.forEach((group, i) => close(weights[i], item.groups[group.name].weights));
  const numbers = count;
  for (const group of doc.attention) {
    const { default_head: head, statistics } = item.groups[group.name];
    assert.deepEqual(group.default_head, head, `${where} ${group.name}`);
    for (const [name, table] of Object.entries(statistics)) close(group.statistics[name], table);
  }
  assert.deepEqual(doc.reads.heads, item.reads, where);
  close(doc.next.probabilities, item.next.probabilities);
  assert.deepEqual(
    doc.next.tokens.map(([first]) => first),
    item.next.tokens.map(([first]) => first),
  );
  for (const side of ["source", "target"]) {
    const known = ({ logprob, ...token }) => token;
    assert.deepEqual(doc.sequences[side].map(known), item.sequences[side].map(known), where);
  }
  close(
    doc.sequences.target.slice(1).map(({ logprob }) => logprob),
    item.sequences.target.slice(1).map(({ logprob }) => logprob),
  );
  return { worst, numbers, printed: await comparePrinted(page, item) };
}

/** Walk along the diagonal of the opening head by keys and read what the page says of each cell. */
async function comparePrinted(page, item) {
  await page.click("#tab-heads");
  const cells = await page.evaluate(async () => {
    const [readout, stage] = [".detail .readout", ".detail .stage"].map((name) => document.querySelector(name));
    const press = (key) => stage.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
    const found = [];
    for (let i = 0; i < 4; i++) {
      for (const key of i ? ["ArrowDown", "ArrowRight"] : ["Enter"]) press(key);
      // Exact weights have four digits, those of a map two.
      let wait = 0;
      do await new Promise((resolve) => setTimeout(resolve, 10));
      while (++wait < 500 && !/: \d\.\d{4}\./.test(readout.textContent));
      found.push(readout.textContent);
    }
    return { head: document.querySelector(".detail h2").textContent, found };
  });
  const [, layer, head] = /layer (\d+) of \d+, head (\d+) of/.exec(cells.head).map(Number);
  const map = item.groups["decoder.cross"].weights[layer - 1][head - 1];
  let worst = 0;
  cells.found.forEach((text, i) => {
    const [row, column] = [Math.min(i, map.length - 1), Math.min(i, map[0].length - 1)];
    const shown = Number(/: (\d\.\d{4})\. The row/.exec(text)?.[1] ?? NaN);
    assert.ok(Math.abs(shown - map[row][column]) <= TOLERANCE, `${text}, Python: ${map[row][column]}`);
    worst = Math.max(worst, Math.abs(shown - map[row][column]));
  });
  return worst;
}
