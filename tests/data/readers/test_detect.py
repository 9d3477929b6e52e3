"""The format of a file, detected from its content."""

from pathlib import Path

import pytest

from regard.base.errors import RegardError
from regard.config.sources import DocumentsConfig, LinesConfig, TableConfig
from regard.data.example import Defects
from regard.data.readers import read
from regard.data.readers.detect import detect_documents, detect_source
from regard.training.options import TrainOptions
from tests.data.readers.tables import ROWS, make


def test_semicolon_table_with_a_wrong_quote_is_refused_at_its_line(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(make('"Hi, {}"', '"Na, {}"', separator=";", header=("en", "de")) + '""Hi" again";"Na"\n')
    with pytest.raises(RegardError, match="';' expected") as refused:
        detect_source([str(path)])
    assert refused.value.location == f"{path}:{ROWS + 2}"


def test_table_with_a_line_of_two_million_characters_is_detected(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(make('"Hi, {}"', "Hallo {}", separator=",") + '"' + "word, " * 333_334 + '",Wort\n')
    assert detect_source([str(path)]) == TableConfig(path=str(path), delimiter="comma", target=2)


def test_lines_with_tabs_between_blank_lines_are_no_table(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("The\tDET\ndog\tNOUN\n\n" * 10)
    assert detect_source([str(tmp_path / "words.txt")]) == LinesConfig(source=str(tmp_path / "words.txt"))


@pytest.mark.parametrize(
    ("part", "separator", "expected"),
    [
        ("A story of two lines.\n" * 40, "", ""),
        ("A story of two lines.\n" * 40, "  ", "  "),
        ("A short one.\n", "<|endoftext|>", "<|endoftext|>"),
        ("First Citizen:\nSpeak, speak.\n", "", None),
        ("A chapter without blank lines.\n" * 40, "Next", None),
    ],
)
def test_documents_are_separated_by_marks_or_blank_lines(
    tmp_path: Path, part: str, separator: str, expected: str | None
) -> None:
    path = tmp_path / "a.txt"
    path.write_text(f"{separator}\n".join([part] * 12))
    assert detect_documents(str(path)).separator == expected
    assert TrainOptions(text=[str(path)]).sources == [DocumentsConfig(path=str(path), separator=expected)]
    if expected is not None:
        assert len(list(read(detect_documents(str(path)), Defects()))) == 12


def test_documents_of_a_missing_file_are_reported_by_the_reader(tmp_path: Path) -> None:
    assert detect_documents(str(tmp_path / "none.txt")).separator is None
