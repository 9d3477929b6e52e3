"""Twenty defects x every reader: each is read exactly and counted, or refused, with file and line."""

import gzip
import lzma
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from regard.config.sources import LinesConfig
from regard.data.corpus import Corpus
from regard.data.example import CorpusError, Defects
from regard.data.readers import read
from tests.data.readers.formats import BY_NAME, FORMATS, Format, read_all, read_until_error, to_rows

TEXT_FORMATS = [form for form in FORMATS if form.name not in ("parquet", "mo")]  # those made of lines of UTF-8
LINE_FORMATS = [BY_NAME[name] for name in ("lines", "pairs", "tsv", "csv", "quoted", "json", "escaped")]

# Characters inside a text. They never end a line: the texts come back with them, and they are counted.
CHARACTERS = {
    "U+2028": ("\u2028", "line separator U+2028"),
    "U+2029": ("\u2029", "paragraph separator U+2029"),
    "U+0085": ("\x85", "next line U+0085"),
    "vertical tab": ("\x0b", "vertical tab"),
    "form feed": ("\x0c", "form feed"),
    "NUL": ("\0", "NUL character"),
    "U+001C": ("\x1c", "file separator U+001C"),
    "U+001E": ("\x1e", "record separator U+001E"),
    "BOM in the middle": ("\ufeff", "byte order mark inside a text"),
    "lone CR": ("\r", "carriage return inside a text"),
    "bidi override": ("\u202e", "bidirectional control"),
    "bidi isolate": ("\u2066", "bidirectional control"),
}
CONTROLS = {"\0", "\x0b", "\x0c", "\x1c", "\x1e"}
# Where the format itself forbids a character, it is refused; the line is then the one that holds it.
FORBIDDEN = {
    "json": CONTROLS | {"\r"},  # JSON wants them escaped
    "tmx": CONTROLS,  # XML has no such characters
}


@pytest.mark.parametrize("name", CHARACTERS)
@pytest.mark.parametrize("form", FORMATS, ids=str)
def test_odd_characters_never_split_a_text(form: Format, name: str, tmp_path: Path) -> None:
    character, kind = CHARACTERS[name]
    rows = [("first", "erste"), (f"be{character}fore", f"vor{character}her"), ("last", "letzte")]
    if form.name == "mo" and character == "\0":
        pytest.skip("NUL ends a text in MO files: there is no way to write one")
    path = form.write(tmp_path, rows)
    location = f"{path}:{form.line_of_row(1)}"
    if character in FORBIDDEN.get(form.name, ()):
        assert read_until_error(form.source(str(path)))[1].location == location
        return
    examples, defects = read_all(form.source(str(path)))
    if form.name == "tmx" and character == "\r":  # XML reads a carriage return as a line break
        character, kind = "\n", "carriage return, which XML reads as a line break"
        rows[1] = ("be\nfore", "vor\nher")
    assert to_rows(examples) == form.expected_rows(rows)
    lines_of_xml = 2 if form.name == "tmx" and character == "\n" else 0  # which counts carriage returns as line ends
    assert [example.location.line for example in examples] == [
        form.line_of_row(0),
        form.line_of_row(1),
        form.line_of_row(2) + lines_of_xml,
    ]
    assert str(defects.first_location[kind]) == location
    assert defects.counts[kind] == (1 if form.is_single or form.name == "conll" else 2)


@pytest.mark.parametrize("form", TEXT_FORMATS, ids=str)
def test_a_byte_order_mark_at_the_start_is_removed(form: Format, tmp_path: Path) -> None:
    rows = [("first", "erste"), ("last", "letzte")]
    path = form.write(tmp_path, rows)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    examples, defects = read_all(form.source(str(path)))
    assert to_rows(examples) == form.expected_rows(rows)
    if form.name != "tmx":  # in XML it is part of the format
        assert str(defects.first_location["byte order mark at the start, removed"]) == f"{path}:1"


@pytest.mark.parametrize("form", TEXT_FORMATS, ids=str)
def test_crlf_is_a_line_end_in_every_format(form: Format, tmp_path: Path) -> None:
    rows = [("first", "erste"), ("last", "letzte")]
    path = form.write(tmp_path, rows)
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    examples, defects = read_all(form.source(str(path)))
    assert to_rows(examples) == form.expected_rows(rows)
    kind = "carriage return, which XML reads as a line break" if form.name == "tmx" else "CRLF line end, CR removed"
    assert defects.counts[kind] == path.read_bytes().count(b"\r")
    assert str(defects.first_location[kind]) == f"{path}:1"


