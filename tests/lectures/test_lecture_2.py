"""Numbers of lecture 2 that no other part of Regard computes."""

import pytest

from regard.lectures.lecture_2_language import decoding_counts, n_grams
from regard.lectures.lecture_2_media import masked_tokens


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
