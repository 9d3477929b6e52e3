"""Samples that are too long for any batch, or for more than their beginning: counted and named, never lost silently."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from regard.base.files import write_atomic
from regard.data.example import Where
from regard.data.order import Order
from regard.data.shards import Shards
from regard.data.tasks import Classify, Task


@dataclass(frozen=True)
class Quarantine:
    """What was too long: its place in the corpus, and how many tokens its longer side has."""

    limit: int
    samples: tuple[tuple[int, Where, int], ...]  # number, place, length
    fate: str = "set aside"

    @classmethod
    def of(cls, order: Order, shards: Shards) -> "Quarantine":
        """What this order leaves out of this corpus."""
        found = tuple((sample, shards.where(sample), length) for sample, length in order.too_long())
        return cls(order.rules.limit, found)

    @classmethod
    def in_part(cls, task: Task, shards: Shards) -> "Quarantine":
        """What a task reads of this corpus in part."""
        if not isinstance(task, Classify) or task.longest is None:
            return cls(0, ())
        found: list[tuple[int, Where, int]] = []
        for shard, base in zip(shards.shards, shards.bases.tolist(), strict=False):
            (lengths,) = task.whole(shard.lengths[: len(task.needs)])
            long = np.flatnonzero(lengths > task.longest).tolist()
            found += [(base + sample, shard.where(sample), int(lengths[sample])) for sample in long]
        return cls(task.longest, tuple(found), fate="read only to there")

    def __len__(self) -> int:
        return len(self.samples)

    def __str__(self) -> str:
        if not self.samples:
            return f"No sample has more than {self.limit} tokens."
        _, where, length = self.samples[0]
        if len(self) == 1:
            return f"1 sample has more than {self.limit} tokens ({length}) and is {self.fate}: {where}."
        what = f"{len(self):,} samples have more than {self.limit} tokens and are {self.fate}"
        return f"{what}; the first, with {length}, is {where}."

    def save(self, path: Path) -> None:
        """A line for each: its place and its length."""
        lines = [f"{where}\t{length} tokens, more than {self.limit}\n" for _, where, length in self.samples]
        write_atomic(path, "".join(lines).encode())
