"""One update: what it computes does not depend on how it is cut, and memory that runs out costs nothing but time."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.data.batch import Batch
from regard.train.engine import Engine, seed_batch
from regard.train.loss import WordLoss
from regard.train.objective import Objective
from tests.train.made import trainer

OUT_OF_MEMORY = "[enforce fail at alloc_cpu.cpp:124] data. DefaultCPUAllocator: can't allocate memory: you tried to ..."


@pytest.fixture
def engine(tmp_path: Path) -> tuple[Engine, list[Batch], list[str]]:
    """An engine without dropout, and the batches of its first update."""
    made = trainer("translate", tmp_path, {"model.encoder.dropout": {}, "model.decoder.dropout": {}})
    said: list[str] = []
    made.engine._say = said.append
    return made.engine, list(next(made.loader.updates()).batches), said


def gradients(engine: Engine) -> list[Tensor]:
    found = [parameter.grad.clone() for parameter in engine.objective.model.parameters() if parameter.grad is not None]
    engine.refuse()
    return found


class Tight(Objective):
    """An objective that has room for so many rows; a backward pass that fails half-way leaves gradients behind."""

    room = 10**9

    def __call__(self, batch: Batch) -> WordLoss:
        found = super().__call__(batch)
        if batch.labels.size(0) > self.room:
            (found.total * 100).backward()
            raise RuntimeError(OUT_OF_MEMORY)
        return found


def tight(engine: Engine, room: int) -> None:
    engine.objective.__class__ = Tight
    engine.objective.room = room  # type: ignore[attr-defined]


def test_an_update_is_the_mean_over_all_its_tokens(engine: tuple[Engine, list[Batch], list[str]]) -> None:
    one, batches, _ = engine
    assert len(batches) == 2
    found = one.gradients(batches, epoch=0)
    whole = gradients(one)
    losses = [one.objective(batch) for batch in batches]
    total = sum(float(loss.total.detach()) for loss in losses)
    assert found.tokens == sum(batch.label_count for batch in batches)
    assert found.loss == pytest.approx(total / found.tokens, rel=1e-6)
    unsmoothed = sum(float(loss.negative_log_likelihood) for loss in losses) / found.tokens
    assert found.negative_log_likelihood == pytest.approx(unsmoothed, rel=1e-6)
    assert abs(found.negative_log_likelihood - found.loss) > 1e-4  # another number
    (sum(loss.total for loss in losses) / found.tokens).backward()  # type: ignore[union-attr]
    norm = torch.nn.utils.clip_grad_norm_(list(one.objective.model.parameters()), 1.0)
    assert found.norm == pytest.approx(norm.item(), rel=1e-5)
    for plain, ours in zip(gradients(one), whole, strict=True):
        torch.testing.assert_close(plain, ours, rtol=1e-5, atol=1e-7)


def test_memory_that_runs_out_is_answered_by_smaller_parts(engine: tuple[Engine, list[Batch], list[str]]) -> None:
    one, batches, said = engine
    found = one.gradients(batches, epoch=0)
    whole = gradients(one)
    tight(one, room=5)
    again = one.gradients(batches, epoch=0)
    assert again.loss == pytest.approx(found.loss, rel=1e-6)
    assert again.tokens == found.tokens
    for plain, split in zip(whole, gradients(one), strict=True):
        torch.testing.assert_close(plain, split, rtol=1e-4, atol=1e-7)
    assert len(said) >= 1
    assert "computed again with each batch in 2 parts" in said[0]


def test_a_row_that_does_not_fit_is_said(engine: tuple[Engine, list[Batch], list[str]]) -> None:
    one, batches, _ = engine
    tight(one, room=0)
    with pytest.raises(RegardError, match="not enough memory for a single row"):
        one.gradients(batches, epoch=0)
    assert gradients(one) == []


def test_other_errors_are_not_taken_for_memory(engine: tuple[Engine, list[Batch], list[str]]) -> None:
    one, batches, said = engine

    def broken(_: Batch) -> WordLoss:
        raise RuntimeError("shapes cannot be multiplied")

    one.objective = broken  # type: ignore[assignment]
    with pytest.raises(RuntimeError, match="shapes"):
        one.gradients(batches, epoch=0)
    assert said == []


def test_dropout_depends_on_seed_epoch_and_batch_alone(tmp_path: Path) -> None:
    made = trainer("translate", tmp_path)
    batches = list(next(made.loader.updates()).batches)
    first = made.engine.gradients(batches, epoch=0).loss
    made.engine.refuse()
    torch.rand(17)  # whoever else draws makes no difference
    assert made.engine.gradients(batches, epoch=0).loss == first
    made.engine.refuse()
    assert made.engine.gradients(batches, epoch=1).loss != first
    draws = set()
    for seed, epoch, batch, part in [(1, 0, 0, 0), (2, 0, 0, 0), (1, 1, 0, 0), (1, 0, 1, 0), (1, 0, 0, 1)]:
        seed_batch(seed, epoch, batch, part)
        draws.add(torch.rand(()).item())
    assert len(draws) == 5
