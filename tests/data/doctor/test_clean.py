"""The cleaned corpus: with the quarantine it is exactly the input, it stays aligned, and it is never incomplete."""

import gzip
import json
import lzma
from collections.abc import Iterator
from pathlib import Path

import pytest

from regard.base.errors import RegardError
from regard.base.files import verify
from regard.config.sources import AnySourceConfig, ConllConfig, DocumentsConfig, JsonlConfig, LinesConfig, TableConfig
from regard.data.doctor import check_corpus
from regard.data.doctor.clean import CleanResult, write_cleaned
from regard.data.example import CorpusError, Defects, Example
from regard.data.readers import read
from regard.data.readers.text_files import QUARANTINE_FILE

ENGLISH = [b"one line", b"", b"three &amp; lines", b"four \x00 lines", b"one line", b"f\xc3\x83\xc2\xbcr six", b"seven"]
GERMAN = [b"eine Zeile", b"zwei", b"drei Zeilen", b"vier Zeilen", b"eine Zeile", b"sechs Zeilen", b"sieben"]
KEPT_ROWS = [0, 2, 6]


class RereadableSource:
    """A source that can be read again."""

    def __init__(self, source: AnySourceConfig) -> None:
        self.source = source

    def __iter__(self) -> Iterator[Example]:
        return read(self.source, Defects())


def clean_corpus(source: AnySourceConfig, folder: Path) -> CleanResult:
    corpus = RereadableSource(source)
    return write_cleaned(check_corpus(corpus), [source], corpus, folder)


def read_quarantine(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / QUARANTINE_FILE).read_bytes().split(b"\n")[:-1]]


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".zst"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_clean_and_quarantine_together_are_the_input(tmp_path: Path, suffix: str, end: bytes) -> None:
    if suffix == ".zst":
        pytest.importorskip("zstandard")
    paths = [tmp_path / f"train.{name}{suffix}" for name in ("en", "de")]
    for path, lines in zip(paths, (ENGLISH, GERMAN), strict=True):
        path.write_bytes(compress(end.join(lines) + end, suffix))
    result = clean_corpus(LinesConfig(source=str(paths[0]), target=str(paths[1])), tmp_path / "out")
    assert (result.kept_rows, result.removed_rows) == (3, 4)
    for path, lines in zip(paths, (ENGLISH, GERMAN), strict=True):
        content = decompress((tmp_path / "out" / path.name).read_bytes(), suffix)
        assert content == b"".join(lines[row] + end for row in KEPT_ROWS)
    removed = read_quarantine(tmp_path / "out")
    assert [row["location"] for row in removed] == [f"{paths[0]}:{line}" for line in (2, 4, 5, 6)]
    assert [list(row["reasons"]) for row in removed] == [["empty"], ["control-character"], ["duplicate"], ["mojibake"]]  # type: ignore[call-overload]
    texts = {str(row["location"]).rsplit(":", 1)[1]: (row["source"], row["target"]) for row in removed}
    kept = {str(row + 1): (ENGLISH[row].decode(), GERMAN[row].decode()) for row in KEPT_ROWS}
    everything = {str(row + 1): (ENGLISH[row].decode(), GERMAN[row].decode()) for row in range(7)}
    assert texts | kept == everything
    assert not texts.keys() & kept.keys()
    verify(tmp_path / "out")


def test_a_last_line_without_newline_stays_without(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"one\none\ntwo")
    clean_corpus(LinesConfig(source=str(tmp_path / "a.txt")), tmp_path / "out")
    assert (tmp_path / "out" / "a.txt").read_bytes() == b"one\ntwo"


def test_tables_keep_their_header_and_rows_of_several_lines(tmp_path: Path) -> None:
    duplicate = b'fish,Fisch,"again\nand again"\n'
    table = b'source,target,note\nfish,Fisch,"a, ""b"""\n"two\nlines","zwei\nZeilen",x\n' + duplicate + b"end,Ende,z\n"
    (tmp_path / "a.csv").write_bytes(table)
    source = TableConfig(path=str(tmp_path / "a.csv"), delimiter="comma", header=True, source="source", target="target")
    result = clean_corpus(source, tmp_path / "out")
    assert (result.kept_rows, result.removed_rows) == (3, 1)
    assert (tmp_path / "out" / "a.csv").read_bytes() == table.replace(duplicate, b"")


