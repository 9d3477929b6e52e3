// Cases that a Python program of this folder computes, to compare the page with.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, "../..");

/** The programs that run.mjs starts in one process, because importing torch takes longer than most of them need. */
export const PROGRAMS = ["break", "compare", "film", "filter", "story", "tokenizer"].map((name) => `${name}_cases`);

/** Run a program of this folder to its end. */
export function runPython(program, args) {
  const PYTHONPATH = [root, join(root, "src"), process.env.PYTHONPATH].join(":");
  const env = { OMP_NUM_THREADS: "1", ...process.env, PYTHONPATH };
  const command = [join(here, `${program}.py`), ...args];
  const run = spawnSync(process.env.PYTHON ?? "python", command, { encoding: "utf8", env });
  assert.equal(run.status, 0, `PYTHON must name a Python that imports regard. ${run.stderr ?? run.error}`);
}

/** What `read` returns of the folder with the files of a program: those of run.mjs, or else new ones. */
export function readCases(program, read) {
  const made = join(process.env.LOOK_CASES_FOLDER ?? "", program);
  if (process.env.LOOK_CASES_FOLDER && existsSync(made)) return read(made);
  const folder = mkdtempSync(join(tmpdir(), "cases-"));
  try {
    runPython(program, [folder]);
    return read(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}
