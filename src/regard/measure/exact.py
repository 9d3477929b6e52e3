"""Exact match: right or wrong, nothing in between."""

from collections.abc import Sequence

from regard.measure.score import References, Score, check_pairs, reference_lists


def exact_match(hypotheses: Sequence[str], references: References) -> Score:
    """The percentage of texts that equal their reference, or one of their references, character by character.

    >>> exact_match(["JUMP JUMP", "WALK"], ["JUMP JUMP", "RUN"])
    Score(value=50.0, signature='exact_match|case:mixed|n:2')
    """
    check_pairs(hypotheses, references)
    correct = sum(text in candidates for text, candidates in zip(hypotheses, reference_lists(references), strict=True))
    return Score(100.0 * correct / len(references), f"exact_match|case:mixed|n:{len(references)}")
