"""Cut-off texts, found by what a corpus usually looks like."""

import pytest

from regard.data.doctor.rules import truncation
from tests.data.doctor.rules.factories import find_flagged, split_pairs
from tests.data.doctor.synthetic_pairs import make_pairs


def test_targets_cut_at_half_are_found_among_intact_ones() -> None:
    """One target in 50 is cut: at least 9 in 10 are found, and at most 1 in 200 of the others is flagged."""
    pairs = make_pairs(3000)
    cut_rows = set(range(7, 3000, 50))
    for row in cut_rows:
        pairs[row] = (pairs[row][0], pairs[row][1][: len(pairs[row][1]) // 2])
    flagged = set(find_flagged(truncation.learn_truncation(split_pairs(pairs)).check, pairs))
    assert len(flagged & cut_rows) >= 0.9 * len(cut_rows)
    assert len(flagged - cut_rows) <= 0.005 * len(pairs)


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("unit", ["characters", "words"])
def test_a_maximum_length_is_found_on_either_side(side: int, unit: str) -> None:
    pairs = make_pairs(2000)
    limit = {"characters": 70, "words": 15}[unit]
    for row, texts in enumerate(pairs):
        text = texts[side][:limit] if unit == "characters" else " ".join(texts[side].split()[:limit])
        pairs[row] = (text, texts[1]) if side == 0 else (texts[0], text)
    statistics = truncation.learn_truncation(split_pairs(pairs))
    assert (unit, limit) in statistics.sides[side].limits
    assert statistics.sides[1 - side].limits == ()
    flagged = find_flagged(statistics.check, pairs)
    cut_count = sum(not truncation.ends_sentence(texts[side]) for texts in pairs)
    assert 0.7 * cut_count < len(flagged) <= cut_count


def test_intact_corpora_are_not_truncated() -> None:
    pairs = make_pairs(3000)
    without_final = [(source.rstrip(".!?"), target.rstrip(".!?")) for source, target in pairs]
    titles = [(source, " ".join(target.split()[-3:]).rstrip(".!?")) for source, target in pairs]  # summaries
    for corpus in (pairs, without_final, titles):
        assert len(find_flagged(truncation.learn_truncation(split_pairs(corpus)).check, corpus)) <= 0.005 * len(corpus)
