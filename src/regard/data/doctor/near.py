"""Near duplicates by MinHash: two texts share as many of their smallest hashes as they share character 5-grams.

A line is kept as 48 bytes and 8 band keys, not as text. Lines that agree in a whole band are compared by their bytes:
the share that agrees estimates the share of 5-grams that the two have in common (Broder 1997).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from regard.data.doctor.ngrams import characters, grams

_ORDER = 5
_BANDS, _ROWS = 8, 6
_ALIKE = 0.8  # the share of common 5-grams from which two lines count as nearly the same
_SHORTEST = 30  # characters; below, one other word is another sentence
_ODD = np.random.default_rng(20_261).integers(0, 2**31, _BANDS * _ROWS, dtype=np.uint32) * np.uint32(2) + np.uint32(1)


class Sketches:
    """Small portraits of the lines of a corpus; `near` finds the ones that look alike."""

    def __init__(self) -> None:
        self._bytes: list[NDArray[np.uint8]] = []
        self._keys: list[NDArray[np.uint32]] = []
        self._short: list[NDArray[np.bool_]] = []

    def add(self, texts: Sequence[str]) -> None:
        """Take the portraits of further lines."""
        text = characters(texts, _ORDER)
        hashes = grams(text.codes, _ORDER)
        # Ranges of grams inside each text, and between them those across two texts, which are left out.
        ranges = np.stack([text.starts, text.ends - _ORDER + 1], axis=1).ravel()[:-1]
        smallest = np.empty((len(texts), _BANDS * _ROWS), np.uint32)
        for number, odd in enumerate(_ODD):
            smallest[:, number] = np.minimum.reduceat(hashes * odd, ranges)[::2]
        # The minima are small numbers: their low bits are the random ones.
        self._bytes.append((smallest & np.uint32(0xFF)).astype(np.uint8))
        keys = np.zeros((len(texts), _BANDS), np.uint32)
        for band in smallest.reshape(len(texts), _BANDS, _ROWS).transpose(2, 0, 1):
            keys = (keys ^ band) * np.uint32(0x9E3779B1)
            keys ^= keys >> np.uint32(15)
        self._keys.append(keys)
        self._short.append(text.ends - text.starts < _SHORTEST)

    def near(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The lines that nearly repeat an earlier one, and the earlier ones."""
        if not self._bytes:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        sketches, keys = np.concatenate(self._bytes), np.concatenate(self._keys)
        eligible = np.flatnonzero(~np.concatenate(self._short))
        earlier = np.full(len(sketches), -1, np.int64)
        for band in range(_BANDS):
            order = eligible[np.argsort(keys[eligible, band], kind="stable")]
            same = keys[order[1:], band] == keys[order[:-1], band]
            begins = np.concatenate([[True], ~same])
            first = order[np.maximum.accumulate(np.where(begins, np.arange(len(order)), 0))]
            # With the first of their band, and with the one before: a chain of small changes is followed, too.
            for later, before in ((order, first), (order[1:][same], order[:-1][same])):
                wanted = (later != before) & (earlier[later] < 0)
                later, before = later[wanted], before[wanted]
                alike = (sketches[later] == sketches[before]).mean(axis=1) >= _ALIKE
                earlier[later[alike]] = before[alike]
        rows = np.flatnonzero(earlier >= 0)
        return rows, earlier[rows]
