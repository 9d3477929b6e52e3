"""Number of Hypothesis examples per property: 500, or 10,000 with HYPOTHESIS_PROFILE=long; small trained models."""

import gc
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

SUPPRESSED = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]  # a busy machine is not a failure
settings.register_profile("ci", max_examples=500, deadline=None, derandomize=True, suppress_health_check=SUPPRESSED)
settings.register_profile("long", max_examples=10_000, deadline=None, suppress_health_check=SUPPRESSED)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

SHORT_TRAINING: dict[str, Any] = {
    "train.average": 1,
    "train.ema": 0.0,
    "validation.every_steps": 400,
    "train.save_every": 400,
    "train.steps": 60,
}


def pytest_collection_finish() -> None:
    """Keep the garbage collector from visiting everything that all test modules import, which takes a second."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def trained_encoders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One model of each kind, trained for a second or two on something that can be learned."""
    from regard.training.run import fit  # torch is imported by the tests that need it only
    from tests.training.runs import make_small_run, write_corpus

    folder = tmp_path_factory.mktemp("models")
    files = write_corpus(folder / "corpus")
    (folder / "gaps.txt").write_text("red dog sees blue cat\n" * 60 + "old house finds new tree\n" * 60)
    rows = [("good dog", "yes"), ("bad cat", "no")] * 60
    (folder / "rows.tsv").write_text("".join(f"{text} {n}\t{label}\n" for n, (text, label) in enumerate(rows)))
    words = ["the\tD\ndog\tN\nsees\tV\na\tD\ncat\tN\n\n", "a\tD\ntree\tN\nfinds\tV\n\n"] * 60
    (folder / "words.conll").write_text("".join(words))
    changes: dict[str, dict[str, Any]] = {
        "masked_lm": {"data.train": [{"kind": "lines", "source": str(folder / "gaps.txt")}], "train.steps": 150},
        "text_classification": {
            "data.train": [{"kind": "table", "path": str(folder / "rows.tsv"), "label": 2}],
            "model.task": "text_classification",
            "model.encoder.position": {"kind": "learned", "length": 64},
            "model.head": {"kind": "classes", "labels": ["a", "b"], "pool": "mean"},
        },
        "tagging": {
            "data.train": [{"kind": "conll", "path": str(folder / "words.conll")}],
            "model.task": "tagging",
            "model.head": {"kind": "tags", "labels": ["a", "b"]},
        },
    }
    for task, change in changes.items():
        held_out = {"data.held_out": 0.0, "train.label_smoothing": 0.0}
        fit(make_small_run("masked_lm", files, SHORT_TRAINING | held_out | change), folder / task)
    return {task: folder / task for task in changes}


@pytest.fixture(scope="session")
def planted_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A translation run with planted errors."""
    from tests.blame.runs import train_planted_run

    return train_planted_run(tmp_path_factory.mktemp("blame"))
