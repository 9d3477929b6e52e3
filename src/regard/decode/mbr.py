"""Minimum Bayes risk (MBR) decoding: choose the candidate that is most similar to all others, not the likeliest one.

The likeliest sequence may be atypical (often very short). If h and r are samples of the model and the utility u(h, r)
is the quality of h when r is the reference, then the mean over all r,

    U(h) = sum_r w_r u(h, r) / sum_r w_r,

estimates the expected quality of h. MBR chooses the candidate with the largest U (Eikema and Aziz 2020). The utility
is a metric such as chrF, BLEU or exact match (for which U is the fraction of votes).
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
    """Rank the distinct candidates by expected utility, best first; equal ones keep their order.

    Args:
        candidates: The candidates; duplicates are ranked once.
        utility: `utility(candidate, reference)`. It is called once per pair of distinct texts: n^2 times for n of each.
        references: Pseudo-references, counted as often as they occur; None: the candidates.
        weights: The weight of each pseudo-reference, 0 or more; they need not sum to 1. None: equal weights.

    Raises:
        RegardError: There are no candidates, or the weights do not match the references.

    >>> ranked = minimum_bayes_risk([1, 1, 4, 5, 6], lambda candidate, reference: -abs(candidate - reference))
    >>> [(candidate.text, candidate.utility) for candidate in ranked]
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
            f"MBR cannot rank {len(candidates)} candidates with {len(pseudo_references)} references "
            f"and {len(reference_weights)} weights.",
            hint="Pass at least one candidate and one nonnegative weight per reference, with a positive sum.",
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
