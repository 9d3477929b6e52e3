"""Texts of like length together, and results back in their order."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from regard.base.errors import RegardError


def by_length(lengths: Sequence[int], tokens: int, copies: int = 1) -> Iterator[list[int]]:
    """Batches as lists of places in `lengths`, longest first: copies x rows x longest row fit into `tokens`.

    A text that is longer than that is a batch by itself.

    >>> list(by_length([3, 9, 4, 4], tokens=8))
    [[1], [2, 3], [0]]
    >>> list(by_length([3, 9, 4, 4], tokens=8, copies=2))
    [[1], [2], [3], [0]]
    """
    if copies < 1:
        raise RegardError(f"A search cannot have {copies} rows for a text.", fix="Use at least 1.")
    order = sorted(range(len(lengths)), key=lambda place: -lengths[place])
    begin = 0
    while begin < len(order):
        rows = max(1, tokens // (copies * max(1, lengths[order[begin]])))
        yield order[begin : begin + rows]
        begin += rows


def windows(texts: Iterable[str], size: int) -> Iterator[list[str]]:
    """Any number of texts, `size` at a time: what is sorted by length together, and held in memory at once.

    >>> list(windows("abc", 2))
    [['a', 'b'], ['c']]
    """
    rest = iter(texts)
    while some := list(islice(rest, size)):
        yield some


def seed_of(seed: int | None, window: int) -> int | None:
    """The seed of a window, the first of which has the given one."""
    return None if seed is None else seed + window
