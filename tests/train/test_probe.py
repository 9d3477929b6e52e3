"""The look at the device: what it finds is told and written down."""

from pathlib import Path
from typing import Any

from regard.config.run import Run
from regard.store.run_folder import RunFolder
from regard.train.corpora import Corpora, corpora
from regard.train.events import Event, Said
from regard.train.fit import _resolved
from regard.train.probe import probed
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
    assert found.device.logit_rows == 0  # of so few words
    told = heard[-1]
    assert isinstance(told, Said)
    assert "An update takes about" in told.text
    assert probed(found, read, heard.append) is found  # nothing is left to ask
    assert heard[-1] is told
