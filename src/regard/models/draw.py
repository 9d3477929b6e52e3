"""Random numbers for initial weights: the same weights for every parallel layout.

Models of up to `MAX_SEQUENTIAL` parameters draw all weights from one generator; a rank that holds shards draws every
full tensor and keeps its part. In larger models a number depends only on the seed, the parameter and the position in
it (`keyed_random`), so a rank draws only its part. Before, every rank of a 70B model took nine minutes to draw all.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from itertools import count

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from regard.base.keyed_random import GOLDEN_GAMMA, Bits, make_key, scramble

MAX_SEQUENTIAL = 2**28
CHUNK = 2**15  # numbers at a time; the arrays fit into a processor's cache
Locate = Callable[[Tensor], tuple[Tensor, Tensor]]
Floats = NDArray[np.float64]


class WeightSource:
    """Fills parameters with random numbers.

    Args:
        seed: Random seed.
        device: Device of the generator.
        locate: Returns this rank's part of a sharded parameter, and the view of the full tensor that it is, on the
            device "meta". By default parameters are filled in place.
        is_keyed: Whether each number depends only on its position.
    """

    def __init__(self, seed: int, device: torch.device, locate: Locate | None, *, is_keyed: bool) -> None:
        self.generator = torch.Generator(device="cpu" if locate is not None else device)
        self.generator.manual_seed(seed)
        self._seed, self._locate, self._is_keyed = seed, locate, is_keyed
        self._numbers = count()  # of the parameters, in the order in which they are filled
        self._threads = torch.get_num_threads()
        self._pool = ThreadPoolExecutor(self._threads)
        # Allocated once: freed memory may return to the system, and its pages would be cleared for every parameter.
        self._buffers = np.empty((self._threads, 3, CHUNK if is_keyed else 0), np.uint64)

    def fill_normal(self, weight: Tensor, std: float) -> None:
        """Fill with normally distributed numbers of mean 0."""
        if self._is_keyed:
            self._fill_keyed(weight, _to_normal, std)
            return
        with self._full(weight) as whole:
            nn.init.normal_(whole, std=std, generator=self.generator)

    def fill_uniform(self, weight: Tensor, bound: float) -> None:
        """Fill with numbers uniformly distributed between -bound and bound."""
        if self._is_keyed:
            self._fill_keyed(weight, _to_uniform, bound)
            return
        with self._full(weight) as whole:
            nn.init.uniform_(whole, -bound, bound, generator=self.generator)

    @contextmanager
    def _full(self, weight: Tensor) -> Iterator[Tensor]:
        """Yield the full tensor to fill; keep this rank's part of it."""
        if self._locate is None:
            yield weight
            return
        whole = torch.empty(weight.shape)
        yield whole
        local, part = self._locate(weight)
        local.copy_(whole.as_strided(part.shape, part.stride(), part.storage_offset()))

    def _fill_keyed(self, weight: Tensor, convert: Callable[[Bits, Bits, Floats], None], scale: float) -> None:
        """Fill this rank's part, in threads."""
        local, part = (weight, weight) if self._locate is None else self._locate(weight)
        key, filled = make_key(self._seed, next(self._numbers)), np.empty(part.numel(), np.float32)
        steps, blocks = _split(part)

        def fill(thread: int) -> None:
            for start, position, size in blocks[thread :: self._threads]:
                bits, scratch, values = self._buffers[thread, :, :size]
                np.add(steps[:size], key + np.array([position], np.uint64) * GOLDEN_GAMMA, out=bits)
                scramble(bits, scratch)
                convert(bits, scratch, values.view(np.float64))
                np.multiply(values.view(np.float64), scale, out=filled[start : start + size], casting="same_kind")

        list(self._pool.map(fill, range(self._threads)))
        local.copy_(torch.from_numpy(filled).view(part.shape))


def _split(part: Tensor) -> tuple[Bits, list[tuple[int, int, int]]]:
    """Split a part into blocks whose numbers are at the same distances from the first one.

    Returns:
        The steps of `keyed_random.derive` for the distances in the full tensor, and for each block its start in the
        part, its start in the full tensor, and its size.
    """
    rows, columns, stride = (1, part.numel(), 0) if part.is_contiguous() else (*part.shape, part.stride(0))
    height, width = min(rows, max(1, CHUNK // max(1, columns))), min(columns, CHUNK)
    blocks = [
        (
            row * columns + column,
            part.storage_offset() + row * stride + column,
            min(height, rows - row) * min(width, columns - column),
        )
        for row in range(0, rows, height)
        for column in range(0, columns, CHUNK)
    ]
    return _make_steps(height, width, stride), blocks


@lru_cache(maxsize=16)
def _make_steps(height: int, width: int, stride: int) -> Bits:
    distances = (np.arange(height)[:, None] * stride + np.arange(width)).ravel().astype(np.uint64)
    return (distances + np.uint64(1)) * GOLDEN_GAMMA


def _to_uniform(bits: Bits, scratch: Bits, values: Floats) -> None:
    """Write numbers in [-1, 1)."""
    np.multiply(np.right_shift(bits, np.uint64(11), out=scratch), 2.0**-52, out=values)
    values -= 1


def _to_normal(bits: Bits, scratch: Bits, values: Floats) -> None:
    """Write normally distributed numbers (Box and Muller 1958), each from its own bits: 32 for the radius and 32."""
    np.multiply(np.right_shift(bits, np.uint64(32), out=scratch), 2.0**-32, out=values)
    values += 2.0**-33  # between 0 and 1, both excluded
    angles = scratch.view(np.float64)
    np.multiply(np.bitwise_and(bits, np.uint64(2**32 - 1), out=bits), 2 * np.pi * 2.0**-32, out=angles)
    torch.from_numpy(values).log_().mul_(-2).sqrt_().mul_(torch.from_numpy(angles).cos_())  # faster than NumPy
