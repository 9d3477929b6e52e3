"""What a generating model carries from step to step. Search sees its verbs and nothing else."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from regard.nn.cache import Cache


@dataclass
class State:
    """The rows being written: their cache, and which parts of their memory are real."""

    cache: Cache
    memory_real: Tensor | None  # (B, S), a row for each row of the cache's memory

    def reorder(self, index: Tensor) -> None:
        """Row i becomes what row index[i] was; rows may be repeated, dropped or moved. (On the CPU nobody waits.)"""
        left = self.cache.reorder(index)  # (B)
        if self.memory_real is not None and left is not None:
            self.memory_real = self.memory_real.index_select(0, left)

    def crop(self, lengths: int | Sequence[int]) -> None:
        """Take back all tokens beyond these lengths: one for all rows, or one for each."""
        self.cache.crop(lengths)

    @property
    def bytes(self) -> int:
        """What the state's cache occupies."""
        return self.cache.bytes
