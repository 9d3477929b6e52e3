"""A run that is stopped anywhere, by any means, ends byte-identical to an uninterrupted run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.training.runs import RECURRENT, TASKS
from tests.training.stops import DIVERGED, EARLY

ROOT = Path(__file__).parents[2]
STOPS = 8  # of each kind of run, in two runs; `python -m tests.training.stops` makes more


@pytest.mark.parametrize(
    ("task", "stops"), [*((task, STOPS) for task in (*TASKS, EARLY)), (RECURRENT, 3), (DIVERGED, 4)]
)
def test_stops_leave_no_trace(task: str, stops: int) -> None:
    command = [sys.executable, "-m", "tests.training.stops", task, "--stops", str(stops)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)  # noqa: S603
    assert result.returncode == 0, result.stdout + result.stderr
    assert f"{task}: {stops} of {stops} stops as meant; 0 files differ" in result.stdout
