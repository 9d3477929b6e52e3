"""Samples that are too long for any batch: counted and named, never dropped silently."""

from dataclasses import dataclass
from pathlib import Path

from regard.base.files import write_atomic
from regard.data.example import Where
from regard.data.order import Order
from regard.data.shards import Shards


@dataclass(frozen=True)
class Quarantine:
    """What was set aside: its place in the corpus, and how many tokens its longer side has."""

    limit: int
    samples: tuple[tuple[int, Where, int], ...]  # number, place, length

    @classmethod
    def of(cls, order: Order, shards: Shards) -> "Quarantine":
        """What this order leaves out of this corpus."""
        found = tuple((sample, shards.where(sample), length) for sample, length in order.too_long())
        return cls(order.rules.limit, found)

    def __len__(self) -> int:
        return len(self.samples)

    def __str__(self) -> str:
        if not self.samples:
            return f"No sample has more than {self.limit} tokens."
        _, where, length = self.samples[0]
        if len(self) == 1:
            return f"1 sample has more than {self.limit} tokens ({length}) and is set aside: {where}."
        what = f"{len(self)} samples have more than {self.limit} tokens and are set aside"
        return f"{what}; the first, with {length}, is {where}."

    def save(self, path: Path) -> None:
        """A line for each: its place and its length."""
        lines = [f"{where}\t{length} tokens, more than {self.limit}\n" for _, where, length in self.samples]
        write_atomic(path, "".join(lines).encode())
