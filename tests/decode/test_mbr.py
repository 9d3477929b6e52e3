"""Minimum Bayes risk, compared with sums by hand."""

import pytest

from regard.base.errors import RegardError
from regard.decode.mbr import RankedCandidate, minimum_bayes_risk


def negative_distance(a: int, b: int) -> float:
    return -abs(a - b)


def test_median_minimises_absolute_error() -> None:
    """With negative distance as the utility, the median of several numbers wins, not the most frequent one."""
    numbers = [1, 1, 1, 5, 6, 7, 9]
    ranked = minimum_bayes_risk(numbers, negative_distance)
    assert ranked[0] == RankedCandidate(5, -sum(abs(5 - number) for number in numbers) / 7)
    assert [entry.text for entry in ranked] == sorted(
        dict.fromkeys(numbers), key=lambda n: sum(abs(n - number) for number in numbers)
    )


def test_exact_match_utility_is_vote_fraction() -> None:
    ranked = minimum_bayes_risk(["b", "a", "c", "a"], lambda candidate, reference: float(candidate == reference))
    assert ranked == [RankedCandidate("a", 0.5), RankedCandidate("b", 0.25), RankedCandidate("c", 0.25)]


def test_utility_argument_order() -> None:
    ranked = minimum_bayes_risk([1, 3], lambda candidate, reference: candidate - 10.0 * reference, references=[2])
    assert ranked == [RankedCandidate(3, -17.0), RankedCandidate(1, -19.0)]


def test_weights_need_not_sum_to_one() -> None:
    unweighted = minimum_bayes_risk([1, 2, 3], negative_distance, references=[1, 1, 1, 3])
    weighted = minimum_bayes_risk([1, 2, 3], negative_distance, references=[1, 3], weights=[0.6, 0.2])
    assert [entry.text for entry in unweighted] == [entry.text for entry in weighted] == [1, 2, 3]
    assert [entry.utility for entry in unweighted] == pytest.approx([entry.utility for entry in weighted])


def test_utility_is_called_once_per_distinct_pair() -> None:
    compared = []

    def utility(candidate: str, reference: str) -> float:
        compared.append((candidate, reference))
        return 0.0

    minimum_bayes_risk(["a", "b", "a"], utility)
    assert sorted(compared) == [("a", "a"), ("a", "b"), ("b", "a"), ("b", "b")]


@pytest.mark.parametrize("weights", [[1.0], [-1.0, 2.0], [0.0, 0.0]])
def test_invalid_weights_raise(weights: list[float]) -> None:
    with pytest.raises(RegardError, match="MBR cannot rank"):
        minimum_bayes_risk([1, 2], negative_distance, weights=weights)
    with pytest.raises(RegardError, match="0 candidates"):
        minimum_bayes_risk([], negative_distance)
