import gzip
import lzma
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import regard.data.readers.text_files
from regard.base.errors import RegardError
from regard.base.extras import import_optional
from regard.config.sources import DocumentsConfig, JsonlConfig, LinesConfig
from regard.data.example import CorpusError, Defects
from regard.data.readers.text_files import iter_lines, list_files
from tests.data.readers.formats import FORMATS, Format, read_all, read_until_error, to_rows


@pytest.fixture
def memory() -> Iterator[Any]:
    """A file system behind URLs, without a network."""
    fsspec = import_optional("fsspec", "formats", "Opening a URL")
    system = fsspec.filesystem("memory")
    yield system
    system.store.clear()


@pytest.mark.parametrize("form", FORMATS, ids=str)
def test_urls_are_read_like_files(form: Format, tmp_path: Path, memory: Any) -> None:
    rows = [("first", "erste"), ("last", "letzte")]
    path = form.write(tmp_path, rows)
    for file in tmp_path.iterdir():
        memory.pipe(f"/corpus/{file.name}", file.read_bytes())
    examples, _ = read_all(form.source(f"memory://corpus/{path.name}"))
    assert to_rows(examples) == form.expected_rows(rows)
    assert str(examples[0].location) == f"memory://corpus/{path.name}:{form.line_of_row(0)}"


def test_urls_are_decompressed_and_remote_folders_read_in_order(memory: Any) -> None:
    memory.pipe("/texts/b.txt.gz", gzip.compress(b"two\n"))
    memory.pipe("/texts/a.txt", b"one\n")
    memory.pipe("/texts/c/d.txt.xz", lzma.compress(b"three\n"))
    examples, _ = read_all(DocumentsConfig(path="memory://texts"))
    assert [example.source for example in examples] == ["one", "two", "three"]


def test_missing_files_and_unknown_urls_are_named(tmp_path: Path) -> None:
    missing = [str(tmp_path / "no.txt"), "memory://no/such.txt", "nosuchsystem://a.txt"]
    for path in missing:
        assert read_until_error(LinesConfig(source=path))[1].location == path
    (tmp_path / "empty").mkdir()
    with pytest.raises(CorpusError, match="has no files"):
        read_all(DocumentsConfig(path=str(tmp_path / "empty")))


class BrokenError(Exception):
    """An error of a network library, which is not an OSError."""


def test_network_errors_are_reported(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    memory.pipe("/a.txt", b"one\n")

    def forbidden(*_: Any, **__: Any) -> Any:
        raise FileNotFoundError("a.txt") from BrokenError("403, Forbidden")

    def broken(*_: Any, **__: Any) -> Any:
        raise BrokenError("received 4 of 1000 bytes")

    system, source = type(memory), LinesConfig(source="memory://a.txt")
    for owner, name, fault, message in (
        (system, "open", forbidden, "cannot be opened: 403, Forbidden"),
        (system, "open", broken, "cannot be read: received 4 of 1000 bytes"),
        (type(memory.store["/a.txt"]), "read", broken, "cannot be read: received 4 of 1000 bytes"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, fault, raising=False)
            with pytest.raises(CorpusError, match=message) as error:
                read_all(source)
            assert error.value.location == "memory://a.txt"


def test_folders_are_read_in_the_order_of_names_and_hidden_files_are_counted(tmp_path: Path) -> None:
    for name in ("b/2.txt", "a.txt", "b/10.txt", "b-c.txt", ".hidden.txt", "b/.git/config"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{name}\n")
    (tmp_path / "b" / "round").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "gone.txt").symlink_to(tmp_path / "nothing")
    defects = Defects()
    paths = [str(Path(file).relative_to(tmp_path)) for file in list_files(str(tmp_path), defects)]
    assert paths == ["a.txt", "b/10.txt", "b/2.txt", "b-c.txt"]
    assert defects.counts["hidden file left out"] == 2
    assert defects.counts["link left out"] == 2


def test_the_manifest_and_quarantine_of_a_cleaned_corpus_are_not_read(tmp_path: Path) -> None:
    for name in ("clean/book.txt", "clean/manifest.json", "clean/quarantine.jsonl", "other/quarantine.jsonl"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("text\n")
    defects = Defects()
    paths = [str(Path(file).relative_to(tmp_path)) for file in list_files(str(tmp_path), defects)]
    assert paths == [
        "clean/book.txt",
        "other/quarantine.jsonl",
    ]  # no manifest beside the last
    assert defects.counts["manifest or quarantine left out"] == 2


def test_a_folder_of_any_format_is_one_source(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        (tmp_path / f"{number}.jsonl").write_text(f'{{"source": "{number}"}}\n')
    examples, _ = read_all(JsonlConfig(path=str(tmp_path)))
    assert [str(example.location) for example in examples] == [f"{tmp_path}/{number}.jsonl:1" for number in (1, 2, 3)]


def test_concatenated_compressed_streams_are_one_text(tmp_path: Path) -> None:
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(b"one\ntw") + gzip.compress(b"") + gzip.compress(b"o\nthree\n") + b"\0" * 512)
    examples, defects = read_all(LinesConfig(source=str(path)))
    assert [example.source for example in examples] == ["one", "two", "three"]
    assert not defects.counts


def test_empty_files_have_no_lines_and_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"")
    defects = Defects()
    assert list(iter_lines(str(path), defects)) == []
    assert str(defects) == f"empty file: 1, first at {path}:1"


def test_utf16_is_reported_as_utf16(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("text\n".encode("utf-16"))
    _, error = read_until_error(LinesConfig(source=str(path)))
    assert error.location == f"{path}:1"
    assert "UTF-16" in (error.hint or "")


def test_an_endless_line_does_not_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regard.data.readers.text_files, "MAX_LINE_BYTES", 1 << 21)
    path = tmp_path / "a.txt"
    path.write_bytes(b"one\n" + b"x" * (1 << 22))
    _, error = read_until_error(LinesConfig(source=str(path)))
    assert error.location == f"{path}:2"


def test_a_missing_package_names_its_extra() -> None:
    with pytest.raises(RegardError, match=r"pip install .*\[formats\]"):
        import_optional("no_such_package", "formats", "Reading Parquet")
