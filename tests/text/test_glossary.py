"""Glossaries: which terms occur in a source, and whether a translation has them."""

from pathlib import Path

import pytest

from regard.base.errors import RegardError
from regard.text.glossary import Glossary, Term


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The House of cards.", ["house"]),
        ("HOUSE", ["house"]),
        ("houses, housework", []),
        ("house-boat", ["house"]),
        ("Our US office tells us.", ["US"]),
        ("the white  house", ["house"]),  # "White House" has capitals
        ("the White\u00a0House", ["White House"]),
        ("a house and another house", ["house"]),
        ("C++ or C", ["C++"]),
        ("cafe\u0301", ["café"]),
        ("我们的模型很好", ["模型"]),
        ("", []),
    ],
)
def test_find_terms_matches_whole_words(text: str, expected: list[str]) -> None:
    terms = ["house", "White House", "US", "C++", "café", "模型"]
    glossary = Glossary({term: ["x"] for term in terms})
    assert [term.source for term in glossary.find_terms(text)] == expected


@pytest.mark.parametrize(
    ("form", "translation", "expected"),
    [
        ("Haus", "Das Haus.", True),
        ("Haus", "Der Haushalt.", False),
        ("Haus", "Das Baumhaus.", False),
        ("Haus", "das haus", False),
        ("groß", "Groß ist es.", True),
        ("groß", "Es ist Groß.", False),
        ("in der", "Es ist in  der Tat so", True),
        ("in der", "Es ist in, der", False),
        ("foo@bar.com", "An foo@bar.com!", True),
        ("foo@bar.com", "An foo @bar.com!", False),
        ("café", "Ein cafe\u0301", True),
        ("模型", "这个模型好", True),
        ("Haus", "", False),
    ],
)
def test_term_is_in_translation_only_as_whole_words(form: str, translation: str, expected: bool) -> None:
    assert Term("term", (form, "missing")).is_in(translation) is expected


def test_glossary_file_reads_forms_and_terms_to_keep(tmp_path: Path) -> None:
    path = tmp_path / "terms.tsv"
    path.write_bytes("\ufeffhouse\tHaus\tHauses\r\n\r\nRegard\r\nhouse\tHäuser\r\nkeep\t\t\r\n".encode())
    terms = {term.source: term.forms for term in Glossary.load(path).terms}
    assert terms == {"house": ("Haus", "Hauses", "Häuser"), "Regard": ("Regard",), "keep": ("keep",)}


def test_glossary_invalid_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "terms.tsv"
    for content, message in ((b"\n", "no terms"), (b"a\tb\n\tc", "line has no term"), (b"\xff", "not UTF-8")):
        path.write_bytes(content)
        with pytest.raises(RegardError, match=message) as error:
            Glossary.load(path)
        assert str(path) in str(error.value)
    with pytest.raises(RegardError, match="cannot be read"):
        Glossary.load(tmp_path / "missing.tsv")
    with pytest.raises(RegardError, match="is empty"):
        Glossary({"house": [" "]})
