"""The look at the device: what it finds is told and written down."""

from pathlib import Path
from typing import Any

from regard.config.run import Run
from regard.store.run_folder import RunFolder
from regard.train.corpora import RunData, prepare_data
from regard.train.events import Event, Message
from regard.train.fit import _resolve
from regard.train.probe import autotune
from tests.train.runs import make_small_run, write_corpus

UNTUNED = {"device.attention": None, "device.logit_rows": None, "train.precision": "bfloat16"}


def prepare_run(folder: Path, changes: dict[str, Any]) -> tuple[Run, RunData]:
    run = make_small_run("translate", write_corpus(folder / "corpus"), changes)
    run_folder = RunFolder(folder / "run")
    run_folder.path.mkdir()
    run_data = prepare_data(run, run_folder, lambda _: None)
    return _resolve(run, run_data), run_data


def test_tuned_settings_are_reported_and_set(tmp_path: Path) -> None:
    events: list[Event] = []
    run, run_data = prepare_run(tmp_path, UNTUNED)
    tuned_run = autotune(run, run_data, events.append)
    assert tuned_run.device.attention in ("float32", "autocast")
    assert tuned_run.device.logit_rows == 0  # of so few words
    message = events[-1]
    assert isinstance(message, Message)
    assert "An update takes about" in message.text
    assert autotune(tuned_run, run_data, events.append) is tuned_run  # nothing is left to ask
    assert events[-1] is message
