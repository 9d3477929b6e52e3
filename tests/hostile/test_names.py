"""File names in a manifest must mean one file in this folder on every operating system."""

from pathlib import Path

import pytest

from regard.base.errors import DamagedError
from regard.base.files import verify, write_manifest

GOOD = ["model.toml", "deep/weights-1.bin", "größe 2.txt", "console.txt", "null", "a..b", ".hidden", "com.txt"]
BAD = [
    "NUL",
    "aux.txt",
    "deep/con",
    "COM1",
    "lpt9.log",
    "C:evil",
    "up\\down",
    "what?",
    "dot.",
    "space ",
    "tab\t",
    "\u202e",
]


@pytest.mark.parametrize("name", GOOD)
def test_valid_names_are_accepted(name: str, tmp_path: Path) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("there")
    write_manifest(tmp_path)
    verify(tmp_path)


@pytest.mark.parametrize("name", BAD)
def test_invalid_names_are_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("there")
    write_manifest(tmp_path)
    with pytest.raises(DamagedError, match="is not a file of this folder") as raised:
        verify(tmp_path)
    assert str(raised.value).replace("\n", "").isprintable()
