"""The data loader: yields the batches of one rank in their order, from any position.

loader = Loader(shards, rows, OrderSettings(seed=1, max_tokens=4096), rank=0, world_size=1)
for step in loader.steps(position):     # epoch after epoch, without end
    for batch in step.batches: ...
    position = step.next_position         # a checkpoint stores it
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from regard.base.errors import RegardError
from regard.data.batches.batch import Batch, empty_batch, make_batch
from regard.data.batches.order import BatchSamples, DataPosition, Order, OrderSettings, Window, batches_of_rank
from regard.data.batches.rows import RowMaker
from regard.data.batches.subword_noise import Resegmenter
from regard.data.batches.tombstones import Tombstones
from regard.data.batches.too_long import TooLong
from regard.data.batches.window_reader import WindowReader
from regard.data.shards.shard import Shards

N_PROBE_LENGTHS = 2048  # sample lengths whose row lengths identify a task in the fingerprint


@dataclass(frozen=True)
class StepBatches:
    """The batches of a rank between two optimizer steps; every rank has the same number of batches."""

    batches: tuple[Batch, ...]
    next_position: DataPosition


class Loader:
    """Reads a corpus of shards as batches of a task. Its only state is a `DataPosition`.

    Args:
        shards: The corpus.
        rows: Turns samples into inputs and labels.
        settings: Seed, token budget and maximum length.
        rank: The rank of this process.
        world_size: Number of ranks.
        gradient_accumulation: Global batches per step, summed over all ranks.
        resegment: Adds subword noise to the stored tokens (`subword_noise.resegmenter`).
        removed: Lines of each corpus file whose samples are removed (`tombstones`).

    Raises:
        RegardError: If the corpus, the task and the noise are incompatible.
    """

    def __init__(
        self,
        shards: Shards,
        rows: RowMaker,
        settings: OrderSettings,
        *,
        rank: int = 0,
        world_size: int = 1,
        gradient_accumulation: int = 1,
        resegment: Resegmenter | None = None,
        removed: Mapping[str, Sequence[int]] | None = None,
    ) -> None:
        if shards.streams[: len(rows.needs)] != rows.needs:
            raise RegardError(
                f"The task needs {' and '.join(rows.needs)}; the corpus has {' and '.join(shards.streams)}.",
                hint="Choose another task, or a corpus with the fields that the task needs.",
            )
        if resegment is not None and (reason := _find_obstacle_to_noise(rows)):
            raise RegardError(reason, hint="Set tokenizer.dropout (or sampling) to 0.")
        if settings.packs_sequences != rows.packs_sequences:
            raise RegardError("The order and the task must both be packed, or neither.", hint="Set packed=task.packed.")
        self.shards = shards
        self.rows = rows
        self.rank, self.world_size, self.gradient_accumulation = rank, world_size, gradient_accumulation
        # A task with other row lengths gives another order of batches: its lengths belong to the fingerprint.
        probe_lengths = rows.row_lengths(np.tile(np.arange(N_PROBE_LENGTHS), (len(rows.needs), 1)))
        identity = f"{shards.identity} {hashlib.sha256(probe_lengths.astype('<i8').tobytes()).hexdigest()}"
        self.order = Order(shards.counts, self._row_lengths, settings, weights=shards.weights, identity=identity)
        self.too_long = TooLong.excluded(self.order, rows, shards)
        self.truncated = TooLong.truncated(rows, shards)
        self._window_reader: WindowReader | None = None
        self._empty_batch = empty_batch(rows)
        self._resegment = resegment
        self._tombstones = Tombstones(shards, removed) if removed else None

    def steps(self, position: DataPosition | None = None) -> Iterator[StepBatches]:
        """Yield the batches of each step from a position (default: the start), epoch after epoch without end."""
        position = self.order.start if position is None else self.order.resume(position)
        while True:
            batches = self._plan_batches(
                position.epoch, position.next_global_batch, position.window, position.window_start
            )
            end = position.next_global_batch
            current_plan = list(islice(batches, self.gradient_accumulation))
            while current_plan:
                next_plan = list(islice(batches, self.gradient_accumulation))  # shows whether this step is the last
                start, end = current_plan[0][0], current_plan[-1][0] + 1
                next_position = DataPosition(position.epoch + 1, 0, position.fingerprint)
                if next_plan:
                    _, window, _ = next_plan[0]
                    next_position = DataPosition(position.epoch, end, position.fingerprint, window.index, window.start)
                plan_by_number = {number: (window, batch_samples) for number, window, batch_samples in current_plan}
                numbers = batches_of_rank(start, end, self.rank, self.world_size)
                rank_batches = (
                    self._empty_batch if number is None else self._make_batch(number, *plan_by_number[number])
                    for number in numbers
                )
                yield StepBatches(tuple(rank_batches), next_position)
                current_plan = next_plan
            if not end:
                raise self._no_batch_error()
            position = DataPosition(position.epoch + 1, 0, position.fingerprint)

    def iter_epoch(self, number: int = 0, max_batches: int | None = None) -> Iterator[Batch]:
        """Yield this rank's share of the batches of an epoch, for validation: batch b goes to rank b mod world_size.

        All ranks get the same number of batches; the last may be empty. The first `max_batches` of all ranks together
        are a random sample of the epoch, always the same.
        """
        index = None
        for index, window, batch_samples in islice(self._plan_batches(number), max_batches):
            if index % self.world_size == self.rank:
                yield self._make_batch(index, window, batch_samples)
        if index is None:
            raise self._no_batch_error()
        if index % self.world_size < self.rank:
            yield self._empty_batch

    def iter_targets(self, number: int = 0) -> Iterator[list[int]]:
        """Yield the target tokens of every sample of an epoch; a packed document is yielded whole, not row by row."""
        stream, offsets = len(self.rows.needs) - 1, dict[int, NDArray[np.int64]]()
        for _, _, batch_samples in self._plan_batches(number):
            sample_numbers = (
                batch_samples.samples
                if batch_samples.starts is None
                else batch_samples.samples[batch_samples.starts == 0]
            )
            for sample in sample_numbers.tolist():
                shard_number = int(np.searchsorted(self.shards.sample_offsets, sample, side="right")) - 1
                shard, local_number = (
                    self.shards.shards[shard_number],
                    sample - int(self.shards.sample_offsets[shard_number]),
                )
                if shard_number not in offsets:
                    offsets = {shard_number: shard.offsets()}
                prefix_length, target_length = (
                    shard.lengths[:stream, local_number].sum(dtype=np.int64),
                    shard.lengths[stream, local_number],
                )
                start = offsets[shard_number][local_number] + prefix_length
                yield self.shards.load_tokens(shard_number)[start : start + target_length].tolist()

    def _plan_batches(
        self, epoch: int, start: int = 0, window: int = 0, window_start: int = 0
    ) -> Iterator[tuple[int, Window, BatchSamples]]:
        """Yield the batches of `Order.batches`. The first window is downloaded in parallel, not when it is read."""
        if window < self.order.window_count:
            self.shards.prefetch(self.order.window_shards(epoch, window).tolist())
        yield from self.order.batches(epoch, start, window, window_start)

    def _make_batch(self, number: int, window: Window, batch_samples: BatchSamples) -> Batch:
        if self._window_reader is None or self._window_reader.shard_numbers != window.shards:
            self._window_reader = WindowReader(self.shards, window.shards, len(self.rows.needs))
            self.shards.prefetch(window.next_shards)
        records = self._window_reader.read(batch_samples)
        if self._resegment is not None:
            records = self._resegment(records)
        records = replace(records, shapes=self.order.settings.shapes)
        if self._tombstones is None:
            return make_batch(number, records, self.rows.make_arrays(records))
        arrays = self.rows.make_arrays(self._tombstones.blank(records))
        return make_batch(number, records, self._tombstones.ignore_labels(records, arrays))

    def _no_batch_error(self) -> RegardError:
        hint = str(self.too_long) if len(self.too_long) else "Give its sources larger weights, or more text."
        return RegardError("The corpus is too small for one batch.", hint=hint)

    def _row_lengths(self, shard: int) -> NDArray[np.integer]:
        return self.rows.row_lengths(self.shards.shards[shard].lengths[: len(self.rows.needs)])


def _find_obstacle_to_noise(rows: RowMaker) -> str | None:
    """Return why a task cannot have subword noise; None if it can."""
    if rows.packs_sequences:
        return "Packed text cannot have subword noise: its rows are planned from the stored tokens."
    if not {"image", "audio"}.isdisjoint(rows.needs):
        return "Images and audio clips cannot have subword noise, because they have no subwords."
    return "Tagged text cannot have subword noise: every stored token has its tag." if "tags" in rows.needs else None
