"""Batch order: the samples of batch b in epoch e, a pure function of (seed, epoch) and the samples' lengths.

    permute the shards -> take a window of K shards -> permute their samples -> sort pools by length
        -> cut batches by the token budget -> spread the batches of the window

Running text is packed into full rows instead of sorted. Global batch b goes to rank b mod W. The order does not depend
on W, on earlier batches, or on the machine: a `DataPosition` is enough to resume with any number of ranks. Windows are
planned one at a time, so the plan of a corpus of any size takes the memory of one window, and resuming in any window
takes the time of one.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
from numpy.typing import NDArray

from regard.base.errors import RegardError
from regard.base.keyed_random import derive, make_key, permutation, spread_permutation
from regard.data.batches.cutting import (
    MAX_LENGTH,
    MAX_POOL_SIZE,
    BatchShapes,
    Indices,
    Lengths,
    cut_by_tokens,
    pack_documents,
    sort_by_length,
)
from regard.data.batches.mixture import Draws, draw

SHARDS, SAMPLES, BATCHES, WEIGHTS = range(4)  # purpose of a key: each shuffle has its own random stream


@dataclass(frozen=True)
class OrderSettings:
    """The settings that decide the order, apart from the samples themselves."""

    seed: int = 1
    max_tokens: int = 4096  # rows x longer side of a batch
    max_length: int = 1024  # longer samples are excluded; the length of a packed row
    packs_sequences: bool = False
    few_shapes: bool = True  # round the shapes of batches (CPU fast path)
    window_size: int = 16  # shards that are mixed with each other
    pool_size: int = 131072  # samples that are sorted by length together

    @property
    def length_limit(self) -> int:
        """Maximum length of a sample in a batch."""
        return min(self.max_length, self.max_tokens)

    @property
    def shapes(self) -> BatchShapes:
        """Allowed shapes of batches that are not packed."""
        return BatchShapes(self.max_tokens, self.length_limit, self.few_shapes)


@dataclass(frozen=True)
class DataPosition:
    """The position of a run in its data, which a checkpoint stores."""

    epoch: int
    next_global_batch: int
    fingerprint: str
    window: int = 0
    """The window of the next batch, or an earlier one."""
    window_start: int = 0
    """The first global batch of that window."""


@dataclass(frozen=True)
class BatchSamples:
    """The samples of one batch. Packed: segments of samples, with the row of each segment."""

    samples: Indices
    draws: Draws  # how often each was drawn before: at weight 1, the epoch
    starts: Indices | None = None
    lengths: Indices | None = None
    rows: Indices | None = None


@dataclass(frozen=True)
class Window:
    """The plan of a few shards: all batches of their samples."""

    shards: tuple[int, ...]
    next_shards: tuple[int, ...]  # the shards of the next window
    samples: Indices
    draws: Draws
    boundaries: NDArray[np.int64]  # where each batch (packed: each row) begins, and the end
    batch_order: Indices  # batches (packed: rows) in training order
    rows_per_batch: int = 1  # if packed
    starts: Indices | None = None  # packed only, as is `lengths`
    lengths: Indices | None = None
    index: int = 0  # of the window in its epoch
    start: int = 0  # the global number of its first batch

    def __len__(self) -> int:
        return -(-self.batch_order.size // self.rows_per_batch)

    def __getitem__(self, number: int) -> BatchSamples:
        if self.starts is None or self.lengths is None:
            batch = self.batch_order[number]
            span = slice(self.boundaries[batch], self.boundaries[batch + 1])
            return BatchSamples(self.samples[span], self.draws[span])
        row_numbers = self.batch_order[number * self.rows_per_batch : (number + 1) * self.rows_per_batch]
        sizes = self.boundaries[row_numbers + 1] - self.boundaries[row_numbers]
        rows = np.repeat(np.arange(row_numbers.size), sizes)
        indices = np.repeat(self.boundaries[row_numbers] - np.cumsum(sizes) + sizes, sizes) + np.arange(rows.size)
        return BatchSamples(
            self.samples[indices], self.draws[indices], self.starts[indices], self.lengths[indices], rows
        )


class Order:
    """The batches of every epoch.

    Args:
        counts: Number of samples of each shard.
        lengths: Returns the row lengths (sides, samples) of a shard's samples; called window by window.
        settings: Seed, token budget and lengths.
        weights: For each shard, how often an epoch draws each of its samples.
        identity: The sha256 of the shards' content; together with the settings it gives the fingerprint.

    >>> order = Order([4], lambda shard: np.array([[5, 9, 5, 2]]), OrderSettings(max_tokens=10))
    >>> [batch.samples.tolist() for _, _, batch in order.batches(epoch=0)]
    [[3, 2], [1], [0]]
    """

    def __init__(
        self,
        counts: Sequence[int],
        lengths: Callable[[int], Lengths],
        settings: OrderSettings,
        *,
        weights: Sequence[float] | None = None,
        identity: str = "",
    ) -> None:
        if settings.packs_sequences and settings.max_tokens < settings.max_length:
            raise RegardError(
                f"A batch of {settings.max_tokens} tokens cannot hold a row of {settings.max_length}.",
                hint="Make data.batch_tokens at least data.max_length.",
            )
        if not settings.packs_sequences and (settings.length_limit > MAX_LENGTH or settings.pool_size > MAX_POOL_SIZE):
            raise RegardError(f"A sample has at most {MAX_LENGTH} tokens, and a pool at most {MAX_POOL_SIZE} samples.")
        self.settings = settings
        self.sample_offsets = np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))  # the first sample of each shard
        self._lengths = lengths
        self._weights = tuple(weights) if weights is not None else (1.0,) * len(counts)
        content = {"format": 3, "rules": asdict(settings), "counts": list(map(int, counts)), "identity": identity}
        content["weights"] = self._weights
        self.fingerprint = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    @property
    def start(self) -> DataPosition:
        """The position before the first batch."""
        return DataPosition(0, 0, self.fingerprint)

    @property
    def window_count(self) -> int:
        """Number of windows per epoch."""
        return -(-(self.sample_offsets.size - 1) // self.settings.window_size)

    def batches(
        self, epoch: int, start: int = 0, window: int = 0, window_start: int = 0
    ) -> Iterator[tuple[int, Window, BatchSamples]]:
        """Yield the batches of an epoch from a position (see `DataPosition`): number, window, samples."""
        for index in range(window, self.window_count):
            plan = replace(self.plan_window(epoch, index), index=index, start=window_start)
            for local in range(max(0, start - window_start), len(plan)):
                yield window_start + local, plan, plan[local]
            window_start += len(plan)

    def window_shards(self, epoch: int, index: int) -> Indices:
        """Return the shards of a window; one past the last window gives the first window of the next epoch."""
        if index == self.window_count:
            epoch, index = epoch + 1, 0
        shards = permutation(make_key(self.settings.seed, SHARDS, epoch), self.sample_offsets.size - 1)
        return shards[index * self.settings.window_size : (index + 1) * self.settings.window_size]

    def plan_window(self, epoch: int, index: int) -> Window:
        """Plan all batches of one window of an epoch."""
        settings = self.settings
        shards = self.window_shards(epoch, index)
        samples, draws, lengths = self._draw_samples(shards, epoch)
        stride = int(draws.max(initial=0)) + 1  # sample * stride + draw is unique
        order = np.argsort(derive(make_key(settings.seed, SAMPLES, epoch), samples * stride + draws))
        shard_numbers = tuple(shards.tolist()), tuple(self.window_shards(epoch, index + 1).tolist())
        order_key = make_key(settings.seed, BATCHES, epoch, index)
        if settings.packs_sequences:
            segments = pack_documents(lengths[0, order], settings.max_length)
            documents = order[segments.documents]
            return Window(
                *shard_numbers,
                samples[documents],
                draws[documents],
                boundaries=segments.row_offsets,
                batch_order=permutation(order_key, segments.row_offsets.size - 1),
                rows_per_batch=settings.max_tokens // settings.max_length,
                starts=segments.starts,
                lengths=segments.lengths,
            )
        boundaries: list[int] = []
        shortest_lengths: list[NDArray[np.int64]] = []  # length of the shortest sample of each batch
        for start in range(0, order.size, settings.pool_size):
            pool = order[start : start + settings.pool_size]
            pool_lengths = lengths.take(pool, axis=1)
            length_order = sort_by_length(pool_lengths)
            pool[:] = pool[length_order]
            longer_side = pool_lengths.max(axis=0)[length_order]
            starts = cut_by_tokens(longer_side, settings.shapes)
            shortest_lengths.append(longer_side[starts])
            boundaries += [start + boundary for boundary in starts]
        # Spread lengths: a step of a few neighboring batches has short and long sentences, and converges faster.
        length_ranking = (
            np.argsort(np.concatenate(shortest_lengths), kind="stable") if boundaries else np.zeros(0, np.int64)
        )
        batch_order = length_ranking[spread_permutation(order_key, len(boundaries))]
        return Window(
            *shard_numbers, samples[order], draws[order], np.array([*boundaries, order.size], np.int64), batch_order
        )

    def iter_too_long(self, longest: Callable[[int], int] | None = None) -> Iterator[tuple[int, int]]:
        """Yield the samples that no batch can hold, with their lengths. Packed text is cut, so none is too long.

        Args:
            longest: Returns the length of a shard's longest row, so that the lengths of most shards are not read.
        """
        if self.settings.packs_sequences:
            return
        for shard, offset in enumerate(self.sample_offsets[:-1].tolist()):
            if longest is not None and longest(shard) <= self.settings.length_limit:
                continue
            longer_side = self._lengths(shard).max(axis=0)
            for sample in np.flatnonzero(longer_side > self.settings.length_limit).tolist():
                yield offset + sample, int(longer_side[sample])

    def resume(self, position: DataPosition) -> DataPosition:
        """Return the same position; raise RegardError if its fingerprint differs from that of this order."""
        if position.fingerprint != self.fingerprint:
            raise RegardError(
                "The data, or settings that decide its order, have changed since this position was saved.",
                location=f"epoch {position.epoch}, batch {position.next_global_batch}",
                hint="Restore the corpus, the tokenizers and the [data] settings, or start a new run.",
            )
        if not 0 <= position.window < self.window_count:
            raise RegardError(
                f"The position is in window {position.window}, but an epoch has {self.window_count}.",
                location=f"epoch {position.epoch}, batch {position.next_global_batch}",
                hint="Restore the checkpoint, or start a new run.",
            )
        return position

    def _draw_samples(self, shards: Indices, epoch: int) -> tuple[Indices, Draws, Lengths]:
        """Draw the epoch's samples from these shards: samples, how often each was drawn before, and lengths."""
        parts = []
        for shard in shards.tolist():
            lengths = self._lengths(shard)
            keys = make_key(self.settings.seed, WEIGHTS, shard)
            samples, draws = draw(keys, lengths.shape[1], self._weights[shard], epoch)
            if not self.settings.packs_sequences:
                fits = lengths.max(axis=0)[samples] <= self.settings.length_limit
                samples, draws = samples[fits], draws[fits]
            parts.append((samples + self.sample_offsets[shard], draws, lengths.take(samples, axis=1)))
        return (
            np.concatenate([part[0] for part in parts]),
            np.concatenate([part[1] for part in parts]),
            np.concatenate([part[2] for part in parts], axis=1),
        )


def batches_of_rank(start: int, stop: int, rank: int, world_size: int) -> list[int | None]:
    """List a rank's share of the global batches from `start` to `stop`: batch b goes to rank b mod world_size.

    None stands for an empty batch: all ranks get the same number of batches, so that no rank waits for another.

    >>> batches_of_rank(0, 5, rank=0, world_size=3), batches_of_rank(0, 5, rank=2, world_size=3)
    ([0, 3], [2, None])
    """
    numbers = range(start - start % world_size + rank, stop + -stop % world_size, world_size)
    return [number if start <= number < stop else None for number in numbers]
