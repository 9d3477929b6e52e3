"""Create trainers over a small corpus, ready for the first step, step schedules, and an objective whose loss spikes."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from regard.config.training import ConstantConfig, TrainingConfig
from regard.data.batches.batch import Batch
from regard.models.loss.sums import LossSums
from regard.store.run_folder import RunFolder
from regard.training.data import prepare_data
from regard.training.events import Event
from regard.training.objective import Objective
from regard.training.resolve import resolve_run
from regard.training.step_schedule import StepPlan, StepSchedule
from regard.training.trainer import Trainer
from tests.training.runs import make_small_run, write_corpus


def make_schedule(
    train: Mapping[str, Any], *, validation_interval: int | None = None, plans: Sequence[StepPlan] = ()
) -> StepSchedule:
    """Return the schedule of a run with these settings of [train]; it validates as often as it saves."""
    interval = validation_interval or max(1, train["steps"] // 12)
    settings = {"schedule": ConstantConfig(lr=0.1), "save_every": interval, **train}
    return StepSchedule(TrainingConfig(**settings), interval, plans)


def make_trainer(
    task: str, folder: Path, changes: dict[str, Any] | None = None, events: list[Event] | None = None
) -> Trainer:
    """Create the trainer of a small run, with changes to its settings."""
    run = make_small_run(task, write_corpus(folder / "corpus"), changes)
    run_folder = RunFolder(folder / "run")
    run_folder.path.mkdir()
    emit = (lambda _: None) if events is None else events.append
    run_data = prepare_data(run, run_folder, emit)
    return Trainer(resolve_run(run, run_data), run_folder, run_data, emit)


class SpikyObjective(Objective):
    """An objective whose loss is not finite, or far too high, for some batches."""

    faults: ClassVar[dict[int, float]] = {}  # by the number of earlier batches
    batch_factors: ClassVar[dict[int | None, float]] = {}  # by batch number: they recur when the batch does
    gradient_factors: ClassVar[dict[int, float]] = {}  # a finite loss with a gradient that is not
    batch_count = 0

    def __call__(self, batch: Batch) -> LossSums:
        loss = super().__call__(batch)
        if not self.model.training:
            return loss
        SpikyObjective.batch_count += 1
        total = (
            loss.total * self.faults.get(SpikyObjective.batch_count, 1.0) * self.batch_factors.get(batch.number, 1.0)
        )
        if (factor := self.gradient_factors.get(SpikyObjective.batch_count)) is not None:
            total.register_hook(lambda gradient: gradient * factor)
        return LossSums(total, loss.negative_log_likelihood, loss.correct)
