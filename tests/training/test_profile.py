"""`regard train --profile`: the trace has the steps of the window, and nothing is written without it."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from regard.training.events import Message
from regard.training.options import TrainOptions, UsageError
from regard.training.run import fit
from tests.training.runs import compute_fingerprints, make_small_run, write_corpus

SHORT = {"train.steps": 6, "train.average": 1, "validation.every_steps": 6}


def train(folder: Path, profile: range | None) -> list[str]:
    """Train a short run and return its messages."""
    events: list[Any] = []
    run = make_small_run("causal_lm", write_corpus(folder.parent / "corpus", 60), SHORT)
    fit(run, folder, listeners=[events.append], profile=profile)
    return [event.text for event in events if isinstance(event, Message)]


def test_profile_has_the_steps_of_the_window_and_changes_no_file(tmp_path: Path) -> None:
    messages = train(tmp_path / "profiled", range(3, 5))
    path = tmp_path / "profiled" / "profile" / "rank-0.json.gz"
    assert any(text.startswith(f"Wrote a profile of 2 steps to {path}") for text in messages)
    trace = json.loads(gzip.decompress(path.read_bytes()))
    names = [event.get("name", "") for event in trace["traceEvents"]]
    assert sum(name.startswith("Optimizer.step") for name in names) == 2
    train(tmp_path / "plain", None)
    assert not (tmp_path / "plain" / "profile").exists()
    assert compute_fingerprints(tmp_path / "profiled") == compute_fingerprints(tmp_path / "plain")


def test_profile_of_the_last_steps_is_written_at_the_end(tmp_path: Path) -> None:
    messages = train(tmp_path / "run", range(6, 100))
    assert any(text.startswith("Wrote a profile of 1 step to") for text in messages)


def test_profile_that_the_run_does_not_reach_warns(tmp_path: Path) -> None:
    messages = train(tmp_path / "run", range(10, 21))
    assert "No profile was written: the run did not reach steps 10 to 20." in messages
    assert not (tmp_path / "run" / "profile").exists()


@pytest.mark.parametrize("window", ["10", "20:10", "0:5", "a:b", "1:2:3", "-1:5"])
def test_profile_with_wrong_steps_is_refused(window: str) -> None:
    with pytest.raises(UsageError, match=r"profile='FIRST:LAST'|profile must be two steps"):
        _ = TrainOptions(profile=window).profiled_steps


def test_profile_includes_the_last_step() -> None:
    assert TrainOptions(profile="10:20").profiled_steps == range(10, 21)
