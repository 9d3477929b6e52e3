from pathlib import Path

import pytest

from regard.config.sources import LinesConfig
from tests.data.readers.formats import read_all, read_until_error


def test_pairs_carry_languages_and_locations(tmp_path: Path) -> None:
    (tmp_path / "a.en").write_text("one\ntwo\n")
    (tmp_path / "a.de").write_text("eins\nzwei\n")
    source = LinesConfig(source=f"{tmp_path}/a.en", target=f"{tmp_path}/a.de", languages=("en", "de"))
    examples, defects = read_all(source)
    assert [(example.source, example.target) for example in examples] == [("one", "eins"), ("two", "zwei")]
    assert (str(examples[1].location), examples[1].languages) == (f"{tmp_path}/a.en:2", ("en", "de"))
    assert not defects.counts


def test_blocks_that_end_at_other_lines_stay_aligned(tmp_path: Path) -> None:
    """Long lines on one side, short ones on the other, and more than one block on both."""
    short, long = [f"{i}" for i in range(60_000)], [f"{i} {'lang ' * 12}" for i in range(60_000)]
    (tmp_path / "a.en").write_text("".join(f"{line}\n" for line in short))
    (tmp_path / "a.de").write_text("".join(f"{line}\n" for line in long))
    examples, _ = read_all(LinesConfig(source=f"{tmp_path}/a.en", target=f"{tmp_path}/a.de"))
    assert [example.source for example in examples] == short
    assert [example.target for example in examples] == long
    assert [example.location.line for example in examples] == list(range(1, 60_001))


def test_defects_of_both_sides_are_named_with_their_own_file(tmp_path: Path) -> None:
    (tmp_path / "a.en").write_bytes(b"one\n\nthree\n")
    (tmp_path / "a.de").write_bytes(b"eins\nzw\x0cei\ndrei")
    _, defects = read_all(LinesConfig(source=f"{tmp_path}/a.en", target=f"{tmp_path}/a.de"))
    assert {kind: str(location) for kind, location in defects.first_location.items()} == {
        "empty line": f"{tmp_path}/a.en:2",
        "form feed": f"{tmp_path}/a.de:2",
        "missing last newline": f"{tmp_path}/a.de:3",
    }


@pytest.mark.parametrize("empty", ["en", "de"])
def test_an_empty_file_is_not_aligned_with_a_longer_one(empty: str, tmp_path: Path) -> None:
    for language in ("en", "de"):
        (tmp_path / f"a.{language}").write_text("" if language == empty else "a\nb\n")
    rows_read, error = read_until_error(LinesConfig(source=f"{tmp_path}/a.en", target=f"{tmp_path}/a.de"))
    assert rows_read == []
    assert error.location == f"{tmp_path}/a.{empty}:1"


def test_folders_are_aligned_by_the_names_of_their_files(tmp_path: Path) -> None:
    for language in ("en", "de"):
        (tmp_path / language).mkdir()
        for part in ("1", "2"):
            (tmp_path / language / f"part{part}.{language}").write_text(f"{language} {part}\n")
    source = LinesConfig(source=f"{tmp_path}/en", target=f"{tmp_path}/de")
    examples, _ = read_all(source)
    assert [(example.source, example.target) for example in examples] == [("en 1", "de 1"), ("en 2", "de 2")]
    (tmp_path / "de" / "part2.de").rename(tmp_path / "de" / "part3.de")
    assert "'part2' has no counterpart" in read_until_error(source)[1].message
    for path in ("x/news.en", "x/news.test.en", "y/news.zh", "y/news.test.zh", "y/sub/news.zh"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(f"{path}\n")
    source = LinesConfig(source=f"{tmp_path}/./x", target=f"{tmp_path}/y/")
    assert "'sub/news' has no counterpart" in read_until_error(source)[1].message
    (tmp_path / "y" / "sub" / "news.zh").unlink()
    pairs = [(example.source, example.target) for example in read_all(source)[0]]
    assert pairs == [("x/news.en", "y/news.zh"), ("x/news.test.en", "y/news.test.zh")]


def test_files_that_differ_after_the_last_dot_alone_are_not_lost(tmp_path: Path) -> None:
    for language in ("en", "de"):
        (tmp_path / language).mkdir()
        for part in ("00", "01", "02"):
            (tmp_path / language / f"train.{part}").write_text(f"{language} {part}\n")
    source = LinesConfig(source=f"{tmp_path}/en", target=f"{tmp_path}/de")
    examples, _ = read_all(source)
    assert [(example.source, example.target) for example in examples] == [
        (f"en {n}", f"de {n}") for n in ("00", "01", "02")
    ]
    (tmp_path / "de" / "train.02").rename(tmp_path / "de" / "train.03")
    assert "'train.00' and 'train.01' differ only in the suffix" in read_until_error(source)[1].message
