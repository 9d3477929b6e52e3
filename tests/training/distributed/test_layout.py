"""How ranks share a model: what the settings choose, and what is refused with its reason."""

from typing import Any

import pytest

from regard.base import limits
from regard.base.errors import RegardError
from regard.config.run import RunConfig
from regard.training.distributed.layout import ParallelLayout, choose_layout
from tests.training.runs import make_small_run

FILES = {"all.en": "all.en", "all.de": "all.de", "book.txt": "book.txt"}  # only named, never read


def make_run(changes: dict[str, Any] | None = None, task: str = "translation") -> RunConfig:
    return make_small_run(task, FILES, changes)


@pytest.mark.parametrize(
    ("settings", "ranks", "layout"),
    [
        ({}, 1, ParallelLayout()),
        ({}, 3, ParallelLayout(replicas=3)),
        ({"mode": "fsdp"}, 3, ParallelLayout(shards=3)),
        ({"mode": "fsdp", "replicas": 2}, 4, ParallelLayout(replicas=2, shards=2)),
        ({"replicas": 2}, 4, ParallelLayout(replicas=2, shards=2)),
        ({"tensor": 2}, 2, ParallelLayout(tensor=2)),
        ({"tensor": 2}, 4, ParallelLayout(shards=2, tensor=2)),
        ({"mode": "ddp", "tensor": 2}, 2, ParallelLayout(tensor=2)),
        ({"mode": "fsdp", "tensor": 2}, 1, ParallelLayout()),  # one process ignores all of it
    ],
)
def test_the_layout_follows_from_settings_and_ranks(
    settings: dict[str, Any], ranks: int, layout: ParallelLayout
) -> None:
    run = make_run({f"parallel.{name}": value for name, value in settings.items()})
    assert choose_layout(run, ranks) == layout
    assert layout.world_size == ranks


def test_a_model_that_does_not_fit_is_sharded(monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run()  # 9,376 parameters, 16 bytes each
    monkeypatch.setattr(limits, "total_memory", lambda: 4 * 16 * 9_376)
    assert choose_layout(run, 2) == ParallelLayout(replicas=2)
    assert choose_layout(run, 4) == ParallelLayout(shards=4)
    assert choose_layout(run, 4, ranks_per_host=1) == ParallelLayout(replicas=4), "every rank has a machine of its own"


STACKS = ("encoder", "decoder")


RECURRENT = {"kind": "recurrent", "layers": 1}


def both(name: str, value: Any) -> dict[str, Any]:
    """Return changes of a setting in both stacks."""
    return {f"model.{stack}.{name}": value for stack in STACKS}


@pytest.mark.parametrize(
    ("changes", "ranks", "location", "reason"),
    [
        ({"parallel.tensor": 2}, 3, "parallel", "3 ranks are not divisible by 2"),
        ({"parallel.mode": "fsdp", "parallel.replicas": 3}, 4, "parallel", "4 ranks are not divisible by 3"),
        ({"parallel.mode": "ddp", "parallel.replicas": 2}, 4, "parallel.replicas", "one replica per rank"),
        ({"parallel.mode": "ddp", "parallel.tensor": 2}, 4, "parallel", "only supported with shards"),
        ({"parallel.mode": "fsdp", "train.optimizer": {"kind": "muon"}}, 2, "train.optimizer", "8 times as long"),
        ({"parallel.tensor": 2, "train.optimizer": {"kind": "muon"}}, 2, "train.optimizer", "Muon"),
        ({"parallel.mode": "fsdp", "train.precision": "float16"}, 2, "train.precision", "overflow"),
        ({"parallel.mode": "fsdp", "model.encoder": RECURRENT}, 2, "model.encoder.kind", "matrix of all gates"),
        ({"parallel.tensor": 2, "model.encoder": RECURRENT}, 2, "model.encoder.kind", "matrix of all gates"),
        ({"parallel.tensor": 2} | both("position", {"kind": "alibi"}), 2, "model.encoder.position", "'alibi'"),
        ({"parallel.tensor": 2} | both("position", {"kind": "relative"}), 2, "model.encoder.position", "'relative'"),
        (
            {"parallel.tensor": 2, "model.decoder.cross.score": {"kind": "general"}},
            2,
            "model.decoder.cross.score",
            "weights per head",
        ),
        (
            {"parallel.tensor": 2, "model.decoder.attention.query_key_norm": {"kind": "rms"}},
            2,
            "model.decoder.attention.query_key_norm",
            "all heads share",
        ),
        (
            {"parallel.tensor": 2, "model.decoder.attention.key_value_heads": 1},
            2,
            "model.decoder.attention",
            "2 query heads and 1 key and value heads are not divisible",
        ),
        ({"parallel.tensor": 4} | both("attention.heads", 2), 4, "model.encoder.attention", "are not divisible"),
        (
            {"parallel.tensor": 2, "model.encoder.feedforward.d_ff": 15},
            2,
            "model.encoder.feedforward.d_ff",
            "15 is not divisible",
        ),
        ({"parallel.tensor": 2, "model.encoder.dropout.attention": 0.1}, 2, "model.encoder.dropout.attention", "3e-2"),
        (
            {"parallel.tensor": 2, "model.decoder.dropout.feedforward": 0.1},
            2,
            "model.decoder.dropout.feedforward",
            "3e-2",
        ),
    ],
)
def test_what_would_be_wrong_is_refused_with_the_reason(
    changes: dict[str, Any], ranks: int, location: str, reason: str
) -> None:
    with pytest.raises(RegardError) as error:
        choose_layout(make_run(changes), ranks)
    assert error.value.location == location
    assert reason in error.value.message
    assert error.value.hint


def test_whole_models_take_every_optimizer_and_precision() -> None:
    changes = {"train.optimizer": {"kind": "muon"}, "train.precision": "float16", "parallel.mode": "ddp"}
    assert choose_layout(make_run(changes), 2) == ParallelLayout(replicas=2)
