"""`regard.train`, `regard.tune` and `regard.resume`: arguments, and the progress that they show."""

import inspect
import os
import pty
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import regard
from regard._api import train
from regard.base.errors import RegardError
from regard.config.codec import RUN_FILES
from regard.tasks.evaluation.options import EvaluationOptions
from regard.training.events import Message
from regard.training.options import TrainOptions
from tests.cli.notebooks import open_notebook
from tests.training.runs import make_small_run, write_corpus

LAST_LINE = "finished, at step 2"


@pytest.fixture
def run_file(tmp_path: Path) -> Path:
    """A run of two steps."""
    changes = {"train.steps": 2, "train.average": 1, "validation.samples": 0, "validation.sentences": 0}
    RUN_FILES.save(make_small_run("causal_lm", write_corpus(tmp_path / "corpus"), changes), tmp_path / "run.toml")
    return tmp_path / "run.toml"


def test_every_option_of_the_command_is_an_argument() -> None:
    arguments = {
        *inspect.signature(regard.train).parameters,
        *(set(inspect.signature(regard.resume).parameters) - {"folder"} | {"resume"}),
        *(set(inspect.signature(regard.tune).parameters) - {"model"} | {"parent"}),
    }
    functions = {"listeners", "loss", "metrics"}
    assert arguments - functions - {"ranks", "progress"} == {field.name for field in fields(TrainOptions)} - {
        "dry_run",
        "profile",
    }
    assert inspect.signature(regard.train) == inspect.signature(train)
    assert "minutes: Time from the call" in (inspect.getdoc(regard.train) or "")  # shown by `help(regard.train)`


def test_every_option_of_evaluate_is_an_argument_with_the_same_default() -> None:
    parameters = dict(inspect.signature(regard.evaluate).parameters)
    assert parameters.pop("progress").default is True
    assert {name: parameter.default for name, parameter in parameters.items()} == {
        field.name: field.default for field in fields(EvaluationOptions)
    }


def test_every_argument_is_documented() -> None:
    for function in (regard.train, regard.tune, regard.resume, regard.evaluate):
        documented = (inspect.getdoc(function) or "").split("Args:")[1].split("Returns:")[0]
        for name in inspect.signature(function).parameters:
            assert f" {name}:" in documented or f" {name}," in documented, name


def test_train_with_an_impossible_export_is_refused_before_training(run_file: Path, tmp_path: Path) -> None:
    settings = {"export": ["ctranslate2"], "model.decoder.window": 4}
    with pytest.raises(RegardError, match=r"ctranslate2, which cannot represent the model: decoder\.window"):
        regard.train(run=run_file, out=tmp_path / "new", settings=settings, progress=False)
    assert not (tmp_path / "new").exists()


def test_progress_without_a_terminal_is_log_lines_on_stderr(
    run_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    regard.train(run=run_file, out=tmp_path / "new", force=True)
    output, errors = capsys.readouterr()
    assert output == ""
    assert LAST_LINE in errors.splitlines()[-1]
    assert "  step 1/2  epoch 1  loss " in errors
    assert "\x1b" not in errors
    regard.resume(tmp_path / "new", more=1)
    assert "resuming after step 2" in capsys.readouterr().err


def test_no_progress_is_shown_if_it_is_off(run_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    regard.train(run=run_file, out=tmp_path / "new", force=True, progress=False)
    regard.resume(tmp_path / "new", more=1, progress=False)
    assert capsys.readouterr() == ("", "")


def test_only_rank_zero_of_a_launcher_shows_progress(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        "regard._api.start", lambda _, listeners, **__: [listen(Message("hello")) for listen in listeners]
    )
    for rank, is_shown in (("0", True), ("1", False)):
        monkeypatch.setenv("RANK", rank)
        monkeypatch.setenv("WORLD_SIZE", "2")
        regard.resume(tmp_path)
        assert ("hello" in capsys.readouterr().err) == is_shown


@contextmanager
def open_terminal() -> Iterator[tuple[Any, Callable[[], str]]]:
    """Open a pseudoterminal of 80 columns; yields its file and a function that returns what was written."""
    reader, writer = pty.openpty()
    chunks: list[bytes] = []

    def read() -> None:
        try:
            while chunk := os.read(reader, 4096):
                chunks.append(chunk)
        except OSError:  # the other end was closed
            pass

    thread = threading.Thread(target=read)
    thread.start()
    file = os.fdopen(writer, "w", encoding="utf-8")

    def close_and_read() -> str:
        file.close()
        thread.join()
        return b"".join(chunks).decode()

    try:
        yield file, close_and_read
    finally:
        close_and_read()
        os.close(reader)


def test_progress_on_a_terminal_is_live(
    run_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "80")
    with open_terminal() as (file, close_and_read), monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", file)
        regard.train(run=run_file, out=tmp_path / "new", force=True)
        text = close_and_read()
    assert "\x1b[?25l" in text, "the cursor is hidden while the display is live"
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l"), "and shown again"
    assert LAST_LINE in text
    assert "starting: " in text
    assert "  step 1/2" not in text, "no log lines"
    assert capsys.readouterr().out == "", "standard output belongs to the program"


def test_progress_in_a_notebook_updates_one_output(
    run_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = open_notebook(monkeypatch)
    regard.train(run=run_file, out=tmp_path / "new", force=True)
    assert capsys.readouterr() == ("", "")
    assert "2/2 100%" in shown[-1]
    assert any(line.startswith("loss ") for line in shown[-1].splitlines())
    assert LAST_LINE in shown[-1]
    assert "\x1b" not in shown[-1]
