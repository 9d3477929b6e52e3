"""The look at the device: what it finds is written down, and it leaves no trace."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from regard.config.run import Run
from regard.store.run_folder import RunFolder
from regard.train.corpora import Corpora, corpora
from regard.train.events import Event, Said
from regard.train.fit import _resolved
from regard.train.probe import Probe, probed
from tests.train.runs import corpus, small_run

OPEN = {"device.attention": None, "device.loss_rows": None, "train.precision": "bfloat16"}


def ready(folder: Path, changes: dict[str, Any]) -> tuple[Run, Corpora]:
    run = small_run("translate", corpus(folder / "corpus"), changes)
    place = RunFolder(folder / "run")
    place.path.mkdir()
    read = corpora(run, place, lambda _: None)
    return _resolved(run, read), read


def test_what_was_found_is_told_and_set(tmp_path: Path) -> None:
    heard: list[Event] = []
    run, read = ready(tmp_path, OPEN)
    found = probed(run, read, heard.append)
    assert found.device.attention in ("float32", "compute")
    assert found.device.loss_rows == 0  # of so few words
    told = heard[-1]
    assert isinstance(told, Said)
    assert "An update takes about" in told.text
    assert probed(found, read, heard.append) is found  # nothing is left to ask
    assert heard[-1] is told


@pytest.mark.parametrize("optimizer", ["adam", "muon"])
def test_an_update_is_its_batches_and_one_step(optimizer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, read = ready(tmp_path, {"train.optimizer": {"kind": optimizer}})
    probe = Probe(run, read)
    before = {name: tensor.clone() for name, tensor in probe.model.state_dict().items()}
    clock = iter(range(100))
    monkeypatch.setattr("regard.train.probe.time.perf_counter", lambda: float(next(clock)))
    assert run.together == 2
    assert probe.update_seconds(run) == 3.0  # each of them a tick
    assert all(torch.equal(tensor, before[name]) for name, tensor in probe.model.state_dict().items())
    assert all(parameter.grad is None for parameter in probe.model.parameters())


def test_a_batch_that_memory_does_not_hold_is_probed_in_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, read = ready(tmp_path, {})
    whole = Probe(run, read)._whole.labels.size(0)
    assert whole >= 4
    tried: list[int] = []
    learn = Probe._learn

    def short_of_memory(self: Probe) -> None:
        tried.append(self._batch.labels.size(0))
        if tried[-1] > whole / 2:
            raise torch.OutOfMemoryError("no more")
        learn(self)

    monkeypatch.setattr(Probe, "_learn", short_of_memory)
    assert Probe(run, read).seconds() > 0
    assert tried[0] == whole
    assert tried[-1] <= whole / 2


def test_another_fault_of_the_device_is_not_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, read = ready(tmp_path, {})

    def broken(_: Probe) -> None:
        raise RuntimeError("another fault")

    monkeypatch.setattr(Probe, "_learn", broken)
    with pytest.raises(RuntimeError, match="another fault"):
        Probe(run, read)


def test_another_way_must_be_clearly_faster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    probe, used = Probe(*ready(tmp_path, {})), list[str]()
    times = {"first": 1.0, "second": 0.5, "third": 0.8}
    monkeypatch.setattr(probe, "seconds", lambda: times[used[-1]])
    ways = {name: partial(used.append, name) for name in times}
    assert (probe.fastest(ways), used[-1]) == ("second", "second")
    times.update(second=0.98, third=0.99)
    assert (probe.fastest(ways), used[-1]) == ("first", "first")
