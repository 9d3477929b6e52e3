"""A model that is timed: it takes the fastest way, and leaves no trace."""

from functools import partial
from pathlib import Path

import pytest
import torch

from regard.config.run import Run
from regard.train.corpora import Corpora
from regard.train.probe import typical_batch
from regard.train.trial import Trial
from tests.train.test_probe import ready


def trial_of(run: Run, read: Corpora) -> Trial:
    return Trial(run, typical_batch(run, read))


@pytest.mark.parametrize("optimizer", ["adam", "muon"])
def test_an_update_is_its_batches_and_one_step(optimizer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, read = ready(tmp_path, {"train.optimizer": {"kind": optimizer}})
    trial = trial_of(run, read)
    before = {name: tensor.clone() for name, tensor in trial.model.state_dict().items()}
    clock = iter(range(100))
    monkeypatch.setattr("regard.train.trial.time.perf_counter", lambda: float(next(clock)))
    assert run.together == 2
    assert trial.update_seconds() == 3.0  # each of them a tick
    assert all(torch.equal(tensor, before[name]) for name, tensor in trial.model.state_dict().items())
    assert all(parameter.grad is None for parameter in trial.model.parameters())


def test_a_batch_that_memory_does_not_hold_is_probed_in_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, read = ready(tmp_path, {})
    whole = trial_of(run, read)._whole.labels.size(0)
    assert whole >= 4
    tried: list[int] = []
    learn = Trial._learn

    def short_of_memory(self: Trial) -> None:
        tried.append(self._batch.labels.size(0))
        if tried[-1] > whole / 2:
            raise torch.OutOfMemoryError("no more")
        learn(self)

    monkeypatch.setattr(Trial, "_learn", short_of_memory)
    assert trial_of(run, read).seconds() > 0
    assert tried[0] == whole
    assert tried[-1] <= whole / 2


def test_another_fault_of_the_device_is_not_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, read = ready(tmp_path, {})

    def broken(_: Trial) -> None:
        raise RuntimeError("another fault")

    monkeypatch.setattr(Trial, "_learn", broken)
    with pytest.raises(RuntimeError, match="another fault"):
        trial_of(run, read)


def test_another_way_must_be_clearly_faster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trial, used = trial_of(*ready(tmp_path, {})), list[str]()
    times = {"first": 1.0, "second": 0.5, "third": 0.8}
    monkeypatch.setattr(trial, "seconds", lambda: times[used[-1]])
    ways = {name: partial(used.append, name) for name in times}
    assert (trial.fastest(ways), used[-1]) == ("second", "second")
    times.update(second=0.98, third=0.99)
    assert (trial.fastest(ways), used[-1]) == ("first", "first")
