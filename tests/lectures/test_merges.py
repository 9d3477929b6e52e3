"""Pairs that tie, and the compression of each merge."""

from itertools import pairwise

from regard.lectures.lecture_2_language import RHYME
from regard.lectures.merges import ONCE, WORD_COUNTS, count_merges, count_pairs, list_merges
from regard.lectures.subjects import show


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


def test_low_lower_newest_widest_has_ties() -> None:
    once, counted = "\n".join(show("ties")).split("with counts")
    pairs = once.splitlines()[1].partition("times: ")[2].split(", ")
    assert "2 times" in once
    assert len(pairs) >= 6
    assert {"es", "st", "lo", "ow"} <= set(pairs)
    assert "low 5, lower 2, newest 6, widest 3" in counted
    assert "ratio of 1.25: 3, 1.5: 4" in counted
    assert "9 times: es, st, t\u2581" in counted


def test_merges_of_the_rhyme_are_counted_with_ties() -> None:
    assert count_merges(RHYME, 0)["tokens"] == len(RHYME) + 1
    first, third = count_merges(RHYME, 1), count_merges(RHYME, 3)
    assert (first["count"], first["ties"], first["tokens"]) == (4, 1, len(RHYME) + 1 - 4)
    assert (third["count"], third["ties"]) == (2, 6)  # ck, d▁, ic, pi, ed and others occur twice


def test_ties_of_a_text_with_repeated_words_are_weighted() -> None:
    assert count_merges("low lower newest widest", 1)["ties"] == 6
    assert count_merges("ab ab ab cd cd", 1) == {"count": 3, "ties": 2, "tokens": 12, "vocabulary": 4, "ratio": 1.25}
