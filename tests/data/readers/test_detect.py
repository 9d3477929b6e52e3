"""The format of a file, detected from its content."""

from pathlib import Path

import pytest

from regard.base.errors import RegardError
from regard.config.sources import LinesConfig, TableConfig
from regard.data.readers.detect import detect_source
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
