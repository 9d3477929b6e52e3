"""Likely mistakes are answered with what is wrong, where, and what to do; never with a traceback."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest

from regard.cli import main
from tests.cli.mistakes import MISTAKES, make_folder
from tests.commands import run_command

MIN_MISTAKES = 60


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mistakes")
    make_folder(folder)
    return folder


@pytest.mark.parametrize(("command", "code", "name"), MISTAKES, ids=[command for command, *_ in MISTAKES])
def test_a_mistake_is_answered(
    folder: Path, monkeypatch: pytest.MonkeyPatch, command: str, code: int, name: str
) -> None:
    monkeypatch.chdir(folder)
    for missing in ("lingua", "wandb"):
        monkeypatch.setitem(sys.modules, missing, None)
    before = sorted(folder.iterdir())
    done = run_command(*shlex.split(command))
    assert done.code == code, done.output + done.errors
    message, *rest = done.errors.splitlines()
    assert name in done.errors  # what is wrong, or where
    assert message.strip()
    assert any(line.startswith("  fix:   ") for line in rest), done.errors  # what to do
    shutil.rmtree("m", ignore_errors=True)
    assert sorted(folder.iterdir()) == before


def test_there_are_enough_of_them() -> None:
    assert len({command for command, *_ in MISTAKES}) >= MIN_MISTAKES


@pytest.mark.parametrize("arguments", ["trian --out m", "train --sorce a --out m", "train --source nowhere --out m"])
def test_a_real_process_prints_no_traceback(tmp_path: Path, arguments: str) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "regard", *arguments.split()]
    done = subprocess.run(  # noqa: S603
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "\n  fix:   " in done.stderr


@pytest.mark.parametrize("is_late", [False, True])
def test_ctrl_c_before_or_after_a_command_exits_without_traceback(is_late: bool) -> None:
    def interrupt(**_: object) -> int:
        signal.raise_signal(signal.SIGINT)
        return 0

    previous = signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs start with SIGINT ignored
    try:
        command = mock.patch("regard.cli.app.app", return_value=75, side_effect=None if is_late else interrupt)
        with command, pytest.raises(SystemExit) as caught:
            main()
        signal.raise_signal(signal.SIGINT)  # while the interpreter exits
    finally:
        signal.signal(signal.SIGINT, previous)
    assert caught.value.code == (75 if is_late else 130)
