from pathlib import Path

import pytest

from regard.config.sources import DocumentsConfig
from regard.data.readers import documents as module
from tests.data.readers.formats import read_all, read_until_error


def test_a_file_is_a_document_with_all_its_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"\none\n\ntwo\n\n")
    (example,), _ = read_all(DocumentsConfig(path=str(path), languages=("en",)))
    assert (example.source, str(example.location), example.languages) == ("\none\n\ntwo\n", f"{path}:1", ("en",))


def test_separators_are_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("---\none\n--- not\n---\n---\ntwo\n---\n")
    examples, defects = read_all(DocumentsConfig(path=str(path), separator="---"))
    assert [(example.source, example.location.line) for example in examples] == [("one\n--- not", 2), ("two", 6)]
    assert str(defects) == f"empty document left out: 1, first at {path}:5"


def test_empty_lines_can_separate(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one\nstill one\n\ntwo")
    examples, _ = read_all(DocumentsConfig(path=str(path), separator=""))
    assert [example.source for example in examples] == ["one\nstill one", "two"]


def test_folders_never_join_files(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("two")
    (tmp_path / "a.txt").write_text("one")
    examples, _ = read_all(DocumentsConfig(path=str(tmp_path), separator="---"))
    assert [(example.source, Path(example.location.file).name) for example in examples] == [
        ("one", "a.txt"),
        ("two", "b.txt"),
    ]


def test_a_document_that_would_fill_the_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_LINE_BYTES", 100)
    path = tmp_path / "a.txt"
    path.write_text("short\n---\n" + "line\n" * 30)
    rows_read, error = read_until_error(DocumentsConfig(path=str(path), separator="---"))
    assert rows_read == [("short", "")]
    assert error.location == f"{path}:3"
