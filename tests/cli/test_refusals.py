"""A path that cannot be read or written is refused before slow imports and before the work starts."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands import run_command

WRONG_PATHS = (
    "translate nowhere Hello",
    "translate {folder} --input nowhere",
    "evaluate nowhere --source {file} --reference {file}",
    "evaluate {folder} --source nowhere --reference {file}",
    "look nowhere Hello",
    "blame nowhere Hello --word word",
    "predict nowhere Hello",
    "predict {folder} --input nowhere",
    "generate nowhere Hello",
    "embed nowhere Hello",
    "embed nowhere Hello --neighbors",
    "evaluate nowhere Hello --score",
    "export nowhere --to huggingface",
    "import nowhere --out new",
    "serve nowhere",
    "check nowhere",
    "plan nowhere",
    "tune nowhere {file} --out new",
    "train nowhere --out new",
)
WRONG_OUTPUTS = (
    "translate {folder} Hello --output {folder}",
    "translate {folder} Hello --output nowhere/file",
    "evaluate {folder} --source {file} --reference {file} --output nowhere/file",
    "embed {folder} Hello --output nowhere/file",
    "predict {folder} Hello --output nowhere/file",
    "look {folder} Hello --save nowhere/file.html",
    "check {file} --report nowhere/file.html",
    "export {folder} --to huggingface --out {file}/new",
    "import {folder} --out {file}/new",
    "generate {folder} --out {file}/new",
)


def fill_in(command: str, folder: Path) -> list[str]:
    """Return the arguments with the folder of a model and a file in it."""
    (folder / "model.toml").touch()
    return [part.format(folder=folder, file=folder / "model.toml") for part in command.split()]


def test_wrong_paths_are_refused_without_importing_torch(tmp_path: Path) -> None:
    # One process for all: what one command imported stays imported, so the last line covers every command.
    lines = [fill_in(command, tmp_path) for command in WRONG_PATHS]
    script = (
        "import sys\nfrom regard.cli import main\n"
        f"for arguments in {lines!r}:\n"
        "    sys.argv = ['regard', *arguments]\n"
        "    try:\n        main()\n"
        "    except SystemExit as end:\n"
        "        print(end.code, 'torch' in sys.modules, *arguments)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=tmp_path)  # noqa: S603
    assert [line.split()[:2] for line in done.stdout.splitlines()] == [["1", "False"]] * len(WRONG_PATHS), done.stdout
    assert done.stderr.count("where: nowhere") == len(WRONG_PATHS), done.stderr


@pytest.mark.parametrize("command", WRONG_OUTPUTS)
def test_output_that_cannot_be_written_is_refused_before_the_model_is_read(tmp_path: Path, command: str) -> None:
    done = run_command(*fill_in(command, tmp_path))  # model.toml is empty: reading it would be another error
    assert done.code == 1
    assert "cannot be " in done.errors, done.errors
