"""One step: the gradients do not depend on how it is split, and running out of memory costs only time."""

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest
import torch
from torch import Tensor

from regard.base.errors import RegardError, RetryError
from regard.data.batches.batch import Batch
from regard.models.loss.sums import LossSums
from regard.training.distributed.processes import SingleProcess
from regard.training.objective import Objective
from regard.training.run import _read_micro_batches
from regard.training.step import OutOfMemoryError, StepRunner, seed_batch
from tests.training.factories import make_trainer

OUT_OF_MEMORY = "[enforce fail at alloc_cpu.cpp:124] data. DefaultCPUAllocator: can't allocate memory: you tried to ..."


@pytest.fixture
def step_setup(tmp_path: Path) -> tuple[StepRunner, list[Batch], list[str]]:
    """Return an updater without dropout, the batches of its first step, and its list of warnings."""
    trainer = make_trainer("translation", tmp_path, {"model.encoder.dropout": {}, "model.decoder.dropout": {}})
    warnings: list[str] = []
    trainer.step_runner._warn = warnings.append
    return trainer.step_runner, list(next(trainer.loader.steps()).batches), warnings


def take_gradients(step_runner: StepRunner) -> list[Tensor]:
    grads = [
        parameter.grad.clone() for parameter in step_runner.objective.model.parameters() if parameter.grad is not None
    ]
    step_runner.discard()
    return grads


class LimitedObjective(Objective):
    """An objective whose memory holds `max_rows`; a backward pass that fails half-way leaves gradients behind."""

    max_rows = 10**9

    def __call__(self, batch: Batch) -> LossSums:
        loss = super().__call__(batch)
        if batch.labels.size(0) > self.max_rows:
            (loss.total * 100).backward()
            raise RuntimeError(OUT_OF_MEMORY)
        return loss


def limit_rows(step_runner: StepRunner, max_rows: int) -> None:
    step_runner.objective.__class__ = LimitedObjective
    step_runner.objective.max_rows = max_rows  # type: ignore[assignment]


def test_a_step_is_the_mean_over_all_its_tokens(step_setup: tuple[StepRunner, list[Batch], list[str]]) -> None:
    step_runner, batches, _ = step_setup
    assert len(batches) == 2
    stats = step_runner.compute_gradients(batches, epoch=0)
    full_grads = take_gradients(step_runner)
    losses = [step_runner.objective(batch) for batch in batches]
    total = sum(float(loss.total.detach()) for loss in losses)
    assert stats.tokens == sum(batch.label_count for batch in batches)
    assert stats.loss == pytest.approx(total / stats.tokens, rel=1e-6)
    unsmoothed = sum(float(loss.negative_log_likelihood) for loss in losses) / stats.tokens
    assert stats.negative_log_likelihood == pytest.approx(unsmoothed, rel=1e-6)
    assert abs(stats.negative_log_likelihood - stats.loss) > 1e-4  # a different value
    (sum(loss.total for loss in losses) / stats.tokens).backward()  # type: ignore[union-attr]
    norm = torch.nn.utils.clip_grad_norm_(list(step_runner.objective.model.parameters()), 1.0)
    assert stats.gradient_norm == pytest.approx(norm.item(), rel=1e-5)
    for expected, ours in zip(take_gradients(step_runner), full_grads, strict=True):
        torch.testing.assert_close(expected, ours, rtol=1e-5, atol=1e-7)


def test_memory_that_runs_out_is_answered_by_smaller_parts(
    step_setup: tuple[StepRunner, list[Batch], list[str]],
) -> None:
    step_runner, batches, warnings = step_setup
    stats = step_runner.compute_gradients(batches, epoch=0)
    full_grads = take_gradients(step_runner)
    limit_rows(step_runner, max_rows=5)
    split_stats = step_runner.compute_gradients(batches, epoch=0)
    assert split_stats.loss == pytest.approx(stats.loss, rel=1e-6)
    assert split_stats.tokens == stats.tokens
    for expected, split in zip(full_grads, take_gradients(step_runner), strict=True):
        torch.testing.assert_close(expected, split, rtol=1e-4, atol=1e-7)
    assert len(warnings) >= 1
    assert "retrying the step with 2 micro-batches per batch" in warnings[0]


