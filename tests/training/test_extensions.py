"""A loss, metrics and callbacks that the caller gives to a run."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

import regard
from regard.base.errors import RegardError
from regard.training.events import Event, StepFinished, Validated
from tests.data.pairs import PAIRS, TINY

SETTINGS: dict[str, Any] = {**TINY, "train.label_smoothing": 0.0, "validation.every_steps": 1}
REVIEWS = [(f"review {n} is {('good', 'bad')[n % 2]}", ("good", "bad")[n % 2]) for n in range(40)]


def train(out: Path, data: Any = PAIRS, settings: dict[str, Any] | None = None, **arguments: Any) -> Any:
    events: list[Event] = []
    listeners = [events.append, *arguments.pop("listeners", ())]
    changes = SETTINGS | (settings or {})
    finished = regard.train(
        data=data,
        validation=data[:5],
        out=out,
        settings=changes,
        force=True,
        progress=False,
        listeners=listeners,
        **arguments,
    )
    return finished, events


def plain(logits: Tensor, labels: Tensor) -> Tensor:
    return F.cross_entropy(logits, labels, reduction="none")


def twice(logits: Tensor, labels: Tensor) -> Tensor:
    assert logits.shape == (*labels.shape, logits.size(-1))
    return 2 * plain(logits, labels)


def read_weights(folder: Path) -> dict[str, Tensor]:
    return {name: weight.detach() for name, weight in regard.load(folder).model.named_parameters()}


@pytest.mark.parametrize("data", [PAIRS, REVIEWS], ids=["translation", "classification"])
def test_loss_replaces_the_loss_of_the_task(data: Any, tmp_path: Path) -> None:
    labels = {"model.d_model": 16, "model.encoder.layers": 1, "train.label_smoothing": 0.0}
    changes = {**{name: SETTINGS[name] for name in SETTINGS if "decoder" not in name}, **labels}
    losses = {}
    for name, loss in (("none", None), ("plain", plain), ("twice", twice)):
        events: list[Event] = []
        regard.train(
            data=data,
            validation=data[:5],
            out=tmp_path / name,
            settings=changes if data is REVIEWS else SETTINGS,
            loss=loss,
            force=True,
            progress=False,
            listeners=[events.append],
        )
        losses[name] = [event.loss for event in events if isinstance(event, StepFinished)]
    assert losses["plain"][0] == pytest.approx(losses["none"][0], rel=1e-5)
    assert losses["twice"][0] == pytest.approx(2 * losses["none"][0], rel=1e-5)
    expected, given = (read_weights(tmp_path / name) for name in ("none", "plain"))
    for name, weight in expected.items():
        # Softmax ignores a bias of the keys: its gradient is rounding noise, which Adam scales up.
        if not name.endswith("key.bias"):
            assert torch.allclose(weight, given[name], atol=1e-4), name


def test_loss_that_returns_a_mean_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RegardError, match=r"`loss` must return one value per label, shape \(\d+,\), not \(\)"):
        train(tmp_path / "run", loss=F.cross_entropy)


def longest(outputs: Sequence[str], references: Sequence[str]) -> float:
    assert len(outputs) == len(references) > 0
    return float(max(map(len, references)))


def test_metrics_are_part_of_every_validation(tmp_path: Path) -> None:
    settings = {"validation.sentences": 5}
    finished, events = train(tmp_path / "run", settings=settings, metrics={"longest": longest})
    validations = [event for event in events if isinstance(event, Validated)]
    assert all(event.scores["longest"] == 23.0 for event in validations)
    assert finished.best_scores["longest"] == 23.0
    lines = (tmp_path / "run" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    assert any(json.loads(line).get("validation", {}).get("longest") == 23.0 for line in lines)
    assert "longest 23" in (tmp_path / "run" / "log.txt").read_text(encoding="utf-8")


def test_metrics_of_a_classifier_compare_labels(tmp_path: Path) -> None:
    seen: list[str] = []

    def collect(outputs: Sequence[str], references: Sequence[str]) -> float:
        seen.extend((*outputs, *references))
        return 0.5

    changes = {name: value for name, value in SETTINGS.items() if "decoder" not in name}
    regard.train(
        data=REVIEWS,
        validation=REVIEWS[:5],
        out=tmp_path / "run",
        settings=changes,
        metrics={"half": collect},
        force=True,
        progress=False,
    )
    assert set(seen) <= {"good", "bad"}
    assert len(seen) >= 10


def test_callback_that_returns_true_stops_the_run_and_resume_continues_exactly(tmp_path: Path) -> None:
    def stop(event: Event) -> bool:
        return isinstance(event, StepFinished) and event.step == 2

    train(tmp_path / "whole", settings={"train.steps": 4})
    finished, _ = train(tmp_path / "stopped", settings={"train.steps": 4}, listeners=[stop])
    assert (finished.reason, finished.step) == ("stop requested", 2)
    assert "Callback: saving a checkpoint and stopping" in (tmp_path / "stopped" / "log.txt").read_text(
        encoding="utf-8"
    )
    assert regard.resume(tmp_path / "stopped", progress=False).reason == "finished"
    weights = [(tmp_path / name / "best" / "model.safetensors").read_bytes() for name in ("whole", "stopped")]
    assert weights[0] == weights[1]


def test_resume_needs_the_same_functions(tmp_path: Path) -> None:
    settings = {"validation.sentences": 5}
    train(tmp_path / "run", settings=settings, loss=twice, metrics={"longest": longest})
    with pytest.raises(RegardError, match=r'started with \{"loss": "twice", "metrics": \["longest"\]\}') as caught:
        regard.resume(tmp_path / "run", more=1, progress=False)
    assert "regard.resume(folder, loss=..., metrics=...)" in str(caught.value)
    finished = regard.resume(tmp_path / "run", more=1, loss=twice, metrics={"longest": longest}, progress=False)
    assert finished.step == 3
    assert regard.resume(tmp_path / "run", more=1, force=True, progress=False).step == 4


def test_functions_that_a_run_cannot_use_are_refused(tmp_path: Path) -> None:
    text = [{"text": f"line {n} of a text"} for n in range(60)]
    with pytest.raises(RegardError, match="cannot be combined with `ranks`"):
        train(tmp_path / "run", loss=plain, ranks=2)
    with pytest.raises(RegardError, match="'bleu' is a metric of Regard"):
        train(tmp_path / "run", metrics={"bleu": longest})
    with pytest.raises(RegardError, match=r"validation\.sentences is 0"):
        train(tmp_path / "run", metrics={"longest": longest})
    with pytest.raises(RegardError, match="has no outputs to compare"):
        regard.train(data=text, out=tmp_path / "lm", metrics={"longest": longest}, steps=1, force=True, progress=False)
    with pytest.raises(RegardError, match="`loss` must be a function"):
        train(tmp_path / "run", loss="focal")
    with pytest.raises(RegardError, match=r"`metrics\['a'\]` must be a function"):
        train(tmp_path / "run", metrics={"a": 3})


def test_metric_that_returns_no_number_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RegardError, match=r"`metrics\['text'\]\(...\)` must be a number, got 'high'"):
        train(tmp_path / "run", settings={"validation.sentences": 5}, metrics={"text": lambda *_: "high"})
