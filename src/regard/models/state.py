"""What a generating model carries from step to step. Search sees its verbs and nothing else."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from regard.nn.kv_cache import KVCache


@dataclass
class DecodingState:
    """The rows being written: their cache, and which parts of their memory are real."""

    kv_cache: KVCache
    memory_valid: Tensor | None  # (B, S), a row for each row of the cache's memory

    def reorder(self, index: Tensor) -> None:
        """Row i becomes what row index[i] was; rows may be repeated, dropped or moved. (On the CPU nobody waits.)"""
        kept_rows = self.kv_cache.reorder(index)  # (B)
        if self.memory_valid is not None and kept_rows is not None:
            self.memory_valid = self.memory_valid.index_select(0, kept_rows)

    def crop(self, lengths: int | Sequence[int]) -> None:
        """Take back all tokens beyond these lengths: one for all rows, or one for each."""
        self.kv_cache.crop(lengths)

    @property
    def bytes(self) -> int:
        """What the state's cache occupies."""
        return self.kv_cache.bytes