def test_jsonl_keeps_its_other_fields(tmp_path: Path) -> None:
    lines = [b'{"source": "one", "id": 1}\n', b'{"source": " ", "id": 2}\n', b"\n", b'{"id": 3, "source": "two"}\n']
    (tmp_path / "a.jsonl").write_bytes(b"".join(lines))
    clean_corpus(JsonlConfig(path=str(tmp_path / "a.jsonl")), tmp_path / "out")
    assert (tmp_path / "out" / "a.jsonl").read_bytes() == lines[0] + lines[3]
    assert read_quarantine(tmp_path / "out")[0]["location"] == f"{tmp_path / 'a.jsonl'}:2"


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
def test_conll_keeps_tags_comments_and_columns(tmp_path: Path, suffix: str) -> None:
    sentences = ["# id = 1\n1\tdogs\tNOUN\n2\trun\tVERB\n\n", "# id = 2\n1\tcats\tNOUN\n2\tsleep\tVERB\n\n"]
    repeated, last = "# id = 3\n1\tdogs\tNOUN\n2\trun\tVERB\n\n", "# id = 4\n1\tbirds\tNOUN\n2\tsing\tVERB\n"
    if suffix == ".zst":
        pytest.importorskip("zstandard")
    name = f"a.conllu{suffix}"
    (tmp_path / name).write_bytes(compress("".join([*sentences, repeated, last]).encode(), suffix))
    result = clean_corpus(ConllConfig(path=str(tmp_path / name), word=2, tag=3), tmp_path / "out")
    assert (result.kept_rows, result.removed_rows) == (3, 1)
    assert decompress((tmp_path / "out" / name).read_bytes(), suffix).decode() == "".join([*sentences, last])
    assert read_quarantine(tmp_path / "out")[0]["tags"] == ["NOUN", "VERB"]


@pytest.mark.parametrize("path", ["books", "./books", "books/", "{}/books"])
def test_documents_are_written_as_jsonl(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "books"
    folder.mkdir()
    for name, text in (("a", "one\ntwo"), ("b", "one\ntwo"), ("c", "three")):
        (folder / f"{name}.txt").write_text(text)
    result = clean_corpus(DocumentsConfig(path=path.format(tmp_path)), tmp_path / "out")
    assert (result.kept_rows, result.removed_rows) == (2, 1)
    kept = [json.loads(line)["source"] for line in (tmp_path / "out" / "books.jsonl").read_text().split("\n")[:-1]]
    assert sorted([*kept, str(read_quarantine(tmp_path / "out")[0]["source"])]) == sorted(
        ["one\ntwo", "one\ntwo", "three"]
    )


def test_folders_of_aligned_files(tmp_path: Path) -> None:
    for side, lines in (("en", ENGLISH), ("de", GERMAN)):
        (tmp_path / side).mkdir()
        (tmp_path / side / f"x.{side}").write_bytes(b"\n".join(lines[:4]) + b"\n")
        (tmp_path / side / f"y.{side}").write_bytes(b"\n".join(lines[4:]) + b"\n")
    clean_corpus(LinesConfig(source=str(tmp_path / "en"), target=str(tmp_path / "de")), tmp_path / "out")
    assert (tmp_path / "out" / "x.de").read_bytes() == b"eine Zeile\ndrei Zeilen\n"
    assert (tmp_path / "out" / "y.en").read_bytes() == b"seven\n"


def test_files_of_the_same_name_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    for name in ("en", "de"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.txt").write_bytes(b"one\ntwo\n")
    source = LinesConfig(source=str(tmp_path / "en" / "train.txt"), target=str(tmp_path / "de" / "train.txt"))
    with pytest.raises(RegardError, match=r"Two files would be called 'train\.txt'"):
        clean_corpus(source, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_incomplete_corpus_is_not_written(tmp_path: Path) -> None:
    (tmp_path / "a.en").write_bytes(b"one\ntwo\nthree\n")
    (tmp_path / "a.de").write_bytes(b"eins\nzwei\n")
    with pytest.raises(CorpusError, match="not aligned"):
        clean_corpus(LinesConfig(source=str(tmp_path / "a.en"), target=str(tmp_path / "a.de")), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_folder_that_exists_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"one\n")
    (tmp_path / "out").mkdir()
    with pytest.raises(RegardError, match="already exists"):
        clean_corpus(LinesConfig(source=str(tmp_path / "a.txt")), tmp_path / "out")


def compress(content: bytes, suffix: str) -> bytes:
    match suffix:
        case ".gz":
            return gzip.compress(content)
        case ".xz":
            return lzma.compress(content)
        case ".zst":
            import zstandard

            return bytes(zstandard.compress(content))
    return content


def decompress(content: bytes, suffix: str) -> bytes:
    match suffix:
        case ".gz":
            return gzip.decompress(content)
        case ".xz":
            return lzma.decompress(content)
        case ".zst":
            import zstandard

            return bytes(zstandard.ZstdDecompressor().decompressobj().decompress(content))
    return content
