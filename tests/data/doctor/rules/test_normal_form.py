"""Lines in the rarer Unicode normal form of a corpus."""

from typing import Literal
from unicodedata import normalize

import pytest

from regard.data.doctor.rules import normal_form
from tests.data.doctor.rules.factories import find_flagged, split_pairs
from tests.data.doctor.synthetic_pairs import make_pairs


@pytest.mark.parametrize("usual", ["NFC", "NFD"])
def test_lines_of_the_rarer_normal_form_are_found(usual: Literal["NFC", "NFD"]) -> None:
    """One line in 20 is in the other form; lines without accents have no form."""
    rare: Literal["NFC", "NFD"] = "NFD" if usual == "NFC" else "NFC"
    pairs = [(source, normalize(usual, target)) for source, target in make_pairs(1000)]
    rows = [row for row in range(3, 1000, 20) if not pairs[row][1].isascii()]
    for row in rows:
        pairs[row] = (pairs[row][0], normalize(rare, pairs[row][1]))
    assert find_flagged(normal_form.learn_forms(split_pairs(pairs)).check, pairs) == rows


def test_letters_without_a_composed_form_are_no_mixture() -> None:
    """NFC keeps these letters of Devanagari and Hebrew in two characters; the Angstrom sign becomes a letter."""
    texts = ["क़ ख़", "שׁ", "10 Å", "plain", "日本語"] * 20
    assert find_flagged(normal_form.learn_forms([texts]).check, [(text, "") for text in texts]) == []