def test_a_row_that_does_not_fit_is_reported(step_setup: tuple[StepRunner, list[Batch], list[str]]) -> None:
    step_runner, batches, _ = step_setup
    limit_rows(step_runner, max_rows=0)
    with pytest.raises(RegardError, match="a single row of a batch does not fit"):
        step_runner.compute_gradients(batches, epoch=0)
    assert take_gradients(step_runner) == []


class SecondOfTwo(SingleProcess):
    """One of two ranks whose batches count alone; it records the passes of a step."""

    rank, world_size = 1, 2

    def __init__(self) -> None:
        self.passes: list[bool] = []

    def accumulate(self, is_last: bool) -> AbstractContextManager[object]:
        self.passes.append(is_last)
        return nullcontext()


def test_no_rank_repeats_a_step_alone(step_setup: tuple[StepRunner, list[Batch], list[str]]) -> None:
    step_runner, batches, warnings = step_setup
    step_runner.processes = SecondOfTwo()
    limit_rows(step_runner, max_rows=5)
    with pytest.raises(OutOfMemoryError, match="Rank 1") as error:
        step_runner.compute_gradients(batches, epoch=0)
    assert error.value.micro_batches == 2
    assert isinstance(error.value, RetryError), "the launcher starts all ranks again"
    assert warnings == []
    assert take_gradients(step_runner) == []


def test_the_next_start_splits_the_batches_of_all_ranks(tmp_path: Path) -> None:
    trainer = make_trainer("translation", tmp_path)
    assert _read_micro_batches(trainer.folder) == 1
    trainer.step_runner.processes = SecondOfTwo()
    limit_rows(trainer.step_runner, max_rows=5)
    with pytest.raises(OutOfMemoryError):
        trainer._step(next(trainer.loader.steps()))
    assert _read_micro_batches(trainer.folder) == 2


def test_every_rank_makes_as_many_passes(step_setup: tuple[StepRunner, list[Batch], list[str]]) -> None:
    step_runner, batches, _ = step_setup
    expected = step_runner.compute_gradients(batches, epoch=0)
    full_grads = take_gradients(step_runner)
    step_runner.processes, step_runner.micro_batches = (
        SecondOfTwo(),
        50,
    )  # more parts than rows: some passes have no labels
    assert all(batch.labels.size(0) < 50 for batch in batches)
    stats = step_runner.compute_gradients(batches, epoch=0)
    assert step_runner.processes.passes == [False] * (50 * len(batches) - 1) + [True]
    assert stats.loss == pytest.approx(expected.loss, rel=1e-6)
    for full, split in zip(full_grads, take_gradients(step_runner), strict=True):
        torch.testing.assert_close(full, split, rtol=1e-4, atol=1e-7)


def test_other_errors_are_not_taken_for_memory(step_setup: tuple[StepRunner, list[Batch], list[str]]) -> None:
    step_runner, batches, warnings = step_setup

    def broken(_: Batch) -> LossSums:
        raise RuntimeError("shapes cannot be multiplied")

    step_runner.objective = broken  # type: ignore[assignment]
    with pytest.raises(RuntimeError, match="shapes"):
        step_runner.compute_gradients(batches, epoch=0)
    assert warnings == []


def test_dropout_depends_on_seed_epoch_and_batch_alone(tmp_path: Path) -> None:
    trainer = make_trainer("translation", tmp_path)
    batches = list(next(trainer.loader.steps()).batches)
    first = trainer.step_runner.compute_gradients(batches, epoch=0).loss
    trainer.step_runner.discard()
    torch.rand(17)  # other use of the generator makes no difference
    assert trainer.step_runner.compute_gradients(batches, epoch=0).loss == first
    trainer.step_runner.discard()
    assert trainer.step_runner.compute_gradients(batches, epoch=1).loss != first
    draws = set()
    for seed, epoch, batch, part in [(1, 0, 0, 0), (2, 0, 0, 0), (1, 1, 0, 0), (1, 0, 1, 0), (1, 0, 0, 1)]:
        seed_batch(seed, epoch, batch, part)
        draws.add(torch.rand(()).item())
    assert len(draws) == 5
