"""A run that is stopped anywhere, by any means, ends byte-identical to an uninterrupted run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.training.runs import RECURRENT, TASKS
from tests.training.stops import DIVERGED, EARLY

ROOT = Path(__file__).parents[2]
STOPS = {**dict.fromkeys((*TASKS, EARLY), 8), RECURRENT: 3, DIVERGED: 4}  # `tests.training.stops --stops` makes more


@pytest.fixture(scope="module")
def output() -> str:
    """What one process says that trains all kinds of runs: importing torch takes as long as most of them."""
    command = [sys.executable, "-m", "tests.training.stops", *(f"{task}={stops}" for task, stops in STOPS.items())]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)  # noqa: S603
    return result.stdout + result.stderr


@pytest.mark.parametrize("task", STOPS)
def test_stops_leave_no_trace(task: str, output: str) -> None:
    assert f"{task}: {STOPS[task]} of {STOPS[task]} stops as meant; 0 files differ" in output, output
