"""Pairs of "low lower newest widest" that tie, and the compression of each merge."""

from itertools import pairwise

from regard.lectures.pairs import ONCE, count_pairs, list_merges
from regard.lectures.worked_pages import WORD_COUNTS


def test_six_pairs_tie_if_each_word_occurs_once() -> None:
    counts = count_pairs(ONCE)
    assert {pair for pair, count in counts.items() if count == max(counts.values())} == {
        "lo",
        "ow",
        "we",
        "es",
        "st",
        "t▁",
    }


def test_three_pairs_tie_with_the_counts_of_the_paper() -> None:
    assert count_pairs(WORD_COUNTS).most_common(4) == [("es", 9), ("st", 9), ("t▁", 9), ("we", 8)]


def test_every_merge_removes_as_many_symbols_as_its_count() -> None:
    merges = list_merges(WORD_COUNTS)
    sizes = [size for _, _, size in merges]
    assert sizes[0] == 95
    assert [before - after for before, after in pairwise(sizes)] == [count for _, count, _ in merges[1:]]
