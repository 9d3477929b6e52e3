"""Counter-based random numbers: each depends only on its keys, not on previously drawn numbers.

So the noise of a sample is the same in any process, on any machine, with any number of ranks and in any batch.
`splitmix64` is the finalizer of SplitMix64 (Steele et al. 2014). It is written out here because NumPy promises the
same stream for a generator only within a version, and has no generator that takes a key for each element.
It is a bijection, so sorting by it is a shuffle without ties.

>>> permutation(make_key(1, 0), 5)
array([2, 0, 1, 4, 3])
"""

import numpy as np
from numpy.typing import NDArray

Bits = NDArray[np.uint64]
AnyIntArray = NDArray[np.integer]

GOLDEN_GAMMA = np.uint64(0x9E3779B97F4A7C15)  # odd, so multiplication by it is a bijection


def splitmix64(bits: Bits) -> Bits:
    """Map 64 bits to 64 bits: a bijection that scatters neighbors.

    >>> hex(splitmix64(np.array([GOLDEN_GAMMA]))[0])  # the first number of SplitMix64 from seed 0
    '0xe220a8397b1dcdaf'
    """
    bits = bits.copy()
    scramble(bits, np.empty_like(bits))
    return bits


def scramble(bits: Bits, scratch: Bits) -> None:
    """Apply `splitmix64` in place; `scratch` is an array of the same shape."""
    bits ^= np.right_shift(bits, np.uint64(30), out=scratch)
    bits *= np.uint64(0xBF58476D1CE4E5B9)
    bits ^= np.right_shift(bits, np.uint64(27), out=scratch)
    bits *= np.uint64(0x94D049BB133111EB)
    bits ^= np.right_shift(bits, np.uint64(31), out=scratch)


def make_key(*numbers: int) -> Bits:
    """Make one key of shape (1,) from several numbers; their order matters."""
    bits = np.zeros(1, np.uint64)
    for number in numbers:
        bits = derive(bits, np.array([number % 2**64], np.uint64))
    return bits


def derive(keys: Bits, numbers: AnyIntArray) -> Bits:
    """Derive a key for each number from `keys`; shapes broadcast."""
    return splitmix64(keys + (numbers.astype(np.uint64) + np.uint64(1)) * GOLDEN_GAMMA)


def uniform(bits: Bits) -> NDArray[np.float64]:
    """Return floats in [0, 1), from the upper 53 bits."""
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53


def integers(bits: Bits, bound: int) -> NDArray[np.int64]:
    """Return integers in [0, bound)."""
    return (uniform(bits) * bound).astype(np.int64)


def permutation(keys: Bits, count: int) -> NDArray[np.int64]:
    """Return a random permutation of 0 to count - 1, a different one for every key."""
    return np.argsort(derive(keys, np.arange(count, dtype=np.uint64)))


def spread_permutation(keys: Bits, count: int) -> NDArray[np.int64]:
    """Return a permutation of 0 to count - 1 in which any few neighbors are spread evenly over the range.

    Every second number mirrors the one before it. From pair to pair the position advances by the golden section of a
    circle, which never comes near an earlier position; the key decides where on the circle it begins.

    >>> spread_permutation(make_key(1, 0), 9)
    array([3, 5, 1, 7, 0, 8, 2, 6, 4])
    """
    half = count // 2
    # The circle is 2^64 long, and GOLDEN_GAMMA is its golden section.
    phases = np.arange(half, dtype=np.uint64) * GOLDEN_GAMMA + splitmix64(keys)
    order = np.full(count, half)
    order[: 2 * half : 2] = np.argsort(np.argsort(phases))
    order[1 : 2 * half : 2] = count - 1 - order[: 2 * half : 2]
    return order
