"""Run all benchmarks one after the other on one machine, and save their figures with date and commit.

    python -m bench.all bench/results.jsonl --quick               # about fifteen minutes
    python -m bench.all bench/results.jsonl --only core decode    # the long forms; all of them take hours
    python -m bench.all bench/results.jsonl --write               # only write the table of docs/why/benchmarks.md

Each line of the file has the figures of one benchmark and replaces its earlier line. A benchmark whose peer or corpus
is missing says so and is skipped; `python -m bench.peers NAME` installs peers, `python scripts/fetch_corpora.py`
downloads corpora. Before each benchmark, the load of other processes is measured for two seconds and saved with the
figures.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench.peers import ROOT

BENCHMARKS = (
    *("core", "train", "precision", "decode", "serve", "tokenize", "data", "doctor", "doctor_in_training"),
    *("look", "ranks", "checkpoints", "plan", "tune_memory", "waiting", "minutes", "startup"),
)
PAGE = ROOT / "docs" / "why" / "benchmarks.md"
START, END = "<!-- table: python -m bench.all bench/results.jsonl --write -->", "<!-- end of table -->"
SAMPLE_SECONDS = 2.0
MAX_SECONDS = 3600


def main() -> None:
    """Run the benchmarks, or write the table of those that were run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="file for the figures: one line of JSON per benchmark")
    parser.add_argument("--quick", action="store_true", help="the short form of each: under a minute")
    parser.add_argument("--only", choices=BENCHMARKS, nargs="+", default=BENCHMARKS, help="run only these")
    parser.add_argument("--write", action="store_true", help="run nothing, write the table of docs/why/benchmarks.md")
    options = parser.parse_args()
    if options.write:
        write_table(read_lines(options.file))
        return
    failed = []
    for name in options.only:
        line = run(name, is_quick=options.quick)
        if line is None:
            failed.append(name)
            continue
        lines = read_lines(options.file) | {name: line}
        options.file.write_text("".join(json.dumps(lines[key]) + "\n" for key in sorted(lines)), encoding="utf-8")
    if failed:
        sys.exit(f"without figures: {', '.join(failed)}")


def run(name: str, *, is_quick: bool) -> dict[str, Any] | None:
    """Run a benchmark and show its output; return its figures, or None if it printed none."""
    load = measure_load()
    command = [sys.executable, "-m", f"bench.{name}", *(["--quick"] if is_quick else [])]
    print(f"\n{' '.join(command[1:])}   (other load: {load:.2f} cores)", flush=True)
    began, output = time.monotonic(), ""
    try:
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False, timeout=MAX_SECONDS)  # noqa: S603 - our own
        output = done.stdout
    except subprocess.TimeoutExpired:
        print(f"{name}: stopped after {MAX_SECONDS} s", file=sys.stderr, flush=True)
    print(output, flush=True)
    figures = read_figures(output)
    if figures is None:
        return None
    show_commit = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(show_commit, cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S603 - git
    return {
        "benchmark": name,
        "is_quick": is_quick,
        "figures": figures,
        "date": date.today().isoformat(),
        "commit": commit.stdout.strip(),
        "seconds": round(time.monotonic() - began),
        "other_load": round(load, 2),
        **describe_machine(),
    }


def read_figures(output: str) -> dict[str, Any] | None:
    """Return the object in the last line of a benchmark's output."""
    lines = output.strip().splitlines()
    try:
        figures = json.loads(lines[-1]) if lines else None
    except ValueError:
        return None
    return figures if isinstance(figures, dict) and figures else None


def measure_load() -> float:
    """Return the mean number of busy cores during two seconds; NaN if the system does not report it."""
    try:
        samples = []
        for pause in (SAMPLE_SECONDS, 0):
            fields = [int(field) for field in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
            samples.append((sum(fields), fields[3] + fields[4]))  # all, idle and waiting for a disk
            time.sleep(pause)
    except (OSError, IndexError):
        return float("nan")
    total, idle = (after - before for before, after in zip(*samples, strict=True))
    return (os.cpu_count() or 1) * (1 - idle / max(total, 1))


def describe_machine() -> dict[str, Any]:
    """Return the properties of the machine that affect the figures."""
    information = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    names = [line.partition(":")[2].strip() for line in information.splitlines() if line.startswith("model name")]
    return {
        "cpu": names[0] if names else platform.processor(),
        "has_amx": "amx_bf16" in information,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "torch": version("torch"),
    }


def read_lines(path: Path) -> dict[str, dict[str, Any]]:
    """Return the lines of the file by benchmark."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return {line["benchmark"]: line for line in map(json.loads, lines)}


def make_table(lines: dict[str, dict[str, Any]]) -> str:
    """Return the figures as a Markdown table."""
    rows = ["| command | date, commit | other load | figures |", "|---|---|---|---|"]
    for name in BENCHMARKS:
        if (line := lines.get(name)) is not None:
            command = f"`python -m bench.{name}{' --quick' if line['is_quick'] else ''}`"
            numbers = {key: value for key, value in line["figures"].items() if type(value) in (int, float)}
            figures = ", ".join(f"{key} {value:.4g}" for key, value in numbers.items()) or "in the file"
            rows.append(f"| {command} | {line['date']}, `{line['commit']}` | {line['other_load']} | {figures} |")
    return "\n".join(rows)


def write_table(lines: dict[str, dict[str, Any]]) -> None:
    """Replace the table between the marks of the page."""
    head, _, rest = PAGE.read_text(encoding="utf-8").partition(START)
    PAGE.write_text(f"{head}{START}\n\n{make_table(lines)}\n\n{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
