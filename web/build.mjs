// Bundle the page into src/regard/look/static/app.js. With --check: compare the committed bundle with a rebuild.
import { build } from "esbuild";
import { readFile, writeFile, mkdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const output = join(here, "../src/regard/look/static/app.js");
const limit = 120 * 1024;

const result = await build({
  absWorkingDir: here,
  entryPoints: ["app.ts"],
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  charset: "utf8",
  legalComments: "none",
  loader: { ".css": "text" },
  banner: { js: "/* Regard look. Sources: web/. Contains d3-shape and d3-path, ISC licence, (c) Mike Bostock. */" },
  write: false,
});
const bundle = result.outputFiles[0].contents;
const text = new TextDecoder().decode(bundle);
// The bundle stands inside a <script> element of saved pages.
if (/<\/script|<!--/i.test(text)) fail("The bundle contains </script or <!--: it would end the page's script element.");
if (bundle.length > limit) fail(`The bundle has ${bundle.length} bytes, more than ${limit}.`);

if (process.argv.includes("--check")) {
  const committed = await readFile(output).catch(() => new Uint8Array());
  if (Buffer.compare(Buffer.from(bundle), Buffer.from(committed)) !== 0)
    fail("src/regard/look/static/app.js differs from a rebuild. Run scripts/build_web and commit the result.");
  console.log(`app.js equals a rebuild (${bundle.length} bytes).`);
} else {
  await mkdir(dirname(output), { recursive: true });
  await writeFile(output, bundle);
  console.log(`app.js: ${bundle.length} bytes.`);
}

function fail(message) {
  console.error(message);
  process.exit(1);
}
