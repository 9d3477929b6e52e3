"""Minimum Bayes risk: not the likeliest text, but the one that is most like all the others.

The likeliest text may be an odd one (often a very short one). If h and r are texts drawn from the model and u(h, r)
says how good h is when r is right, then the mean over all r,

    U(h) = sum_r w_r u(h, r) / sum_r w_r,

estimates how good h will be on average, and the text with the largest U is chosen (Eikema and Aziz 2020). What "good"
means is the utility's affair: chrF, BLEU, exact match (for which U is the share of votes).
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from regard.base.errors import RegardError

T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True)
class RankedCandidate(Generic[T]):
    """A candidate and its expected utility."""

    text: T
    utility: float


def minimum_bayes_risk(
    candidates: Sequence[T],
    utility: Callable[[T, T], float],
    references: Sequence[T] | None = None,
    weights: Sequence[float] | None = None,
) -> list[RankedCandidate[T]]:
    """The different candidates, best first; equal ones in the order in which they came.

    `references` stand for what might be right: the candidates themselves, if nothing is given. They count as often as
    they were drawn, or by `weights` (which need not sum to 1), one for each. `utility(candidate, reference)` is called
    once for every pair of different texts: with n of each, n^2 times.

    >>> [(one.text, one.utility) for one in minimum_bayes_risk([1, 1, 4, 5, 6], lambda one, right: -abs(one - right))]
    [(4, -1.8), (5, -2.0), (1, -2.4), (6, -2.6)]
    """
    pseudo_references = candidates if references is None else references
    reference_weights = [1.0] * len(pseudo_references) if weights is None else weights
    if (
        not candidates
        or len(reference_weights) != len(pseudo_references)
        or not all(weight >= 0 for weight in reference_weights)
        or not sum(reference_weights) > 0
    ):
        raise RegardError(
            f"{len(candidates)} candidates, {len(pseudo_references)} references and {len(reference_weights)} weights cannot be ranked.",
            fix="Give at least one of each, and weights of 0 or more, one for each reference.",
        )
    votes: dict[T, float] = {}
    for text, weight in zip(pseudo_references, reference_weights, strict=True):
        votes[text] = votes.get(text, 0.0) + weight
    total_weight = sum(votes.values())
    ranked = [
        RankedCandidate(
            text, sum(weight * utility(text, reference) for reference, weight in votes.items()) / total_weight
        )
        for text in dict.fromkeys(candidates)
    ]
    return sorted(ranked, key=lambda entry: -entry.utility)