@pytest.mark.parametrize("form", [form for form in FORMATS if form.name != "parquet"], ids=str)
def test_bytes_that_are_not_utf8_are_refused(form: Format, tmp_path: Path) -> None:
    rows = [("first", "erste"), ("be#fore", "vor#her"), ("last", "letzte")]
    path = form.write(tmp_path, rows)
    path.write_bytes(path.read_bytes().replace(b"e#f", b"e\xfff"))
    rows_read, error = read_until_error(form.source(str(path)))
    assert error.location == f"{path}:{form.line_of_row(1)}"
    assert rows_read == form.expected_rows(rows)[: len(rows_read)]
    if form in LINE_FORMATS:
        byte = path.read_bytes().split(b"\n")[1].index(b"\xff") + 1
        assert error.message == f"Not UTF-8: 0xff, byte {byte} of the line."


@pytest.mark.parametrize("form", TEXT_FORMATS, ids=str)
def test_a_missing_last_newline_loses_nothing(form: Format, tmp_path: Path) -> None:
    rows = [("first", "erste"), ("last", "letzte")]
    path = form.write(tmp_path, rows)
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    examples, defects = read_all(form.source(str(path)))
    assert to_rows(examples) == form.expected_rows(rows)
    if form.name != "tmx":  # XML ends with its outermost element
        last = path.read_bytes().count(b"\n") + 1
        assert str(defects.first_location["missing last newline"]) == f"{path}:{last}"


@pytest.mark.parametrize(
    ("name", "kind", "kept"),
    [
        ("lines", "empty line", ["first", "", "last"]),
        ("pairs", "empty line", ["first", "", "last"]),
        ("tsv", "blank line left out", ["first", "last"]),
        ("csv", "blank line left out", ["first", "last"]),
        ("quoted", "blank line left out", ["first", "last"]),
        ("json", "blank line left out", ["first", "last"]),
    ],
)
def test_empty_lines_are_kept_where_lines_are_aligned_and_counted(
    name: str, kind: str, kept: list[str], tmp_path: Path
) -> None:
    form = BY_NAME[name]
    path = form.write(tmp_path, [("first", "erste"), ("#", "#"), ("last", "letzte")])
    path.write_bytes(re.sub(rb"(?m)^.*#.*$", b"", path.read_bytes()))
    examples, defects = read_all(form.source(str(path)))
    assert [example.source for example in examples] == kept
    assert examples[-1].target in ("letzte", None)
    assert examples[-1].location.line == 3
    assert (defects.counts[kind], str(defects.first_location[kind])) == (1, f"{path}:2")


@pytest.mark.parametrize("form", [BY_NAME[name] for name in ("tsv", "quoted", "json", "parquet", "tmx")], ids=str)
def test_empty_texts_are_examples_and_counted(form: Format, tmp_path: Path) -> None:
    rows = [("first", "erste"), ("", "leer"), ("last", "letzte")]
    path = form.write(tmp_path, rows)
    examples, defects = read_all(form.source(str(path)))
    assert [(example.source, example.target) for example in examples] == rows
    assert (defects.counts["empty text"], str(defects.first_location["empty text"])) == (
        1,
        f"{path}:{form.line_of_row(1)}",
    )


@pytest.mark.parametrize("short", ["en", "de"])
@pytest.mark.parametrize("newline", [True, False])
def test_a_file_that_is_a_line_short_is_refused(short: str, newline: bool, tmp_path: Path) -> None:
    for language in ("en", "de"):
        count = 4 if language == short else 5
        text = "".join(f"{language} {i}\n" for i in range(count))
        (tmp_path / f"a.{language}").write_text(text if newline else text[:-1])
    english, german = str(tmp_path / "a.en"), str(tmp_path / "a.de")
    rows_read, error = read_until_error(LinesConfig(source=english, target=german))
    assert rows_read == [(f"en {i}", f"de {i}") for i in range(4)]
    counts = (4, 5) if short == "en" else (5, 4)
    assert f"{english} has {counts[0]} lines, {german} has {counts[1]}" in error.message
    assert f"Line 5 of {tmp_path}/a.{'de' if short == 'en' else 'en'} has no counterpart" in error.message
    assert error.location == f"{tmp_path}/a.{short}:5"


@pytest.mark.parametrize("form", FORMATS, ids=str)
def test_a_line_of_a_megabyte_and_a_word_of_ten_thousand_letters_are_texts(form: Format, tmp_path: Path) -> None:
    long = "x" * 10_000
    if form.name != "conll":
        long += " word" * 200_000
    rows = [("first", "erste"), (long, f"{long}!"), ("last", "letzte")]
    examples, _ = read_all(form.source(str(form.write(tmp_path, rows))))
    assert to_rows(examples) == form.expected_rows(rows)


