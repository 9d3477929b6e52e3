"""Translations that are wrong whatever the source says: empty, cut off, or stuck in a loop."""

from collections.abc import Sequence

from regard.tasks.results import Translation

MAX_PERIOD = 12  # tokens; a loop is rarely longer
MIN_REPEATS = 4  # of the same tokens, one after the other
EMPTY_WARNING = "the model returned nothing"


def find_defects(source: Sequence[int], translation: Translation) -> tuple[str, ...]:
    """Return the defects of a translation of these tokens."""
    if not source:
        return ()
    defects = [] if translation.text.strip() else [EMPTY_WARNING]
    if not translation.ended:
        defects.append(f"cut off after {len(translation.tokens)} tokens")
    repeats = count_repeats(translation.tokens)
    if repeats >= MIN_REPEATS and repeats > count_repeats(source) + 1:
        defects.append(f"the same words {repeats} times in a row")
    return tuple(defects)


def count_repeats(tokens: Sequence[int]) -> int:
    """Return how often the most repeated sequence of tokens occurs in a row.

    >>> count_repeats([1, 2, 3]), count_repeats([1, 2, 3, 2, 3, 2, 3, 4])
    (1, 3)
    """
    most = min(1, len(tokens))
    if len(tokens) - len(set(tokens)) < MIN_REPEATS - 1:  # nearly always: nothing is repeated often enough
        return most
    for period in range(1, min(MAX_PERIOD, len(tokens) // 2) + 1):
        run = 0  # tokens that are equal to the one a period before
        for token, earlier in zip(tokens[period:], tokens, strict=False):
            run = run + 1 if token == earlier else 0
            most = max(most, run // period + 1)
    return most
