"""Forecast against actual at the end of a run, as the command prints it."""

import json
from pathlib import Path

import pytest

from regard.base.errors import DamagedError
from regard.config.codec import RUN_FILES
from regard.plan.outcome import find_plan, read_outcome_listener
from tests.commands import run_command
from tests.plan.runs import make_run


def test_a_run_reports_its_plan_against_what_it_needed(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("".join(f"The sum of {n} and {n + 1} is {2 * n + 1}.\n" for n in range(400)), encoding="utf-8")
    run_file, out = tmp_path / "run.toml", tmp_path / "out"
    run = make_run(train__steps=3, data__train=[{"kind": "documents", "path": str(text)}], data__held_out=0.0)
    RUN_FILES.save(run, run_file)
    planned = run_command("plan", str(run_file), "--write")
    assert planned.code == 0, planned.errors
    done = run_command("train", str(run_file), "--out", str(out), "--force")
    assert done.code == 0, done.errors
    (line,) = [line for line in done.output.splitlines() if line.startswith("Forecast and actual over 3 steps")]
    assert "peak memory" in line
    assert "CPU" in line
    assert line in (out / "log.txt").read_text(encoding="utf-8").splitlines()
    checkpoint = next(out.glob("checkpoints/step-*"))
    actual = sum(path.stat().st_size for path in checkpoint.iterdir())
    # The vocabulary of 256 bytes and special tokens replaces the 1,000 tokens of the run file.
    resolved = run_command("plan", str(out), "--no-probe", "--json")
    assert json.loads(resolved.output)[0]["checkpoint_bytes"] == pytest.approx(actual, rel=0.05)


def test_a_damaged_plan_is_refused(tmp_path: Path) -> None:
    run_file = tmp_path / "run.toml"
    assert read_outcome_listener(run_file) is None
    find_plan(run_file).write_text("[1]", encoding="utf-8")
    with pytest.raises(DamagedError, match="not a plan"):
        read_outcome_listener(run_file)
