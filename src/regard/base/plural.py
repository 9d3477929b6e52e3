"""Counts with nouns in the singular or plural, for messages."""


def pluralize(count: int, singular: str, plural: str | None = None) -> str:
    """Format a count and its noun in the right number.

    >>> pluralize(1, "line"), pluralize(1200, "line"), pluralize(2, "batch", "batches")
    ('1 line', '1,200 lines', '2 batches')
    """
    return f"{count:,} {singular if count == 1 else plural or singular + 's'}"
