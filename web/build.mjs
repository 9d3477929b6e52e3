// Bundle the pages: of `regard look` (app.js), of `regard export --to web` (run/) and of `regard serve` (serve/).
// With --check: compare the committed files with a rebuild.
import { build } from "esbuild";
import { readFile, writeFile, mkdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const package_ = join(here, "../src/regard");
const shared = { absWorkingDir: here, bundle: true, minify: true, target: "es2022", charset: "utf8", write: false };

async function bundle(entry, format, limit, note) {
  const banner = { [entry.endsWith(".css") ? "css" : "js"]: `/* ${note} */` };
  const loader = { ".css": entry.endsWith(".css") ? "css" : "text" };
  const options = { entryPoints: [entry], format, banner, legalComments: "none", loader };
  const { contents } = (await build({ ...shared, ...options })).outputFiles[0];
  if (contents.length > limit) fail(`${entry}: the bundle has ${contents.length} bytes, more than ${limit}.`);
  return contents;
}

const look = await bundle("app.ts", "iife", 220 * 1024, "Regard look. Sources: web/.");
const served = "Regard, page of the server. Sources: web/serve/.";
const serve = await bundle("serve/page.ts", "iife", 24 * 1024, served);
const inside = await bundle("serve/look.ts", "iife", 4 * 1024, served);
const lectures = await bundle("lectures/page.ts", "iife", 96 * 1024, "Regard, the lectures. Sources: web/lectures/.");
// These bundles stand inside a <script> element.
for (const script of [look, serve, inside, lectures])
  if (/<\/script|<!--/i.test(new TextDecoder().decode(script)))
    fail("The bundle contains </script or <!--: it would end the page's script element.");
const note = "Regard, page of an exported model. Sources: web/run/.";
const outputs = {
  "look/static/app.js": look,
  "lectures/static/lectures.js": lectures,
  "serve/static/page.js": serve,
  "serve/static/look.js": inside,
  "serve/static/page.css": await bundle("serve/style.css", undefined, 8 * 1024, served),
  "exchange/web/static/page.js": await bundle("run/page.ts", "esm", 24 * 1024, note),
  "exchange/web/static/look.js": await bundle("run/look.ts", "esm", 80 * 1024, note),
  "exchange/web/static/look.css": await bundle("run/look.css", undefined, 8 * 1024, note),
  "exchange/web/static/worker.js": await bundle("run/worker.ts", "esm", 24 * 1024, note),
  "exchange/web/static/service.js": await bundle("run/service.ts", "iife", 4 * 1024, note),
  "exchange/web/static/style.css": await readFile(join(here, "run/style.css")),
  "exchange/web/static/index.html": await readFile(join(here, "run/index.html")),
};

for (const [name, contents] of Object.entries(outputs)) {
  const path = join(package_, name);
  if (process.argv.includes("--check")) {
    const committed = await readFile(path).catch(() => new Uint8Array());
    if (Buffer.compare(Buffer.from(contents), Buffer.from(committed)) !== 0)
      fail(`src/regard/${name} differs from a rebuild. Run scripts/build_web and commit the result.`);
  } else {
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, contents);
  }
  console.log(`${name}: ${contents.length} bytes`);
}

function fail(message) {
  console.error(message);
  process.exit(1);
}
