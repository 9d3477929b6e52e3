"""Minimum Bayes risk against sums by hand."""

import pytest

from regard.base.errors import RegardError
from regard.decode.rerank import Ranked, minimum_risk


def nearness(a: int, b: int) -> float:
    return -abs(a - b)


def test_the_median_has_the_least_absolute_error() -> None:
    """With the negative distance as the utility, the best of some numbers is their median, not their commonest."""
    numbers = [1, 1, 1, 5, 6, 7, 9]
    ranked = minimum_risk(numbers, nearness)
    assert ranked[0] == Ranked(5, -sum(abs(5 - other) for other in numbers) / 7)
    assert [one.text for one in ranked] == sorted(
        dict.fromkeys(numbers), key=lambda n: sum(abs(n - other) for other in numbers)
    )


def test_with_exact_match_the_commonest_wins_and_its_utility_is_its_share() -> None:
    ranked = minimum_risk(["b", "a", "c", "a"], lambda one, other: float(one == other))
    assert ranked == [Ranked("a", 0.5), Ranked("b", 0.25), Ranked("c", 0.25)]


def test_the_candidate_is_the_first_argument_and_the_reference_the_second() -> None:
    ranked = minimum_risk([1, 3], lambda one, other: one - 10.0 * other, references=[2])
    assert ranked == [Ranked(3, -17.0), Ranked(1, -19.0)]


def test_weights_count_and_need_not_sum_to_one() -> None:
    plain = minimum_risk([1, 2, 3], nearness, references=[1, 1, 1, 3])
    weighed = minimum_risk([1, 2, 3], nearness, references=[1, 3], weights=[0.6, 0.2])
    assert [one.text for one in plain] == [one.text for one in weighed] == [1, 2, 3]
    assert [one.utility for one in plain] == pytest.approx([one.utility for one in weighed])


def test_every_pair_of_different_texts_is_compared_once() -> None:
    asked = []

    def utility(one: str, other: str) -> float:
        asked.append((one, other))
        return 0.0

    minimum_risk(["a", "b", "a"], utility)
    assert sorted(asked) == [("a", "a"), ("a", "b"), ("b", "a"), ("b", "b")]


@pytest.mark.parametrize("weights", [[1.0], [-1.0, 2.0], [0.0, 0.0]])
def test_what_cannot_be_weighed_is_refused(weights: list[float]) -> None:
    with pytest.raises(RegardError, match="cannot be ranked"):
        minimum_risk([1, 2], nearness, weights=weights)
    with pytest.raises(RegardError, match="0 candidates"):
        minimum_risk([], nearness)
