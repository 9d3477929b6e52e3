"""Fingerprints: 8 bytes for a text, so that repeats and leaks are found without keeping the texts."""

import unicodedata
from array import array
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from regard.data.example import Example

RowIndices = NDArray[np.int64]
Hashes = NDArray[np.uint64]


def fold(text: str) -> str:
    """The text in a form in which case, spacing and ways to write an accent do not count.

    >>> fold("  Guten\u00a0 TAG ")
    'guten tag'
    """
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())


class Fingerprints:
    """The fingerprints of a corpus: of every source, of what belongs to it, and of both."""

    def __init__(self, *, should_fold: bool) -> None:
        self._should_fold = should_fold
        self._source, self._target = array("Q"), array("Q")

    def add(self, example: Example) -> None:
        """Take the fingerprints of one example."""
        self._source.append(self._hash_text(example.source))
        target_parts = [example.target or "", example.label or "", *(example.tags or ())]
        self._target.append(self._hash_text("\x1f".join(target_parts)) if any(target_parts) else 0)

    @property
    def source(self) -> Hashes:
        """Of the sources."""
        return np.frombuffer(self._source, np.uint64) if self._source else np.empty(0, np.uint64)

    @property
    def target(self) -> Hashes:
        """Of the targets (or labels); 0 where there is none."""
        return np.frombuffer(self._target, np.uint64) if self._target else np.empty(0, np.uint64)

    @property
    def pair(self) -> Hashes:
        """Of both together."""
        return self.source * np.uint64(0x9E3779B97F4A7C15) + self.target

    def _hash_text(self, text: str) -> int:
        text = fold(text) if self._should_fold else text.strip()
        return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def find_repeats(hashes: Hashes) -> tuple[RowIndices, RowIndices]:
    """The rows whose fingerprint stood before, and the rows where it stood first.

    >>> find_repeats(np.array([7, 5, 7, 7], np.uint64))
    (array([2, 3]), array([0, 0]))
    """
    order = np.argsort(hashes, kind="stable")
    sorted_hashes = hashes[order]
    is_repeat = np.concatenate([[False], sorted_hashes[1:] == sorted_hashes[:-1]]) if len(order) else np.empty(0, bool)
    first_rows = order[np.maximum.accumulate(np.where(is_repeat, 0, np.arange(len(order))))] if len(order) else order
    by_row = np.argsort(order[is_repeat], kind="stable")
    return order[is_repeat][by_row], first_rows[is_repeat][by_row]


def find_held_out(hashes: Hashes, held_out_hashes: Hashes) -> tuple[RowIndices, RowIndices]:
    """The rows whose fingerprint is among the held-out ones, and where it is (first) there."""
    order = np.argsort(held_out_hashes, kind="stable")
    if not len(order):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    positions = np.minimum(np.searchsorted(held_out_hashes[order], hashes), len(order) - 1)
    is_match = held_out_hashes[order[positions]] == hashes
    return np.flatnonzero(is_match), order[positions[is_match]]
