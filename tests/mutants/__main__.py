"""Apply each mutant of mutants.toml to a copy of the package and expect its tests to fail.

    python -m tests.mutants            # all, about ten seconds each
    python -m tests.mutants serve/     # those whose file or name contains "serve/"

A mutant is a small defect: one text of one file is replaced by another. Its tests first pass without it.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "regard"
TABLE = Path(__file__).with_name("mutants.toml")
FAILED = 1  # pytest's exit code if tests ran and some failed


@dataclass(frozen=True)
class Mutant:
    """A defect and the tests that must find it."""

    file: str
    """A file of the package."""
    name: str
    """The defect, in a few words."""
    old: str
    """Text that occurs once in the file."""
    new: str
    tests: list[str]
    """What pytest runs: files, or tests in them."""


def read_mutants() -> list[Mutant]:
    """Read the table."""
    return [Mutant(**row) for row in tomllib.loads(TABLE.read_text(encoding="utf-8"))["mutant"]]


def run_tests(tests: list[str], source: Path) -> "subprocess.CompletedProcess[str]":
    """Run tests with the package in this folder."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    environment = {**os.environ, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)  # noqa: S603


def is_caught(mutant: Mutant) -> bool:
    """Return whether the mutant's tests fail with it."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(PACKAGE, Path(folder) / "regard", ignore=shutil.ignore_patterns("__pycache__"))
        path = Path(folder) / "regard" / mutant.file
        path.write_text(path.read_text(encoding="utf-8").replace(mutant.old, mutant.new), encoding="utf-8")
        return run_tests(mutant.tests, Path(folder)).returncode == FAILED


def main() -> int:
    """Print one line for each mutant; return 1 if one survives."""
    words = sys.argv[1:] or [""]
    mutants = [mutant for mutant in read_mutants() if any(word in f"{mutant.file} {mutant.name}" for word in words)]
    done = run_tests(sorted({test for mutant in mutants for test in mutant.tests}), ROOT / "src")
    if done.returncode != 0:
        sys.stdout.write(f"{done.stdout[-3000:]}\nThe tests do not pass without a mutant.\n")
        return 1
    survived = 0
    for mutant in mutants:
        caught = is_caught(mutant)
        survived += not caught
        sys.stdout.write(f"{'caught' if caught else 'SURVIVED':9} {mutant.file}: {mutant.name}\n")
        sys.stdout.flush()
    sys.stdout.write(f"{len(mutants) - survived} of {len(mutants)} mutants caught\n")
    return int(survived > 0)


if __name__ == "__main__":
    sys.exit(main())
