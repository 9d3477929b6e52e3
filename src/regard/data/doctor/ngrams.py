"""Character n-grams of many texts at once, as numbers: what language profiles and MinHash are made of."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_ODD = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1)  # the primes of xxHash: they mix bits well
SPACE = 32


@dataclass(frozen=True, slots=True)
class Characters:
    """The characters of texts, end to end: text n is `codes[starts[n]:ends[n]]`."""

    codes: NDArray[np.uint32]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]


def characters(texts: Sequence[str], at_least: int) -> Characters:
    """Lower-cased texts as code points, a space on both sides, filled up with spaces to `at_least` characters."""
    lowered = [f" {text.lower()} ".ljust(at_least) for text in texts]
    lengths = np.fromiter(map(len, lowered), np.int64, len(lowered))
    ends = np.cumsum(lengths)
    codes = np.frombuffer("".join(lowered).encode("utf-32-le", "surrogatepass"), "<u4").astype(np.uint32, copy=False)
    return Characters(codes, ends - lengths, ends)


def grams(codes: NDArray[np.uint32], order: int) -> NDArray[np.uint32]:
    """A 32-bit hash of every run of `order` characters; the one at position n starts there."""
    count = len(codes) - order + 1
    mixed = np.zeros(count, np.uint32)
    for place in range(order):
        mixed ^= codes[place : place + count] * np.uint32(_ODD[place])
        mixed = (mixed ^ (mixed >> np.uint32(15))) * np.uint32(_ODD[-1 - place])
    return mixed


def letters_only(codes: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Everything that is no letter or mark becomes a space: digits and signs belong to no language."""
    table = _letters()
    return table[np.minimum(codes, len(table) - 1)]


def sums(
    values: NDArray[np.float32] | NDArray[np.bool_], starts: NDArray[np.int64], ends: NDArray[np.int64]
) -> NDArray[np.float64]:
    """The sums of values from starts to ends; no range may be empty."""
    ranges = np.stack([starts, ends], axis=1).ravel()
    ranges = ranges[:-1] if ends[-1] == len(values) else ranges
    return np.add.reduceat(values, ranges, dtype=np.float64)[::2]


_TABLE: list[NDArray[np.uint32]] = []


def _letters() -> NDArray[np.uint32]:
    if not _TABLE:  # 0.05 s: made once, when first needed
        kept = [code if unicodedata.category(chr(code))[0] in "LM" else SPACE for code in range(0x30000)]
        _TABLE.append(np.array(kept, np.uint32))
    return _TABLE[0]
