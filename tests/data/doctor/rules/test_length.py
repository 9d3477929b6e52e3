"""Rules on lengths, given or learned from a corpus."""

import pytest

from regard.data.doctor.rules import length
from regard.data.example import Example, Location
from tests.data.doctor.rules.factories import LONG_SENTENCE, check_accepted, check_reported


@pytest.mark.parametrize(
    ("rule", "source", "target"),
    [
        ("too-long", "word " * 101, LONG_SENTENCE),
        ("ratio", LONG_SENTENCE, LONG_SENTENCE * 3),
        ("ratio", LONG_SENTENCE * 2, "Kurz."),
        ("long-word", "x" * 101, "x"),
    ],
)
def test_length_rule_defect_is_reported(rule: str, source: str, target: str) -> None:
    check_reported(rule, source, target)


@pytest.mark.parametrize(
    ("rule", "source", "target"),
    [
        ("ratio", "Yes.", "Ja, das ist wahr."),  # short lines vary more
        ("long-word", "x" * 100, "x"),
    ],
)
def test_length_rule_harmless_line_is_accepted(rule: str, source: str, target: str) -> None:
    check_accepted(rule, source, target)


def test_a_language_without_spaces_has_no_long_words() -> None:
    sides = [["这是一个没有空格的句子。" * 5] * 50, ["This is a sentence with spaces."] * 50]
    statistics = length.learn_lengths(sides)
    assert statistics.check_long_run(Example(Location("a", 1), "长" * 200, "Long.")) is None
    assert statistics.check_long_run(Example(Location("a", 1), "长", "x" * 200)) is not None


def test_outliers_do_not_move_the_learned_lengths() -> None:
    pairs = [("source text " * (4 + row % 7), "target side text " * (4 + row % 7)) for row in range(500)]
    pairs[7] = ("x" * 1_000_000, "y")
    statistics = length.learn_lengths([[source for source, _ in pairs], [target for _, target in pairs]])
    assert 1.2 < statistics.ratio < 1.5
    assert 2.0 <= statistics.ratio_factor < 3.0
    assert statistics.max_lengths[0] < 2000
    assert statistics.check_too_long(Example(Location("a", 1), *pairs[7])) is not None
