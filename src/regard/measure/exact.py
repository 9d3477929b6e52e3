"""Exact match: right or wrong, nothing in between."""

from collections.abc import Sequence

from regard.measure.score import Score, check_pairs


def exact_match(hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    """The percentage of texts that equal their references, character by character.

    >>> exact_match(["JUMP JUMP", "WALK"], ["JUMP JUMP", "RUN"])
    Score(value=50.0, signature='exact_match|case:mixed|n:2')
    """
    check_pairs(hypotheses, references)
    right = sum(text == reference for text, reference in zip(hypotheses, references, strict=True))
    return Score(100.0 * right / len(references), f"exact_match|case:mixed|n:{len(references)}")
