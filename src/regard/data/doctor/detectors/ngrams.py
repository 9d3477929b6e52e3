"""Vectorized hashing of character n-grams, for language profiles and MinHash."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_MULTIPLIERS = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1)  # the primes of xxHash, which mix bits well
SPACE = 32


@dataclass(frozen=True, slots=True)
class CodePoints:
    """The code points of concatenated texts: text n is `codes[starts[n]:ends[n]]`."""

    codes: NDArray[np.uint32]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]


def to_code_points(texts: Sequence[str], min_length: int) -> CodePoints:
    """Convert texts to lower-case code points, with a space on both sides and padded to `min_length`."""
    lowered = [f" {text.lower()} ".ljust(min_length) for text in texts]
    lengths = np.fromiter(map(len, lowered), np.int64, len(lowered))
    ends = np.cumsum(lengths)
    codes = np.frombuffer("".join(lowered).encode("utf-32-le", "surrogatepass"), "<u4").astype(np.uint32, copy=False)
    return CodePoints(codes, ends - lengths, ends)


def hash_ngrams(codes: NDArray[np.uint32], order: int) -> NDArray[np.uint32]:
    """A 32-bit hash of every n-gram of length `order`; hash n is of the n-gram that starts at n."""
    count = len(codes) - order + 1
    hashes = np.zeros(count, np.uint32)
    for offset in range(order):
        hashes ^= codes[offset : offset + count] * np.uint32(_MULTIPLIERS[offset])
        hashes = (hashes ^ (hashes >> np.uint32(15))) * np.uint32(_MULTIPLIERS[-1 - offset])
    return hashes


def keep_letters(codes: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Replace all but letters and marks by spaces: digits and punctuation belong to no language."""
    table = _get_letter_table(min(int(codes.max(initial=0)) + 1, _MAX_LETTERS))
    return table[np.minimum(codes, len(table) - 1)]


def sum_ranges(
    values: NDArray[np.float32] | NDArray[np.bool_], starts: NDArray[np.int64], ends: NDArray[np.int64]
) -> NDArray[np.float64]:
    """The sum of the values of each range; no range may be empty."""
    ranges = np.stack([starts, ends], axis=1).ravel()
    ranges = ranges[:-1] if ends[-1] == len(values) else ranges
    return np.add.reduceat(values, ranges, dtype=np.float64)[::2]


_MAX_LETTERS = 0x30000  # there are no letters beyond
_LETTER_TABLE: list[NDArray[np.uint32]] = [np.zeros(0, np.uint32)]


def _get_letter_table(size: int) -> NDArray[np.uint32]:
    """Return a table of at least `size` code points; it grows with the texts, since a full one takes 0.2 s."""
    if len(_LETTER_TABLE[0]) < size:
        letters = [code if unicodedata.category(chr(code))[0] in "LM" else SPACE for code in range(size)]
        _LETTER_TABLE[0] = np.array(letters, np.uint32)
    return _LETTER_TABLE[0]
