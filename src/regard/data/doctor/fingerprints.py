"""Fingerprints: a 64-bit hash per text, to find duplicates and leaks without keeping the texts."""

import unicodedata
from array import array
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from regard.data.example import Example

RowIndices = NDArray[np.int64]
Hashes = NDArray[np.uint64] | NDArray[np.int64]


def fold(text: str) -> str:
    """Normalize case, spacing and the encoding of accents, for comparison.

    >>> fold("  Guten\u00a0 TAG ")
    'guten tag'
    """
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())


class Fingerprints:
    """The fingerprints of a corpus: of every source, of its target or label, and of the pair."""

    def __init__(self, *, should_fold: bool) -> None:
        self._should_fold = should_fold
        self._source, self._target = array("Q"), array("Q")

    def add(self, example: Example) -> None:
        """Add one example."""
        self._source.append(self._hash_text(example.source))
        target_parts = [example.target or "", example.label or "", *(example.tags or ())]
        self._target.append(self._hash_text("\x1f".join(target_parts)) if any(target_parts) else 0)

    @property
    def source(self) -> Hashes:
        """Hashes of the sources."""
        return np.frombuffer(self._source, np.uint64) if self._source else np.empty(0, np.uint64)

    @property
    def target(self) -> Hashes:
        """Hashes of the targets or labels; 0 where there is none."""
        return np.frombuffer(self._target, np.uint64) if self._target else np.empty(0, np.uint64)

    @property
    def pair(self) -> Hashes:
        """Hashes of the pairs."""
        return self.source * np.uint64(0x9E3779B97F4A7C15) + self.target

    def _hash_text(self, text: str) -> int:
        text = fold(text) if self._should_fold else text.strip()
        return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def find_repeats(hashes: Hashes) -> tuple[RowIndices, RowIndices]:
    """The rows that repeat an earlier row, and the first row of each hash.

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
    """The rows whose hash is among the held-out hashes, and the first held-out row of each."""
    order = np.argsort(held_out_hashes, kind="stable")
    if not len(order):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    positions = np.minimum(np.searchsorted(held_out_hashes[order], hashes), len(order) - 1)
    is_match = held_out_hashes[order[positions]] == hashes
    return np.flatnonzero(is_match), order[positions[is_match]]
