"""A model that is not usable yet says so, per metric, with the steps that it may need."""

import json
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from regard.config.task_spec import Metric
from regard.training.events import Finished
from regard.training.run import fit
from regard.training.usability import THRESHOLDS, find_shortfall
from tests.training.runs import make_small_run, write_corpus

RATE = "train.schedule.lr (0.1)"
COIN = np.array([500, 500])  # labels: entropy 0.693, majority 50 % ± 1.6 %


@pytest.mark.parametrize(
    ("metric", "unusable", "usable"),
    [
        ("chrf", 24.0, 26.0),
        ("bleu", 4.0, 6.0),
        ("loss", 0.6, 0.5),
        ("perplexity", 1.8, 1.6),
        ("accuracy", 0.52, 0.54),
        ("f1", 0.35, 0.4),
    ],
)
def test_threshold_of_each_metric_separates_usable_models(metric: Metric, unusable: float, usable: float) -> None:
    shortfall = find_shortfall(metric, unusable, COIN, [(10, unusable)], 1.0, rate=RATE)
    assert shortfall is not None
    assert "not usable yet" in shortfall.text
    assert find_shortfall(metric, usable, COIN, [(10, usable)], 1.0, rate=RATE) is None


def test_metrics_without_threshold_are_named() -> None:
    assert set(get_args(Metric)) - THRESHOLDS.keys() == {"bits_per_byte", "retrieval_at_1"}
    assert find_shortfall("retrieval_at_1", 0.0, COIN, [(10, 0.0)], 1.0, rate=RATE) is None
    assert find_shortfall("loss", 9.0, COIN[:0], [(10, 9.0)], 1.0, rate=RATE) is None  # no classes, such as pixels


def test_shortfall_states_the_time_that_the_trend_needs() -> None:
    shortfall = find_shortfall("chrf", 10.0, COIN, [(25, 0.0), (50, 5.0), (100, 10.0)], 2.0, rate=RATE)
    assert shortfall is not None
    assert shortfall.more_steps == 700  # five points per doubling: 25 at 800
    assert shortfall.text.startswith("chrF 10.00: not usable yet (usable from about 25.00: ")
    assert shortfall.text.endswith("by the trend of this run, about 23 min 20 s more on this machine.")
    unmeasured = find_shortfall("chrf", 10.0, COIN, [(25, 0.0), (50, 5.0), (100, 10.0)], None, rate=RATE)
    assert unmeasured is not None
    assert unmeasured.text.endswith("about 700 more steps.")


@pytest.mark.parametrize("scores", [[10.0], [5.0, 10.0], [10.0, 10.0, 10.0], [14.0, 12.0, 10.0]])
def test_shortfall_without_trend_claims_none(scores: list[float]) -> None:
    history = list(zip((25, 50, 100)[-len(scores) :], scores, strict=True))
    shortfall = find_shortfall("chrf", 10.0, COIN, history, 2.0, rate=RATE)
    assert shortfall is not None
    assert "no clear trend: the run is too short or train.schedule.lr (0.1) too high" in shortfall.text
    assert shortfall.text.endswith("or at least 10 min 00 s more on this machine.")
    assert shortfall.more_steps == 300


def test_shortfall_of_a_run_that_no_longer_improves_advises_other_data() -> None:
    shortfall = find_shortfall(
        "chrf", 10.0, COIN, [(25, 0.0), (50, 5.0), (100, 10.0)], 2.0, rate=RATE, can_improve=False
    )
    assert shortfall is not None
    assert "Longer training will not help" in shortfall.text
    assert not shortfall.more_steps


@pytest.mark.parametrize("task", ["translation", "causal_lm", "masked_lm"])
def test_run_of_a_few_steps_ends_with_a_shortfall(task: str, tmp_path: Path) -> None:
    changes: dict[str, Any] = {"train.steps": 2, "validation.every_steps": 1, "train.average": 1}
    if task == "translation":
        changes |= {"validation.metric": "chrf", "validation.sentences": 4}
    finished = fit(make_small_run(task, write_corpus(tmp_path / "corpus"), changes), tmp_path / "run")
    assert isinstance(finished, Finished)
    assert "not usable yet" in finished.shortfall
    assert finished.more_steps > 0
    last = json.loads((tmp_path / "run" / "timing.jsonl").read_text(encoding="utf-8").splitlines()[-1])
    assert last["step"] == 2
    assert last["step_seconds"] > 0
