"""Numbers of lecture 2 that no other part of Regard computes."""

import pytest

from regard.lectures.lecture_2_language import RHYME, count_merges, decoding_counts, n_grams
from regard.lectures.lecture_2_media import masked_tokens


def test_merges_of_the_rhyme_are_counted_with_ties() -> None:
    assert count_merges(RHYME, 0)["tokens"] == len(RHYME) + 1
    first, third = count_merges(RHYME, 1), count_merges(RHYME, 3)
    assert (first["count"], first["ties"], first["tokens"]) == (4, 1, len(RHYME) + 1 - 4)
    assert (third["count"], third["ties"]) == (2, 6)  # ck, d▁, ic, pi, ed and others occur twice


def test_ties_of_a_text_with_repeated_words_are_weighted() -> None:
    assert count_merges("low lower newest widest", 1)["ties"] == 6
    assert count_merges("ab ab ab cd cd", 1) == {"count": 3, "ties": 2, "tokens": 12, "vocabulary": 4, "ratio": 1.25}


def test_a_beam_of_two_misses_the_best_sequence() -> None:
    probabilities = decoding_counts().numbers["found"]
    assert isinstance(probabilities, list)
    greedy, two, three, best = probabilities
    assert greedy < two < three
    assert three == best == pytest.approx(0.25 * 0.97, rel=1e-4)


def test_a_model_without_context_needs_the_entropy_of_the_characters() -> None:
    numbers = n_grams().numbers
    bits = [numbers[f"l{length}"]["bits"] for length in (0, 1, 2, 5, 9)]  # type: ignore[index]
    assert bits == sorted(bits, reverse=True)
    assert 4 < bits[0] < 5


def test_fifteen_percent_of_the_tokens_are_masked() -> None:
    shares = masked_tokens().numbers["bert"]
    assert isinstance(shares, dict)
    assert shares["chosen"] == pytest.approx(0.15, rel=0.03)
    assert shares["mask"] == pytest.approx(0.12, rel=0.03)
    assert shares["chosen"] == pytest.approx(shares["mask"] + shares["random"] + shares["same"])
