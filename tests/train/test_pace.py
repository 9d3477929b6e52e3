"""The trial steps before a run: they give a time, and leave no trace."""

from itertools import count
from typing import Any

import pytest
import torch

from regard.base.errors import RegardError
from regard.config import codec
from regard.config.run import Data, Lines, Run
from regard.config.training import Constant, Device, Training
from regard.models.build import AnyModel
from regard.train import pace

SMALL: dict[str, dict[str, Any]] = {
    "mini": {"source.vocabulary": 20, "encoder.layers": 1, "decoder.layers": 1},
    "book": {"tokens.vocabulary": 20, "decoder.layers": 1},
    "reader": {
        "source.vocabulary": 20,
        "encoder.layers": 1,
        "task": "classify",
        "head": {"kind": "classes", "labels": ["a", "b"]},
    },
}


def run(preset: str) -> Run:
    return Run(
        data=Data(train=(Lines(source="a"),), batch_tokens=64, longest=8),
        model=codec.preset(preset, SMALL[preset]),
        train=Training(updates=1, update_tokens=128, schedule=Constant(peak=1e-3)),
        device=Device(threads=1),
    )


@pytest.mark.parametrize("preset", SMALL)
def test_every_family_can_be_tried(preset: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "SECONDS", 0.0)
    torch.manual_seed(3)
    before = torch.get_rng_state()
    assert 0 < pace.seconds_per_update(run(preset), 8) < 10
    assert torch.equal(torch.get_rng_state(), before)


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The rows of every trial step, as they come."""
    monkeypatch.setattr(pace, "SECONDS", 0.0)
    found: list[int] = []
    loss = pace._loss

    def seen(model: AnyModel, tokens: torch.Tensor) -> torch.Tensor:
        found.append(tokens.size(0))
        return loss(model, tokens)

    monkeypatch.setattr(pace, "_loss", seen)
    return found


def test_a_large_batch_is_tried_in_part(rows: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    pace.seconds_per_update(run("mini"), 8)
    monkeypatch.setattr(pace, "ENOUGH", pace.flops(run("mini"), 8) / 4)
    pace.seconds_per_update(run("mini"), 8)
    assert rows == [8, 8, 8, 2, 2, 2]


def test_it_is_tried_in_the_precision_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "SECONDS", 0.0)
    kinds: set[torch.dtype] = set()
    loss = pace._loss

    def seen(model: AnyModel, tokens: torch.Tensor) -> torch.Tensor:
        kinds.add((torch.ones(1, 1) @ torch.ones(1, 1)).dtype)
        return loss(model, tokens)

    monkeypatch.setattr(pace, "_loss", seen)  # called where products are narrow
    for precision, kind in (("float32", torch.float32), ("bfloat16", torch.bfloat16)):
        kinds.clear()
        asked = run("mini")
        narrow = asked.train.model_copy(update={"precision": precision})
        pace.seconds_per_update(asked.model_copy(update={"train": narrow}), 8)
        assert kinds == {kind}


def test_two_vocabularies_of_different_size_can_be_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "SECONDS", 0.0)
    asked = run("mini")
    sides = SMALL["mini"] | {"source.vocabulary": 50, "target": {"kind": "tokens", "vocabulary": 9}}
    assert pace.seconds_per_update(asked.model_copy(update={"model": codec.preset("mini", sides)}), 8) > 0


def test_agreement_takes_twice_the_rows(rows: list[int]) -> None:
    asked = run("mini")
    pace.seconds_per_update(asked.model_copy(update={"train": asked.train.model_copy(update={"agreement": 5.0})}), 8)
    assert rows == [16, 16, 16]


def test_a_device_that_is_not_there_is_named() -> None:
    asked = run("mini")
    with pytest.raises(RegardError, match="There is no device 'cuda:9'"):
        pace.seconds_per_update(asked.model_copy(update={"device": Device(name="cuda:9")}), 8)


def test_a_model_that_no_machine_holds_is_refused() -> None:
    asked = run("mini")
    large = codec.preset("mini", SMALL["mini"] | {"encoder.layers": 512, "width": 16_384})
    with pytest.raises(RegardError, match="of memory, and this machine has"):
        pace.seconds_per_update(asked.model_copy(update={"model": large}), 8)


def test_the_time_is_that_of_the_whole_update(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "SECONDS", 0.0)
    clock = count()
    monkeypatch.setattr("regard.train.pace.time.perf_counter", lambda: float(next(clock)))
    assert pace.seconds_per_update(run("mini"), 8) == 3.0  # two batches and a step, each of them a tick
    monkeypatch.setattr(pace, "ENOUGH", pace.flops(run("mini"), 8) / 4)
    assert pace.seconds_per_update(run("mini"), 8) == 9.0  # a quarter of a batch takes a tick now
