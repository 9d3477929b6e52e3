"""Runs that start from options: checks and events."""

import signal
import sys
from pathlib import Path

import pytest

import regard
from regard.base.errors import RegardError
from regard.config import codec
from regard.training.api import start
from regard.training.events import Event, Finished, Planned, Stage, Started, StepFinished
from regard.training.options import TrainOptions

TINY = {
    "device.threads": 1,
    "device.logit_rows": 0,
    "device.attention": "autocast",
    "model.d_model": 16,
    "model.encoder.layers": 1,
    "model.decoder.layers": 1,
    "tokenizer.vocabulary": 300,
    "train.average": 1,
    "validation.sentences": 4,
}


@pytest.mark.usefixtures("corpus")
def test_run_starts_and_resumes_without_output(capsys: pytest.CaptureFixture[str]) -> None:
    events: list[Event] = []

    def interrupt(event: Event) -> None:
        if isinstance(event, StepFinished):
            signal.raise_signal(signal.SIGINT)  # as Ctrl-C

    listeners = [events.append, interrupt]
    options = TrainOptions.from_arguments(
        {"source": "a.en", "target": Path("a.de"), "out": "new", "steps": 2, "seed": 7, "settings": TINY}
    )
    finished = start(options, listeners)
    assert (finished.reason, finished.step, finished.folder) == ("stop requested", 1, Path("new"))
    kinds = [type(event) for event in events]
    assert kinds.index(Stage) < kinds.index(Planned) < kinds.index(Started) < kinds.index(StepFinished)
    assert kinds[-1] is Finished
    log = Path("new/log.txt").read_text(encoding="utf-8")
    assert "200 pairs of" in log
    assert "step 1/2" in log
    run = codec.RUN_FILES.load(Path("new/run.toml"))
    assert (run.seed, run.train.steps, run.model.d_model) == (7, 2, 16)
    assert start(TrainOptions(resume=Path("new"), more=1)).step == 3
    assert capsys.readouterr() == ("", "")  # only listeners show something


@pytest.mark.usefixtures("corpus")
def test_a_missing_device_is_reported_before_the_corpus_is_read() -> None:
    events: list[Event] = []
    for device in ("nonsense", "cuda:77"):
        with pytest.raises(RegardError, match=f"no device '{device}' on this machine"):
            regard.train("a.en", "a.de", out="new", settings={"device.name": device}, listeners=[events.append])
    assert events == []
    assert not Path("new").exists()


@pytest.mark.usefixtures("corpus")
def test_a_missing_tracker_is_reported_before_the_corpus_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)  # as if it were not installed
    events: list[Event] = []
    for name, message in (("x", "no tracker 'x'"), ("wandb", "needs the package 'wandb'")):
        with pytest.raises(RegardError, match=message):
            regard.train("a.en", "a.de", out="new", track=[name], settings=TINY, listeners=[events.append])
    assert events == []
    assert not Path("new").exists()


@pytest.mark.usefixtures("corpus")
def test_a_number_of_steps_replaces_the_minutes_of_a_run_file() -> None:
    regard.train("a.en", "a.de", out="first", steps=1, settings=TINY)
    run = codec.RUN_FILES.load(Path("first/run.toml"))
    timed = run.model_copy(update={"train": run.train.model_copy(update={"minutes": 5.0, "max_steps": 9})})
    codec.RUN_FILES.save(timed, Path("timed.toml"))
    options = TrainOptions(run=Path("timed.toml"), out=Path("second"), steps=3)
    read = options.read_run()
    assert read is not None
    assert (read.train.steps, read.train.minutes, read.train.max_steps) == (3, None, None)
    unchanged = TrainOptions(run=Path("timed.toml"), out=Path("second")).read_run()
    assert unchanged is not None
    assert (unchanged.train.minutes, unchanged.train.max_steps) == (5.0, 9)
