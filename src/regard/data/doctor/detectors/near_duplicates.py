"""Detect near duplicates by MinHash over character 5-grams (Broder 1997) with banding.

A line is stored as a signature of 48 bytes and 8 band keys, not as text. Lines with an equal band key are compared by
their signatures: the share of equal bytes estimates the share of 5-grams that the two lines have in common.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from regard.data.doctor.detectors.ngrams import hash_ngrams, to_code_points

_NGRAM_ORDER = 5
_BANDS, _ROWS_PER_BAND = 8, 6
_MIN_SIMILARITY = 0.8  # the estimated share of common 5-grams of near duplicates
_MIN_CHARACTERS = 30  # in a shorter text, one different word makes a different sentence
_MULTIPLIERS = np.random.default_rng(20_261).integers(0, 2**31, _BANDS * _ROWS_PER_BAND, dtype=np.uint32) * np.uint32(
    2
) + np.uint32(1)


class MinHashes:
    """MinHash signatures of the lines of a corpus."""

    def __init__(self) -> None:
        self._signatures: list[NDArray[np.uint8]] = []
        self._band_keys: list[NDArray[np.uint32]] = []
        self._is_short: list[NDArray[np.bool_]] = []

    def add(self, texts: Sequence[str]) -> None:
        """Add the signatures of further lines."""
        code_points = to_code_points(texts, _NGRAM_ORDER)
        hashes = hash_ngrams(code_points.codes, _NGRAM_ORDER)
        # Ranges of n-grams inside each text alternate with ranges across two texts, which are dropped.
        ranges = np.stack([code_points.starts, code_points.ends - _NGRAM_ORDER + 1], axis=1).ravel()[:-1]
        minima = np.empty((len(texts), _BANDS * _ROWS_PER_BAND), np.uint32)
        for index, multiplier in enumerate(_MULTIPLIERS):
            minima[:, index] = np.minimum.reduceat(hashes * multiplier, ranges)[::2]
        # Minima are small numbers: only their low bits are random.
        self._signatures.append((minima & np.uint32(0xFF)).astype(np.uint8))
        keys = np.zeros((len(texts), _BANDS), np.uint32)
        for band in minima.reshape(len(texts), _BANDS, _ROWS_PER_BAND).transpose(2, 0, 1):
            keys = (keys ^ band) * np.uint32(0x9E3779B1)
            keys ^= keys >> np.uint32(15)
        self._band_keys.append(keys)
        self._is_short.append(code_points.ends - code_points.starts < _MIN_CHARACTERS)

    def find_near_duplicates(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The rows that are near duplicates of an earlier row, and those earlier rows."""
        if not self._signatures:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        signatures, keys = np.concatenate(self._signatures), np.concatenate(self._band_keys)
        eligible = np.flatnonzero(~np.concatenate(self._is_short))
        earlier = np.full(len(signatures), -1, np.int64)
        for band in range(_BANDS):
            order = eligible[np.argsort(keys[eligible, band], kind="stable")]
            is_same_key = keys[order[1:], band] == keys[order[:-1], band]
            is_first = np.concatenate([[True], ~is_same_key])
            first_rows = order[np.maximum.accumulate(np.where(is_first, np.arange(len(order)), 0))]
            # Compare with the first row of the band and with the previous one, to follow chains of small changes.
            for later_rows, earlier_rows in ((order, first_rows), (order[1:][is_same_key], order[:-1][is_same_key])):
                is_candidate = (later_rows != earlier_rows) & (earlier[later_rows] < 0)
                later_rows, earlier_rows = later_rows[is_candidate], earlier_rows[is_candidate]
                is_similar = (signatures[later_rows] == signatures[earlier_rows]).mean(axis=1) >= _MIN_SIMILARITY
                earlier[later_rows[is_similar]] = earlier_rows[is_similar]
        rows = np.flatnonzero(earlier >= 0)
        return rows, earlier[rows]
