"""`scripts/check_words.py` finds dropped words and accepts the field's terms."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "check_words.py"


@pytest.fixture(scope="module")
def check_words() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_words", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["check_words"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("source", "word"),
    [
        ('"""Turn the knob."""\n', "knob"),
        ('fail("tokens an\\nupdate")\n', "tokens an update"),
        ("x = 1  # learned by heart\n", "by heart"),
        ("def pick(found):\n    return 1\n", "found"),
        ("next_word = 3\n", "next_word"),
        ("class WordHead:\n    pass\n", "WordHead"),
        ("self.beginnings = []\n", "beginnings"),
    ],
)
def test_planted_word_is_found(check_words: ModuleType, source: str, word: str) -> None:
    (finding,) = check_words.check_source(source, "src/regard/decode/beam.py")
    assert (finding.word, finding.path) == (word, "src/regard/decode/beam.py")
    assert finding.instead


@pytest.mark.parametrize(
    "source",
    ["subwords = 3\n", '"""Set the seed; 40 tokens per update."""\n', "keyword = 3\n", "x = 'the_pieces'\n"],
)
def test_terms_of_the_field_are_accepted(check_words: ModuleType, source: str) -> None:
    assert list(check_words.check_source(source, "src/regard/decode/beam.py")) == []


def test_identifiers_with_word_are_on_a_short_list(check_words: ModuleType) -> None:
    source = "word_ids = starts_word = words = None\n"
    (finding,) = check_words.check_source(source, "src/regard/text/tokenizer.py")
    assert finding.word == "starts_word"
    assert len(check_words.WORD_IDENTIFIERS) <= 12


def test_line_and_exceptions(check_words: ModuleType, tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text("# A page\n\nOf a knob.\n", encoding="utf-8")
    (finding,) = check_words.check_file(page, tmp_path)
    assert str(finding) == "README.md:3: 'knob' -> setting"
    (tmp_path / "docs").mkdir()
    glossary = page.rename(tmp_path / "docs" / "glossary.md")
    assert check_words.check_file(glossary, tmp_path) == []
