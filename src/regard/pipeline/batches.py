"""Texts of like length together, and results back in their order."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from regard.base.errors import RegardError


def batch_by_length(lengths: Sequence[int], max_tokens: int, rows_per_text: int = 1) -> Iterator[list[int]]:
    """Batches as lists of places in `lengths`, longest first: copies x rows x longest row fit into `tokens`.

    A text that is longer than that is a batch by itself.

    >>> list(batch_by_length([3, 9, 4, 4], max_tokens=8))
    [[1], [2, 3], [0]]
    >>> list(batch_by_length([3, 9, 4, 4], max_tokens=8, rows_per_text=2))
    [[1], [2], [3], [0]]
    """
    if rows_per_text < 1:
        raise RegardError(f"A search cannot have {rows_per_text} rows for a text.", fix="Use at least 1.")
    order = sorted(range(len(lengths)), key=lambda index: -lengths[index])
    start = 0
    while start < len(order):
        rows = max(1, max_tokens // (rows_per_text * max(1, lengths[order[start]])))
        yield order[start : start + rows]
        start += rows


def chunks(texts: Iterable[str], size: int) -> Iterator[list[str]]:
    """Any number of texts, `size` at a time: what is sorted by length together, and held in memory at once.

    >>> list(chunks("abc", 2))
    [['a', 'b'], ['c']]
    """
    iterator = iter(texts)
    while chunk := list(islice(iterator, size)):
        yield chunk


def chunk_seed(seed: int | None, chunk_index: int) -> int | None:
    """The seed of a window, the first of which has the given one."""
    return None if seed is None else seed + chunk_index
