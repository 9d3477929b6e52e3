"""`regard.train` and `regard.resume`: the command's options, checks and events, from Python."""

import inspect
import signal
import sys
from dataclasses import fields
from pathlib import Path
from typing import get_args

import pytest
import torch

import regard
from regard.base.errors import RegardError
from regard.base.formatting import CompactRepr
from regard.config import codec
from regard.training.api import train
from regard.training.distributed.processes import SingleProcess
from regard.training.events import Event, Finished, Message, Planned, Spiked, Stage, Started, Updated, Validated
from regard.training.options import TrainOptions, UsageError
from regard.training.run import _set_threads
from tests.training.runs import make_small_run

TINY = {
    "device.threads": 1,
    "device.logit_rows": 0,
    "device.attention": "autocast",
    "model.width": 16,
    "model.encoder.layers": 1,
    "model.decoder.layers": 1,
    "tokenizer.vocabulary": 300,
    "train.average": 1,
    "validation.sentences": 4,
}


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    lines = [f"{word} {number}" for number in range(40) for word in ("cat", "dog", "tree", "house runs", "old man")]
    Path("a.en").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    Path("a.de").write_text("".join(f"{line.upper()}\n" for line in lines), encoding="utf-8")
    return tmp_path


@pytest.mark.usefixtures("corpus")
def test_train_and_resume_from_python(capsys: pytest.CaptureFixture[str]) -> None:
    events: list[Event] = []

    def interrupt(event: Event) -> None:
        if isinstance(event, Updated):
            signal.raise_signal(signal.SIGINT)  # as Ctrl-C

    finished = regard.train(
        "a.en", Path("a.de"), out="new", updates=2, seed=7, settings=TINY, listeners=[events.append, interrupt]
    )
    assert (finished.reason, finished.update, finished.folder) == ("stop requested", 1, Path("new"))
    kinds = [type(event) for event in events]
    assert kinds.index(Stage) < kinds.index(Planned) < kinds.index(Started) < kinds.index(Updated)
    assert kinds[-1] is Finished
    log = Path("new/log.txt").read_text(encoding="utf-8")
    assert "200 pairs of" in log
    assert "update 1/2" in log
    run = codec.RUN_FILES.load(Path("new/run.toml"))
    assert (run.seed, run.train.updates, run.model.width) == (7, 2, 16)
    assert regard.resume("new", more=1).update == 3
    assert capsys.readouterr() == ("", "")  # quiet: a notebook shows only what its listeners show


def test_every_option_of_the_command_is_an_argument() -> None:
    arguments = {
        *inspect.signature(regard.train).parameters,
        *(set(inspect.signature(regard.resume).parameters) - {"folder"} | {"resume"}),
        *(set(inspect.signature(regard.tune).parameters) - {"model"} | {"parent"}),
    }
    assert arguments - {"listeners", "ranks"} == {field.name for field in fields(TrainOptions)} - {"dry_run"}
    assert inspect.signature(regard.train) == inspect.signature(train)
    assert "minutes: Time from the call" in (inspect.getdoc(regard.train) or "")  # shown by `help(regard.train)`


@pytest.mark.usefixtures("corpus")
def test_errors_spell_options_as_arguments() -> None:
    with pytest.raises(UsageError, match=r"source='a.en' has no target[\s\S]*Add target='FILE'"):
        regard.train("a.en", out="new")
    with pytest.raises(UsageError, match=r"source='a.en', target='a.de' to translate"):
        regard.train(out="new")
    with pytest.raises(UsageError, match="Both minutes and a number of updates"):
        regard.train("a.en", "a.de", out="new", minutes=1, updates=2)
    for languages in (("en",), "de"):
        with pytest.raises(UsageError, match="languages must be two names, got"):
            regard.train("a.en", "a.de", out="new", languages=languages)  # type: ignore[arg-type]
    Path("run.toml").touch()
    with pytest.raises(UsageError, match="Both updates and more"):
        regard.resume(".", updates=2, more=1)
    with pytest.raises(RegardError, match=r"Continue it with regard.resume\('.'\)"):
        regard.train("a.en", "a.de", out=".")
    assert not Path("new").exists()