@pytest.mark.parametrize("form", LINE_FORMATS, ids=str)
def test_lines_are_counted_as_wc_does(form: Format, tmp_path: Path) -> None:
    forbidden = FORBIDDEN.get(form.name, set())
    odd = [character for character, _ in CHARACTERS.values() if character not in forbidden]
    rows = [(f"{index} {character}x", f"{character}y") for index, character in enumerate(odd * 3)]
    path = form.write(tmp_path, rows)
    for newline in (True, False):
        content = path.read_bytes() if newline else path.read_bytes().removesuffix(b"\n")
        path.write_bytes(content)
        examples, _ = read_all(form.source(str(path)))
        assert len(examples) == content.count(b"\n") + (not newline)
        assert to_rows(examples) == form.expected_rows(rows)


COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.ZstdCompressor().compress,
}
MANY_ROWS = [(f"line {i} {i * 7919 % 10007}", f"Zeile {i} {i * 7907 % 10009}") for i in range(1000)]


def compress(path: Path, suffix: str) -> Path:
    compressed = path.with_name(f"{path.name}{suffix}")
    compressed.write_bytes(COMPRESSORS[suffix](path.read_bytes()))
    return compressed


@pytest.mark.parametrize("suffix", COMPRESSORS)
@pytest.mark.parametrize("form", [form for form in FORMATS if form.name not in ("parquet", "pairs")], ids=str)
def test_compressed_files_are_read_and_truncated_ones_refused(form: Format, suffix: str, tmp_path: Path) -> None:
    rows = [(text.replace(" ", "-"), target.replace(" ", "-")) for text, target in MANY_ROWS]
    path = compress(form.write(tmp_path, rows), suffix)
    assert to_rows(read_all(form.source(str(path)))[0]) == form.expected_rows(rows)
    content = path.read_bytes()
    for keep in (len(content) - 1, len(content) // 2, 10, 0):
        path.write_bytes(content[:keep])
        rows_read, error = read_until_error(form.source(str(path)))
        assert rows_read == form.expected_rows(rows)[: len(rows_read)]
        assert re.fullmatch(re.escape(str(path)) + r":[0-9]+", error.location or "")
        if form in LINE_FORMATS or form.name == "lines":
            assert error.location == f"{path}:{len(rows_read) + 1}"
            assert f"The last complete line is {len(rows_read)}." in error.message


@pytest.mark.parametrize("form", [form for form in FORMATS if form.name != "pairs"], ids=str)
def test_damaged_bytes_are_refused_or_read_as_they_are(form: Format, tmp_path: Path) -> None:
    """A compressed file with a flipped bit never yields different text silently."""
    path = form.write(tmp_path, MANY_ROWS[:50])
    path = path if form.name == "parquet" else compress(path, ".gz")
    content = path.read_bytes()
    if form.name == "parquet":  # it has no checksums by default, but its end must be whole
        for keep in (len(content) - 1, len(content) // 2, 0):
            path.write_bytes(content[:keep])
            with pytest.raises(CorpusError, match=r"parquet:[0-9]+"):
                read_all(form.source(str(path)))
        return
    for at in range(10, len(content), max(1, len(content) // 25)):
        path.write_bytes(content[:at] + bytes([content[at] ^ 16]) + content[at + 1 :])
        with pytest.raises(CorpusError, match=re.escape(str(path))):
            read_all(form.source(str(path)))


@pytest.mark.parametrize("form", FORMATS, ids=str)
def test_a_file_that_changed_between_runs_is_noticed(form: Format, tmp_path: Path) -> None:
    path = form.write(tmp_path, [("first", "erste"), ("last", "letzte")])
    corpus = Corpus([form.source(str(path))])
    earlier_infos = corpus.hash_files()
    corpus.check_unchanged(earlier_infos)
    form.write(tmp_path, [("first", "erste"), ("lost", "letzte")])  # as many bytes
    with pytest.raises(CorpusError, match=re.escape(f"{path} has different content")) as changed:
        corpus.check_unchanged(earlier_infos)
    assert changed.value.location == str(path)
    form.write(tmp_path, [("first", "erste"), ("last", "letzte")])
    assert corpus.hash_files() == earlier_infos


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"one\ntwo\n")
    examples = read(LinesConfig(source=str(path)), Defects())
    assert next(examples).source == "one"
    with path.open("ab") as file:
        file.write(b"three\n")
    with pytest.raises(CorpusError, match="changed while it was read"):
        list(examples)
