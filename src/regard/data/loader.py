"""Batches in their order, for one of any number of ranks, from any position on.

loader = Loader(shards, task, Rules(seed=1, budget=4096), rank=0, world=1)
for update in loader.updates(position):     # epoch after epoch, as long as it is asked
    for batch in update.batches: ...
    position = update.after                 # what a checkpoint keeps
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from regard.base.errors import RegardError
from regard.data.batch import Batch, batch, empty
from regard.data.order import Order, Picked, Position, Rules, Window, share
from regard.data.quarantine import Quarantine
from regard.data.reach import Reach
from regard.data.recut import Recut
from regard.data.shards import Shards
from regard.data.tasks import Task

PROBED = 2048  # lengths


@dataclass(frozen=True)
class Update:
    """What a rank does between two steps of the optimiser; every rank has equally many batches."""

    batches: tuple[Batch, ...]
    after: Position


class Loader:
    """Reads a corpus of shards as batches of a task. Its state is a `Position`; nothing else needs saving."""

    def __init__(
        self,
        shards: Shards,
        task: Task,
        rules: Rules,
        *,
        rank: int = 0,
        world: int = 1,
        together: int = 1,
        recut: Recut | None = None,
    ) -> None:
        """`together` global batches make an update, whatever the number of ranks is; `recut` adds noise to cuts."""
        if shards.streams[: len(task.needs)] != task.needs:
            raise RegardError(
                f"The task needs {' and '.join(task.needs)}; the corpus has {' and '.join(shards.streams)}.",
                fix="Choose another task, or sources that have what this one needs.",
            )
        if recut is not None and task.packed:
            raise RegardError(
                "Running text is packed as it is cut: it cannot be cut by chance.",
                fix="Set tokenizer.dropout (or sampling) to 0.",
            )
        if recut is not None and "tags" in task.needs:
            raise RegardError(
                "Each piece has its tag, so a tagged text cannot be cut by chance.",
                fix="Set tokenizer.dropout (or sampling) to 0.",
            )
        if rules.packed != task.packed:
            raise RegardError("The order and the task must both be packed, or neither.", fix="Set packed=task.packed.")
        self.shards = shards
        self.task = task
        self.rank, self.world, self.together = rank, world, together
        probe = task.measure(np.tile(np.arange(PROBED), (len(task.needs), 1)))  # measured otherwise: another order
        identity = f"{shards.identity} {hashlib.sha256(probe.astype('<i8').tobytes()).hexdigest()}"
        self.order = Order(shards.counts, self._measured, rules, weights=shards.weights, identity=identity)
        self.quarantine = Quarantine.of(self.order, shards)
        self.in_part = Quarantine.in_part(task, shards)
        self._reach: Reach | None = None
        self._empty = empty(task)
        self._recut = recut

    def updates(self, position: Position | None = None) -> Iterator[Update]:
        """Updates from a position on (or the start), epoch after epoch without end."""
        position = self.order.start if position is None else self.order.resume(position)
        while True:
            batches = self.order.batches(position.epoch, position.next_global_batch)
            seen = position.next_global_batch
            upcoming = list(islice(batches, self.together))
            while upcoming:
                following = list(islice(batches, self.together))  # known before, so that the last update knows it is
                first, seen = upcoming[0][0], upcoming[-1][0] + 1
                after = Position(position.epoch, seen, position.fingerprint)
                if not following:
                    after = Position(position.epoch + 1, 0, position.fingerprint)
                planned = {number: (window, picked) for number, window, picked in upcoming}
                mine = share(first, seen, self.rank, self.world)
                yield Update(tuple(self._batch(number, planned) for number in mine), after)
                upcoming = following
            if not seen:
                raise self._nothing()
            position = Position(position.epoch + 1, 0, position.fingerprint)

    def epoch(self, number: int = 0) -> Iterator[Batch]:
        """All batches of an epoch, for one rank alone (a validation, say)."""
        index = None
        for index, window, picked in self.order.batches(number):
            yield self._made(index, window, picked)
        if index is None:
            raise self._nothing()

    def written(self, number: int = 0) -> Iterator[list[int]]:
        """What must come out in an epoch, sample by sample: whole texts, however rows are cut from them."""
        stream, begins = len(self.task.needs) - 1, dict[int, NDArray[np.int64]]()
        for _, _, picked in self.order.batches(number):
            opening = picked.samples if picked.begins is None else picked.samples[picked.begins == 0]
            for sample in opening.tolist():
                place = int(np.searchsorted(self.shards.bases, sample, side="right")) - 1
                shard, inner = self.shards.shards[place], sample - int(self.shards.bases[place])
                if place not in begins:
                    begins = {place: shard.begins()}
                first, last = shard.lengths[:stream, inner].sum(dtype=np.int64), shard.lengths[stream, inner]
                start = begins[place][inner] + first
                yield self.shards.tokens(place)[start : start + last].tolist()

    def _batch(self, number: int | None, planned: dict[int, tuple[Window, Picked]]) -> Batch:
        return self._empty if number is None else self._made(number, *planned[number])

    def _made(self, number: int, window: Window, picked: Picked) -> Batch:
        if self._reach is None or self._reach.numbers != window.shards:
            self._reach = Reach(self.shards, window.shards, len(self.task.needs))
            self.shards.prefetch(window.following)
        records = self._reach.records(picked)
        if self._recut is not None:
            records = self._recut(records)
        records = replace(records, shapes=self.order.rules.shapes)
        return batch(number, records, self.task.rows(records))

    def _nothing(self) -> RegardError:
        fix = str(self.quarantine) if len(self.quarantine) else "Give its sources larger weights, or more text."
        return RegardError("No batch can be made of this corpus.", fix=fix)

    def _measured(self, shard: int) -> NDArray[np.integer]:
        return self.task.measure(self.shards.shards[shard].lengths[: len(self.task.needs)])
