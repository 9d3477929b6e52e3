"""Fingerprints: 8 bytes for a text, so that repeats and leaks are found without keeping the texts."""

import unicodedata
from array import array
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from regard.data.example import Example

Rows = NDArray[np.int64]
Hashes = NDArray[np.uint64]


def light(text: str) -> str:
    """The text in a form in which case, spacing and ways to write an accent do not count.

    >>> light("  Guten\u00a0 TAG ")
    'guten tag'
    """
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())


class Prints:
    """The fingerprints of a corpus: of every source, of what belongs to it, and of both."""

    def __init__(self, *, lightly: bool) -> None:
        self._lightly = lightly
        self._source, self._target = array("Q"), array("Q")

    def add(self, example: Example) -> None:
        """Take the fingerprints of one example."""
        self._source.append(self._print(example.source))
        rest = [example.target or "", example.label or "", *(example.tags or ())]
        self._target.append(self._print("\x1f".join(rest)) if any(rest) else 0)

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

    def _print(self, text: str) -> int:
        text = light(text) if self._lightly else text.strip()
        return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def repeats(prints: Hashes) -> tuple[Rows, Rows]:
    """The rows whose fingerprint stood before, and the rows where it stood first.

    >>> repeats(np.array([7, 5, 7, 7], np.uint64))
    (array([2, 3]), array([0, 0]))
    """
    order = np.argsort(prints, kind="stable")
    ordered = prints[order]
    again = np.concatenate([[False], ordered[1:] == ordered[:-1]]) if len(order) else np.empty(0, bool)
    first = order[np.maximum.accumulate(np.where(again, 0, np.arange(len(order))))] if len(order) else order
    by_row = np.argsort(order[again], kind="stable")
    return order[again][by_row], first[again][by_row]


def found_in(prints: Hashes, held_out: Hashes) -> tuple[Rows, Rows]:
    """The rows whose fingerprint is among the held-out ones, and where it is (first) there."""
    order = np.argsort(held_out, kind="stable")
    if not len(order):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    place = np.minimum(np.searchsorted(held_out[order], prints), len(order) - 1)
    hit = held_out[order[place]] == prints
    return np.flatnonzero(hit), order[place[hit]]
