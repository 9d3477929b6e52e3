"""Samples that are too long: excluded or truncated, but always counted and located."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from regard.base.files import write_atomic
from regard.data.batches.order import Order
from regard.data.batches.rows import RowMaker, TruncatingRows
from regard.data.example import Location
from regard.data.shards.shard import Shard, Shards


@dataclass(frozen=True)
class TooLong:
    """The samples that are too long: location in the corpus, and tokens of the longer side."""

    max_length: int
    samples: tuple[tuple[int, Location, int], ...]  # sample number, location, length
    status: str = "excluded"  # or "truncated"

    @classmethod
    def excluded(cls, order: Order, rows: RowMaker, shards: Shards) -> "TooLong":
        """Find the samples that the order excludes."""

        def longest(shard: int) -> int:
            return int(rows.row_lengths(_longest_streams(shards.shards[shard], rows)).max())

        limit = order.settings.length_limit
        if not order.settings.packs_sequences:
            shards.load_tables(number for number in range(len(shards.shards)) if longest(number) > limit)
        samples = tuple((sample, shards.locate(sample), length) for sample, length in order.iter_too_long(longest))
        return cls(limit, samples)

    @classmethod
    def truncated(cls, rows: RowMaker, shards: Shards) -> "TooLong":
        """Find the samples that rows truncate."""
        if not isinstance(rows, TruncatingRows) or rows.max_length is None:
            return cls(0, ())
        samples: list[tuple[int, Location, int]] = []
        longest = [rows.untruncated_lengths(_longest_streams(shard, rows)).max() for shard in shards.shards]
        numbers = [number for number, length in enumerate(longest) if length > rows.max_length]
        shards.load_tables(numbers)
        for number in numbers:
            shard, offset = shards.shards[number], int(shards.sample_offsets[number])
            (lengths,) = rows.untruncated_lengths(shard.lengths[: len(rows.needs)])
            too_long = np.flatnonzero(lengths > rows.max_length).tolist()
            samples += [(offset + sample, shard.locate(sample), int(lengths[sample])) for sample in too_long]
        return cls(rows.max_length, tuple(samples), status="truncated")

    def __len__(self) -> int:
        return len(self.samples)

    def __str__(self) -> str:
        if not self.samples:
            return f"No sample has more than {self.max_length} tokens."
        _, location, length = self.samples[0]
        if len(self) == 1:
            return f"1 sample has more than {self.max_length} tokens ({length}) and is {self.status}: {location}."
        message = f"{len(self):,} samples have more than {self.max_length} tokens and are {self.status}"
        return f"{message}; the first, with {length}, is {location}."

    def save(self, path: Path) -> None:
        """Write one line per sample: its location and length."""
        lines = [f"{location}\t{length} tokens, more than {self.max_length}\n" for _, location, length in self.samples]
        write_atomic(path, "".join(lines).encode())


def _longest_streams(shard: Shard, rows: RowMaker) -> NDArray[np.int64]:
    """Return the length of the longest sample of each stream, (streams, 1)."""
    return np.array(shard.longest[: len(rows.needs)], np.int64)[:, None]
