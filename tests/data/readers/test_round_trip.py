"""Readers return exactly what a reference writer wrote, for any text and any chunk boundaries.

HYPOTHESIS_PROFILE=long python -m pytest tests/data/readers/test_round_trip.py   # 4,000 cases per property
"""

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import regard.data.readers.text_files
from regard.config.sources import ConllConfig, DocumentsConfig, LinesConfig, TableConfig
from tests.data.readers.formats import BY_NAME, SEPARATOR, Row, encode_jsonl, read_all, to_rows

TRICKY_CHARACTERS = "\r\x85\u2028\u2029\x0b\x0c\x1c\x1d\x1e\0\ufeff\"',\\# \t\n\u00a0éß漢😀"
XML_CONTROLS = "".join(map(chr, range(32))).translate({9: None, 10: None, 13: None}) + "\ufffe\uffff"
SEPARATOR_MARK = "\ue000"
FEWER = settings(max_examples=settings().max_examples * 2 // 5)  # each case writes and reads a file


def text_lists(forbidden: str = "", *, is_line: bool = False, is_full: bool = False) -> st.SearchStrategy[list[str]]:
    """Lists of texts of any characters, biased to difficult ones; one sampled text is split, which is fast.

    Args:
        forbidden: Characters that the format cannot hold.
        is_line: Each text fits on a line: no newline, and no carriage return at the end.
        is_full: No text is empty.
    """
    forbidden += "\n" * is_line

    def cut(text: str) -> list[str]:
        parts = (
            text.split(SEPARATOR_MARK) if SEPARATOR_MARK in text else [text[i : i + 5] for i in range(0, len(text), 5)]
        )
        parts = [part.rstrip("\r") if is_line else part for part in parts]
        return [part for part in parts if part or not is_full]

    tricky = "".join(character for character in TRICKY_CHARACTERS if character not in forbidden)
    any_character = st.characters(exclude_categories=["Cs"], exclude_characters=forbidden)
    return (st.text(tricky + SEPARATOR_MARK, max_size=30) | st.text(any_character, max_size=30)).map(cut)


def row_lists(texts: st.SearchStrategy[list[str]]) -> st.SearchStrategy[list[Row]]:
    """Pairs; the first text has no leading byte order mark, because readers remove it."""

    def pair(texts: list[str]) -> list[Row]:
        texts = [text.lstrip("\ufeff") or "x" for text in texts[:2]] + texts[2:]
        return list(zip(texts[::2], texts[1::2], strict=False))

    return texts.map(pair)


CASES = {
    "pairs": row_lists(text_lists(is_line=True)),
    "tsv": row_lists(text_lists("\t", is_line=True)),
    "quoted": row_lists(text_lists()),
    "escaped": row_lists(text_lists()),
    "parquet": row_lists(text_lists()),
    "tmx": row_lists(text_lists(XML_CONTROLS)),
    "po": row_lists(text_lists(is_full=True)),
    "mo": row_lists(text_lists("\0\x04", is_full=True)),
}


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are read a few bytes at a time, so that chunks end inside characters, line ends and quotes."""
    monkeypatch.setattr(regard.data.readers.text_files, "READ_BYTES", 7)


@pytest.mark.parametrize("name", CASES)
@FEWER
@given(data=st.data())
def test_every_format_round_trips(name: str, tmp_path: Path, data: st.DataObject) -> None:
    form = BY_NAME[name]
    written = data.draw(CASES[name])
    path = form.write(tmp_path, written)
    if name == "tmx":  # a carriage return is written so that XML keeps it
        path.write_bytes(path.read_bytes().replace(b"\r", b"&#13;"))
    examples, _ = read_all(form.source(str(path)))
    assert to_rows(examples) == form.expected_rows(written)


@FEWER
@given(content=st.text("ab\r\n\u2028\x85\ufeff\0é漢", max_size=30))
def test_lines_are_what_newline_bytes_make_them_for_any_file(tmp_path: Path, content: str) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(content.encode())
    *whole, rest = content.removeprefix("\ufeff").split("\n")
    expected = [line.removesuffix("\r") for line in whole] + ([rest] if rest else [])
    examples, _ = read_all(LinesConfig(source=str(path)))
    assert [example.source for example in examples] == expected
    assert [example.location.line for example in examples] == list(range(1, len(expected) + 1))


@FEWER
@given(written=row_lists(text_lists()))
def test_csv_as_spreadsheets_write_it(tmp_path: Path, written: list[Row]) -> None:
    """Quotes only where needed, CRLF line ends."""
    file = io.StringIO(newline="")
    csv.writer(file).writerows(written)
    path = tmp_path / "a.csv"
    path.write_bytes(file.getvalue().encode())
    examples, _ = read_all(TableConfig(path=str(path), delimiter="comma", target=2))
    assert to_rows(examples) == written


@FEWER
@given(written=row_lists(text_lists()))
def test_json_with_unescaped_characters(tmp_path: Path, written: list[Row]) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(encode_jsonl(written))
    examples, _ = read_all(BY_NAME["json"].source(str(path)))
    assert to_rows(examples) == written


@FEWER
@given(words=row_lists(text_lists("\t ", is_line=True, is_full=True)), length=st.integers(1, 3))
def test_tagged_sentences(tmp_path: Path, words: list[Row], length: int) -> None:
    sentences = [words[i : i + length] for i in range(0, len(words), length)]
    path = tmp_path / "a.conll"
    rows = ("".join(f"{word}\t{tag}\n" for word, tag in sentence) + "\n" for sentence in sentences)
    path.write_bytes("".join(rows).encode())
    examples, _ = read_all(ConllConfig(path=str(path)))
    read = [list(zip(example.source.split(" "), example.tags or (), strict=True)) for example in examples]
    assert read == sentences


@FEWER
@given(lines=row_lists(text_lists(is_line=True)), length=st.integers(1, 3))
def test_documents_of_many_lines(tmp_path: Path, lines: list[Row], length: int) -> None:
    documents = [[line for pair in lines[i : i + length] for line in pair] for i in range(0, len(lines), length)]
    path = tmp_path / "a.md"
    text = f"{SEPARATOR}\n".join("".join(f"{line}\n" for line in document) for document in documents)
    path.write_bytes(text.encode())
    examples, _ = read_all(DocumentsConfig(path=str(path), separator=SEPARATOR))
    assert [example.source.split("\n") for example in examples] == documents
