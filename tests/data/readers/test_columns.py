"""The columns of a table are chosen by their content; a table that leaves a choice is refused with its columns."""

from pathlib import Path

import pytest

from regard.base.errors import RegardError
from regard.config.sources import JsonlConfig, LinesConfig, TableConfig
from regard.data.example import Defects
from regard.data.readers import read
from regard.data.readers.columns import parse_columns
from regard.data.readers.detect import detect_source
from tests.data.readers.tables import ROWS, make

PAIR = ("Tom has {} dogs and a cat, I think.", "Tom hat {} Hunde und eine Katze; glaube ich.")
ATTRIBUTION = "CC-BY 2.0 (France) Attribution: tatoeba.org #{} (CK) & #{} (Esperantostern)"


def identify(number: int) -> str:
    return str(7919 * (number + 1) % 100_003)


TABLES = {
    # name: (file name, content, the expected columns or None if the table is refused)
    "moses pair in one table": ("a.tsv", make(*PAIR), TableConfig(path="", target=2)),
    "tatoeba export": ("a.tsv", make(identify, PAIR[0], identify, PAIR[1]), TableConfig(path="", source=2, target=4)),
    "tatoeba detailed": (
        "a.tsv",
        make(identify, "eng", PAIR[0], identify, "deu", PAIR[1]),
        TableConfig(path="", source=3, target=6, languages=("en", "de")),
    ),
    "manythings": ("deu.txt", make(*PAIR, ATTRIBUTION), TableConfig(path="", target=2)),
    "id first": ("a.tsv", make("{}", *PAIR), TableConfig(path="", source=2, target=3)),
    "name as id": ("a.tsv", make("news-2019.{}", *PAIR), TableConfig(path="", source=2, target=3)),
    "score last": ("a.tsv", make(*PAIR, lambda n: f"0.{n * 37 % 100:02}"), TableConfig(path="", target=2)),
    "score first": ("a.tsv", make(lambda n: f"1.{n}e-05", *PAIR), TableConfig(path="", source=2, target=3)),
    "links": ("a.tsv", make("https://a.org/{}", "www.b.de/x?{}", *PAIR), TableConfig(path="", source=3, target=4)),
    "languages": ("a.tsv", make("en", "de", *PAIR), TableConfig(path="", source=3, target=4, languages=("en", "de"))),
    "date and corpus": ("a.tsv", make("2024-05-{}", "news", *PAIR), TableConfig(path="", source=3, target=4)),
    "empty column": ("a.tsv", make(PAIR[0], "", PAIR[1]), TableConfig(path="", source=1, target=3)),
    "commas": (
        "a.csv",
        make('"Hi, {}"', '"Hallo, {}"', separator=","),
        TableConfig(path="", delimiter="comma", target=2),
    ),
    "semicolons": (
        "a.csv",
        make('"Hi; {}"', "Na, {}", separator=";"),
        TableConfig(path="", delimiter="semicolon", target=2),
    ),
    "semicolons of a spreadsheet": (
        "a.csv",
        make("Hi, {}", "Na, {}", separator=";", header=("en", "de")),
        TableConfig(path="", delimiter="semicolon", header=True, source="en", target="de", languages=("en", "de")),
    ),
    "tabs in .csv": ("a.csv", make(*PAIR), TableConfig(path="", target=2)),
    "spaces for tabs": (
        "a.tsv",
        make("Hi {}", "Na du {}", separator="    "),
        TableConfig(path="", delimiter="spaces", target=2),
    ),
    "unknown names above numbers": (
        "a.tsv",
        make(identify, *PAIR, header=("no.", "left", "right")),
        TableConfig(path="", header=True, source=2, target=3),
    ),
    "languages among names": (
        "a.tsv",
        make(identify, *PAIR, header=("id", "English", "German")),
        TableConfig(path="", header=True, source="English", target="German", languages=("en", "de")),
    ),
    "labels": ("a.tsv", make("film {}", lambda n: ("pos", "neg")[n % 2]), TableConfig(path="", label=2)),
    "labels with ids": (
        "a.tsv",
        make(identify, "film {}", lambda n: str(n % 5)),
        TableConfig(path="", source=2, label=3),
    ),
    "words in pairs": ("a.tsv", make("w{}rd", "a b{}"), None),
    "one column": ("a.tsv", make(lambda n: f"Hello {n}" + ", you; all" * (n % 3)), TableConfig(path="")),
    "text without columns": ("a.txt", make(PAIR[0]), LinesConfig(source="")),
    "digits as targets": ("a.tsv", make(PAIR[0], identify), None),
    "ids and text": ("a.tsv", make(identify, PAIR[0]), None),
    "three texts": ("a.tsv", make(*PAIR, "Tom a {} chiens et un chat, je crois."), None),
    "two labels": ("a.tsv", make("film {}", lambda n: str(n % 2), lambda n: "ab"[n % 2]), None),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_table_columns_are_chosen_by_content_or_refused(name: str, tmp_path: Path) -> None:
    file_name, content, expected = TABLES[name]
    path = tmp_path / file_name
    for text in (content, "\ufeff" + content.replace("\n", "\r\n")):  # as Windows writes it
        path.write_bytes(text.encode())
        if expected is None:
            with pytest.raises(RegardError, match="It is not clear which columns to read") as refused:
                detect_source([str(path)])
            assert "--columns 2,4" in str(refused.value.hint)
        else:
            field = "source" if isinstance(expected, LinesConfig) else "path"
            source = detect_source([str(path)])
            assert source == expected.model_copy(update={field: str(path)})
            assert len(list(read(source, Defects()))) == ROWS


def test_ambiguous_table_error_lists_what_each_column_holds(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text(make(identify, PAIR[0], "https://a.org/{}"))
    with pytest.raises(RegardError) as refused:
        detect_source([str(path)])
    assert refused.value.message == (
        "It is not clear which columns to read: 1 of its columns holds text. "
        "Columns: 1 numbers ('7919'); 2 text ('Tom has 0 dogs and a cat'); 3 links ('https://a.org/0')."
    )


def test_columns_option_overrides_the_choice(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(make(*PAIR, identify, separator=";", header=("x", "y", "z")).replace("; ", " "))
    chosen = detect_source([str(path)], "y,x")
    assert chosen == TableConfig(path=str(path), delimiter="semicolon", header=True, source="y", target="x")
    assert detect_source([str(path)], "2") == TableConfig(path=str(path), delimiter="semicolon", source=2)
    assert detect_source([str(path)], "1,label=3") == TableConfig(
        path=str(path), delimiter="semicolon", source=1, label=3
    )
    assert detect_source(["a.jsonl"], "q,a") == JsonlConfig(path="a.jsonl", source="q", target="a")
    for wrong in ("", "1,", "1,2,3,4", "a=1", "label=2"):
        with pytest.raises(RegardError, match="does not name columns"):
            parse_columns(wrong)
    with pytest.raises(RegardError, match="one table, not two files"):
        detect_source(["a.en", "a.de"], "1,2")
