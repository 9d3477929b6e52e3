"""A model that is timed: it takes the fastest way, and leaves no trace."""

from functools import partial
from pathlib import Path

import pytest
import torch

from regard.config.codec import RUN_FILES
from regard.config.run import Run
from regard.config.tables import to_dict
from regard.nn.attention import Attention
from regard.nn.stack import Stack
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
    assert run.accumulate == 2
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


QUICK = {"attention": "compute", "threads": 1, "loss_rows": 256}


@pytest.mark.parametrize("words", [900, 2000])
def test_the_quickest_ways_are_found_and_set(words: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_ = {f"device.{name}": None for name in QUICK}
    run, read = ready(tmp_path, open_ | {"train.precision": "bfloat16"})
    trial = trial_of(RUN_FILES().parse(to_dict(run), {"model.source.vocabulary": words}), read)
    tried: list[tuple[bool, int, int]] = []

    def seconds() -> float:
        kept = {module.should_upcast for module in trial.model.modules() if isinstance(module, Attention)}
        tried.append((kept == {True}, torch.get_num_threads(), trial._objective.rows))
        in_float32, threads, rows = tried[-1]
        return 1.0 + in_float32 + (threads > 1) + (rows != 256)

    monkeypatch.setattr(trial, "seconds", seconds)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert trial.settle() == QUICK | ({"loss_rows": 0} if words < 1000 else {})
        assert len(tried) == 3 * (2 + 2 + (3 if words > 1000 else 0))
        seconds()
        assert tried[-1] == (False, 1, 0 if words < 1000 else 256)
    finally:
        torch.set_num_threads(before)


def test_slow_models_are_asked_less(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trial, used = trial_of(*ready(tmp_path, {})), list[str]()
    ways = {name: partial(used.append, name) for name in ("first", "second")}
    for took, rounds in ((0.1, 3), (5.0, 2), (11.0, 0)):
        used.clear()
        trial._took = took
        monkeypatch.setattr(trial, "seconds", lambda: 1.0)
        assert trial.fastest(ways) == "first"
        assert len(used) == 2 * rounds + 1  # the last time, to set what was chosen


def test_slow_batches_are_tried_in_part_and_still_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, read = ready(tmp_path, {})
    batch = typical_batch(run, read)
    whole = batch.labels.size(0)
    monkeypatch.setattr(Trial, "_timed", lambda self, _: 12.0 * self._batch.labels.size(0) / whole)
    trial, used = Trial(run, batch, longest=2.0), list[str]()
    assert trial._batch.labels.size(0) <= whole / 3
    assert trial.seconds() == pytest.approx(12.0)
    trial.fastest({name: partial(used.append, name) for name in ("first", "second")})
    assert len(used) == 2 * 3 + 1  # all rounds: a part is quick


def test_what_does_not_fit_is_never_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, read = ready(tmp_path, {})
    batch = typical_batch(run, read)
    whole, tried = batch.labels.size(0), list[int]()

    def slow_and_short_of_memory(self: Trial, _: object) -> float:
        tried.append(self._batch.labels.size(0))
        if tried[-1] > whole / 4:
            raise torch.OutOfMemoryError("no more")
        return 1.0

    monkeypatch.setattr(Trial, "_timed", slow_and_short_of_memory)
    Trial(run, batch, longest=3.0).seconds()  # 4 s and more for the whole: half of it would take long enough
    assert max(tried[tried.index(min(tried)) :]) <= whole / 4


def test_layers_that_compute_twice_are_timed_so(tmp_path: Path) -> None:
    for recompute in (False, True):
        run, read = ready(tmp_path / str(recompute), {"train.recompute": recompute})
        stacks = [module for module in trial_of(run, read).model.modules() if isinstance(module, Stack)]
        assert {stack.checkpoint_activations for stack in stacks} == {recompute}
