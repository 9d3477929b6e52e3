"""A listener that compares a saved plan with the actual run when it ends.

`regard plan run.toml --write` writes `run.plan.json` next to the run file; `regard train run.toml` finds it there.
A plan takes seconds to minutes, so a run never creates one automatically.
"""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from regard.base import limits
from regard.base.errors import DamagedError
from regard.base.files import read_json, write_atomic
from regard.training.events import Event, Finished, Saved, StepFinished

PROCESS_BYTES = 390 * 2**20  # of Python, torch and the loader; measured by `python -m bench.plan`
FIGURES = ("peak_bytes", "checkpoint_bytes")


def find_plan(run_file: Path) -> Path:
    """Return the plan path of a run file.

    >>> find_plan(Path("models/run.toml")).as_posix()
    'models/run.plan.json'
    """
    return run_file.with_suffix(".plan.json")


def write_plan(run_file: Path, forecast: Mapping[str, Any]) -> Path:
    """Write the forecast of a run next to its run file."""
    path = find_plan(run_file)
    write_atomic(path, json.dumps(forecast, indent=1).encode() + b"\n")
    return path


class OutcomeListener:
    """Measures the CPU-seconds, memory and checkpoints of a run, and compares them with its plan."""

    def __init__(self, forecast: Mapping[str, Any]) -> None:
        self._forecast = forecast
        self._mark, self._seconds, self._steps = time.process_time(), 0.0, 0
        self._checkpoint: Path | None = None
        self.summary = ""  # set when the run has finished

    def __call__(self, event: Event) -> None:
        """Handle an event."""
        now = time.process_time()
        if isinstance(event, StepFinished):
            self._seconds += now - self._mark
            self._steps += 1
        elif isinstance(event, Saved):
            self._checkpoint = event.path
        elif isinstance(event, Finished) and self._steps:
            self.summary = self._summarize()
        self._mark = now

    def _summarize(self) -> str:
        forecast, steps = self._forecast, self._steps
        parts, is_here = list[str](), forecast.get("device") == "this machine"
        if is_here and (peak := limits.measure_peak_memory()) is not None:
            parts.append(_compare("peak memory", (forecast["peak_bytes"] + PROCESS_BYTES) / 1e9, peak / 1e9, "GB"))
        if is_here and forecast["seconds"] is not None:
            parts.append(_compare("CPU", forecast["seconds"][0] * steps, self._seconds, "s"))
        if self._checkpoint is not None and self._checkpoint.is_dir():
            size = sum(path.stat().st_size for path in self._checkpoint.rglob("*") if path.is_file())
            parts.append(_compare("checkpoint", forecast["checkpoint_bytes"] / 1e9, size / 1e9, "GB"))
        return f"Forecast and actual over {steps:,} steps: {'; '.join(parts)}."


def read_outcome_listener(run_file: Path | None) -> OutcomeListener | None:
    """Return the listener for the plan next to a run file; None without a plan.

    Raises:
        DamagedError: If the plan was not written by `regard plan --write`.
    """
    if run_file is None or not (path := find_plan(run_file)).is_file():
        return None
    forecast = read_json(path)
    if (
        not isinstance(forecast, dict)
        or not all(isinstance(forecast.get(name), int) for name in FIGURES)
        or "seconds" not in forecast
    ):
        raise DamagedError(
            "The file is not a plan.", location=str(path), hint="Write it with `regard plan --write`, or remove it."
        )
    return OutcomeListener(forecast)


def _compare(name: str, forecast: float, actual: float, unit: str) -> str:
    """Format two figures and their difference.

    >>> _compare("CPU", 90.0, 100.0, "s")
    'CPU 90 s, actual 100 s (-10%)'
    """
    return f"{name} {forecast:.3g} {unit}, actual {actual:.3g} {unit} ({100 * (forecast / actual - 1):+.0f}%)"
