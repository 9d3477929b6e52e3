from pathlib import Path
from typing import Literal

import pytest

from regard.config.sources import TableConfig
from tests.data.readers.formats import read_all, read_until_error


def write_table(tmp_path: Path, content: str) -> str:
    path = tmp_path / "a.tsv"
    path.write_bytes(content.encode())
    return str(path)


def test_quotation_marks_are_text_between_tabs(tmp_path: Path) -> None:
    path = write_table(tmp_path, '"one\t"two"\n3"\t""\n')
    examples, _ = read_all(TableConfig(path=path, target=2))
    assert [(example.source, example.target) for example in examples] == [('"one', '"two"'), ('3"', '""')]


def test_columns_by_name_and_number(tmp_path: Path) -> None:
    path = write_table(tmp_path, "id\ttext\tclass\n7\tgood film\t1\n")
    for source in (
        TableConfig(path=path, header=True, source="text", label="class"),
        TableConfig(path=path, header=True, source=2, label=3),
    ):
        (example,), _ = read_all(source)
        assert (example.source, example.target, example.label, example.location.line) == ("good film", None, "1", 2)


@pytest.mark.parametrize(
    ("content", "source", "line", "message"),
    [
        ("a\tb\nc\n", {}, 2, "The row has 1 column, the first row has 2."),
        ("a\tb\nc\td\te\n", {}, 2, "The row has 3 columns, the first row has 2."),
        ("a\tb\n", {"target": 3}, 1, "There is no column 3"),
        ("a\tb\n", {"source": 0}, 1, "There is no column 0"),
        ("a\tb\n", {"source": "a"}, 1, "the table has no header"),
        ("a\tb\n", {"header": True, "source": "c"}, 1, "The header has 0 columns named 'c'"),
        ("a\ta\n", {"header": True, "source": "a"}, 1, "The header has 2 columns named 'a'"),
    ],
)
def test_what_does_not_fit_is_refused(
    content: str, source: dict[str, int | str], line: int, message: str, tmp_path: Path
) -> None:
    path = write_table(tmp_path, content)
    _, error = read_until_error(TableConfig.model_validate({"path": path, "target": 2, **source}))
    assert message in error.message
    assert error.location == f"{path}:{line}"


@pytest.mark.parametrize("delimiter", ["tab", "comma"])
def test_an_empty_line_of_a_single_column_is_an_empty_text(delimiter: Literal["tab", "comma"], tmp_path: Path) -> None:
    examples, defects = read_all(TableConfig(path=write_table(tmp_path, "a\n\nb\n"), delimiter=delimiter))
    assert [example.source for example in examples] == ["a", "", "b"]
    assert defects.counts == {"empty text": 1}


def test_csv_fields_with_line_breaks_keep_them_and_the_lines_of_rows(tmp_path: Path) -> None:
    content = 'en,de\r\n"one\r\ntwo\n","eins\n\nzwei"\r\nthree,"dr""ei"\nfour,vier\n'
    path = write_table(tmp_path, content)
    examples, defects = read_all(TableConfig(path=path, delimiter="comma", header=True, source="en", target="de"))
    assert [(example.source, example.target, example.location.line) for example in examples] == [
        ("one\r\ntwo\n", "eins\n\nzwei", 2),
        ("three", 'dr"ei', 7),
        ("four", "vier", 8),
    ]
    assert defects.counts["CRLF line end, CR removed"] == 2
    assert str(defects.first_location["line break inside a text"]) == f"{path}:2"


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ('a,b\n"c,d\ne,f\n', 2),  # never closed
        ('a,b\n"c"d,e\n', 2),  # text after the closing quotation mark
        ('a,b\nc\rd,"e"\n', 2),  # a carriage return outside quotation marks
    ],
)
def test_broken_csv_is_refused(content: str, line: int, tmp_path: Path) -> None:
    path = write_table(tmp_path, content)
    rows_read, error = read_until_error(TableConfig(path=path, delimiter="comma", target=2))
    assert rows_read == [("a", "b")]
    assert error.location == f"{path}:{line}"