def test_events_and_their_reprs_are_short() -> None:
    assert all(issubclass(event, CompactRepr) for event in get_args(Event))
    assert (
        repr(Spiked(3, "the loss is 10.5", "skipped")) == "Spiked(update=3, fault='the loss is 10.5', action='skipped')"
    )
    validated = Validated(3, {"loss": 3.4120398}, is_best=True, signatures={"bleu": "tok:13a"})
    assert repr(validated) == "Validated(update=3, scores={'loss': 3.412}, is_best=True)"
    assert repr(Finished(3, "finished", Path("new"))) == "Finished(update=3, reason='finished', folder='new')"


def test_settings_are_paths_or_tables() -> None:
    expected = {"train.clip": 0.5, "train.keep": 2, "seed": 1, "data.seed": 1}
    for settings in ({"train": {"clip": 0.5, "keep": 2}}, {"train.clip": 0.5, "train.keep": 2}):
        assert TrainOptions(settings=settings, seed=1).changes == expected
    assert TrainOptions(settings=["train.clip=0.5", "train.keep=2"], seed=1).changes == expected


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


def test_a_model_to_tune_and_a_run_file_exclude_each_other(tmp_path: Path) -> None:
    options = TrainOptions(run=tmp_path / "run.toml", parent=tmp_path / "model", out=tmp_path / "out")
    with pytest.raises(UsageError, match="cannot be combined with a run file") as caught:
        options.check()
    assert "tuning.parent=" in str(caught.value.fix)


@pytest.mark.usefixtures("corpus")
def test_a_number_of_updates_replaces_the_minutes_of_a_run_file() -> None:
    regard.train("a.en", "a.de", out="first", updates=1, settings=TINY)
    run = codec.RUN_FILES.load(Path("first/run.toml"))
    timed = run.model_copy(update={"train": run.train.model_copy(update={"minutes": 5.0, "max_updates": 9})})
    codec.RUN_FILES.save(timed, Path("timed.toml"))
    options = TrainOptions(run=Path("timed.toml"), out=Path("second"), updates=3)
    read = options.read_run()
    assert read is not None
    assert (read.train.updates, read.train.minutes, read.train.max_updates) == (3, None, None)
    unchanged = TrainOptions(run=Path("timed.toml"), out=Path("second")).read_run()
    assert unchanged is not None
    assert (unchanged.train.minutes, unchanged.train.max_updates) == (5.0, 9)


def test_changes_of_a_resumed_run_reach_the_settings_of_the_process(tmp_path: Path) -> None:
    """The device is needed before the run is loaded."""
    files = {name: name for name in ("all.en", "all.de", "book.txt")}
    codec.RUN_FILES.save(make_small_run("translate", files), tmp_path / "run.toml")
    changed = TrainOptions(resume=tmp_path, settings=["device.name=cuda"])
    assert changed.device_name == "cuda"


def test_a_rank_uses_its_share_of_the_cores() -> None:
    files = {name: name for name in ("all.en", "all.de", "book.txt")}
    run, threads = make_small_run("translate", files, {"device.threads": 4}), torch.get_num_threads()
    messages: list[Event] = []
    try:
        for world_size, expected in ((2, 2), (1, 4)):
            torch.set_num_threads(2)  # as the launcher of two ranks does on four cores
            processes = SingleProcess()
            processes.world_size = world_size
            _set_threads(run, processes, messages.append)
            assert torch.get_num_threads() == expected
    finally:
        torch.set_num_threads(threads)
    assert [message.text for message in messages if isinstance(message, Message)] == [
        "device.threads is 4, but the share of a rank is 2: each rank uses 2."
    ]
