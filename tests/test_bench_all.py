"""`bench.all` keeps the figures of each benchmark once, and the page has those of its file."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from bench import all as bench_all
from bench.peers import ROOT


def test_each_benchmark_has_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []
    real_run = subprocess.run

    def run(command: list[str], **options: Any) -> Any:
        if command[0] == "git":
            return real_run(command, **options)
        commands.append(command[1:])
        figures = {"core": '{"core/peer": %d}' % len(commands), "decode": "no peer is installed"}  # noqa: UP031
        return subprocess.CompletedProcess(command, 0, f"a table\n{figures[command[2].removeprefix('bench.')]}\n")

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(bench_all, "SAMPLE_SECONDS", 0.01)
    file = tmp_path / "results.jsonl"
    for options in (["--quick"], []):
        monkeypatch.setattr(sys, "argv", ["all", str(file), "--only", "core", "decode", *options])
        with pytest.raises(SystemExit, match="without figures: decode"):
            bench_all.main()
    assert commands[0] == ["-m", "bench.core", "--quick"]
    assert commands[2] == ["-m", "bench.core"]
    (line,) = [json.loads(line) for line in file.read_text().splitlines()]
    assert (line["figures"], line["is_quick"]) == ({"core/peer": 3}, False)
    assert "| `python -m bench.core` |" in bench_all.make_table({"core": line})


def test_the_page_has_the_figures_of_the_file() -> None:
    table = bench_all.make_table(bench_all.read_lines(ROOT / "bench" / "results.jsonl"))
    assert table in bench_all.PAGE.read_text(encoding="utf-8"), "python -m bench.all bench/results.jsonl --write"
