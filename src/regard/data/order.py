"""Which samples make up batch b of epoch e: a pure function of (seed, epoch) and of the samples' lengths.

    permute the shards -> take a window of K shards -> permute their samples -> sort pools by length
        -> cut batches by the token budget -> scatter the batches of the window

Running text is packed into full rows instead of sorted. Global batch b goes to rank b mod W. Nothing here depends on
W, on what was read before, or on the machine: to go on after a stop, anywhere and with any number of ranks, it is
enough to know `{epoch, next_global_batch, fingerprint}`. Windows are planned one at a time, so that the plan of a
corpus of any size takes the memory of one window.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from regard.base.errors import RegardError
from regard.data.cuts import LONGEST, MOST, Lengths, Places, Shapes, by_budget, by_length, pack
from regard.data.mixture import Draws, drawn
from regard.data.noise import key, scattered, shuffled, spread

SHARDS, SAMPLES, BATCHES, WEIGHTS = range(4)  # what a key is for: each shuffle draws from a stream of its own


@dataclass(frozen=True)
class Rules:
    """What decides the order besides the samples themselves."""

    seed: int = 1
    budget: int = 4096  # rows x longer side of a batch
    longest: int = 1024  # longer samples are set aside; the length of a packed row
    packed: bool = False
    window: int = 16  # shards that are mixed with each other
    pool: int = 131072  # samples that are sorted by length together

    @property
    def limit(self) -> int:
        """The longest sample that can be in a batch."""
        return min(self.longest, self.budget)

    @property
    def shapes(self) -> Shapes:
        """Those of batches that are not packed."""
        return Shapes(self.budget, self.limit)


@dataclass(frozen=True)
class Position:
    """Where a run stands in its data; this is all that a checkpoint needs to keep."""

    epoch: int
    next_global_batch: int
    fingerprint: str


@dataclass(frozen=True)
class Picked:
    """The samples of one batch. Packed: pieces of them, with the row that each piece is in."""

    samples: Places
    draws: Draws  # how often each was drawn before: at weight 1, the epoch
    begins: Places | None = None
    lengths: Places | None = None
    rows: Places | None = None


@dataclass(frozen=True)
class Window:
    """The plan of a few shards: all batches of their samples."""

    shards: tuple[int, ...]
    following: tuple[int, ...]  # the shards of the next window
    samples: Places
    draws: Draws
    cuts: NDArray[np.int64]  # where each batch (packed: each row) begins, and the end
    turns: Places  # batches (packed: rows) in the order in which they come
    together: int = 1  # rows a batch, if packed
    begins: Places | None = None  # packed only, as is `lengths`
    lengths: Places | None = None

    def __len__(self) -> int:
        return -(-self.turns.size // self.together)

    def __getitem__(self, number: int) -> Picked:
        if self.begins is None or self.lengths is None:
            turn = self.turns[number]
            one = slice(self.cuts[turn], self.cuts[turn + 1])
            return Picked(self.samples[one], self.draws[one])
        turns = self.turns[number * self.together : (number + 1) * self.together]
        sizes = self.cuts[turns + 1] - self.cuts[turns]
        rows = np.repeat(np.arange(turns.size), sizes)
        many = np.repeat(self.cuts[turns] - np.cumsum(sizes) + sizes, sizes) + np.arange(rows.size)
        return Picked(self.samples[many], self.draws[many], self.begins[many], self.lengths[many], rows)


class Order:
    """The batches of every epoch.

    `lengths(shard)` gives the samples' lengths (sides, samples) as the task makes them; it is asked window by
    window. `identity` names the content of the shards (their sha256): with the rules it makes the fingerprint.

    >>> order = Order([4], lambda shard: np.array([[5, 9, 5, 2]]), Rules(budget=10))
    >>> [picked.samples.tolist() for _, _, picked in order.batches(epoch=0)]
    [[3, 2], [1], [0]]
    """

    def __init__(
        self,
        counts: Sequence[int],
        lengths: Callable[[int], Lengths],
        rules: Rules,
        *,
        weights: Sequence[float] | None = None,
        identity: str = "",
    ) -> None:
        if rules.packed and rules.budget < rules.longest:
            raise RegardError(
                f"A batch of {rules.budget} tokens has no room for a row of {rules.longest}.",
                fix="Make data.batch_tokens at least data.longest.",
            )
        if not rules.packed and (rules.limit > LONGEST or rules.pool > MOST):
            raise RegardError(f"A sample has at most {LONGEST} tokens, and a pool at most {MOST} samples.")
        self.rules = rules
        self.bases = np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))  # the first sample of each shard
        self._lengths = lengths
        self._weights = tuple(weights) if weights is not None else (1.0,) * len(counts)
        self._found: dict[tuple[int, int], int] = {}  # batches of the windows planned so far
        known = {"format": 3, "rules": asdict(rules), "counts": list(map(int, counts)), "identity": identity}
        known["weights"] = self._weights
        self.fingerprint = hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()

    @property
    def start(self) -> Position:
        """Before the first batch."""
        return Position(0, 0, self.fingerprint)

    @property
    def windows(self) -> int:
        """How many windows an epoch has."""
        return -(-(self.bases.size - 1) // self.rules.window)

    def batches(self, epoch: int, first: int = 0) -> Iterator[tuple[int, Window, Picked]]:
        """The batches of an epoch from global batch `first` on: number, window, samples."""
        number = 0
        for index in range(self.windows):
            known = self._found.get((epoch, index))
            if known is not None and number + known <= first:
                number += known
                continue
            window = self.plan(epoch, index)
            self._found[epoch, index] = len(window)
            for inner in range(max(0, first - number), len(window)):
                yield number + inner, window, window[inner]
            number += len(window)

    def shards_of(self, epoch: int, index: int) -> Places:
        """The shards of one window of an epoch; of the next epoch, if this one has no such window."""
        if index == self.windows:
            epoch, index = epoch + 1, 0
        shards = shuffled(key(self.rules.seed, SHARDS, epoch), self.bases.size - 1)
        return shards[index * self.rules.window : (index + 1) * self.rules.window]

    def plan(self, epoch: int, index: int) -> Window:
        """All batches of one window of an epoch."""
        rules = self.rules
        shards = self.shards_of(epoch, index)
        samples, draws, lengths = self._members(shards, epoch)
        order = np.argsort(spread(key(rules.seed, SAMPLES, epoch), samples * _most(draws) + draws))
        known = tuple(shards.tolist()), tuple(self.shards_of(epoch, index + 1).tolist())
        turn = key(rules.seed, BATCHES, epoch, index)
        if rules.packed:
            return _packed(*known, samples[order], draws[order], lengths[0, order], rules, turn)
        cuts: list[int] = []
        shortest: list[NDArray[np.int64]] = []  # sample of each batch
        for begin in range(0, order.size, rules.pool):
            pool = order[begin : begin + rules.pool]
            seen = lengths.take(pool, axis=1)
            sort = by_length(seen)
            pool[:] = pool[sort]
            longer = seen.max(axis=0)[sort]
            found = by_budget(longer, rules.shapes)
            shortest.append(longer[found])
            cuts += [begin + cut for cut in found]
        # Updates made of a few neighbours then have short and long sentences alike, which is quicker to learn from.
        by_size = np.argsort(np.concatenate(shortest), kind="stable") if cuts else np.zeros(0, np.int64)
        turns = by_size[scattered(turn, len(cuts))]
        return Window(*known, samples[order], draws[order], np.array([*cuts, order.size], np.int64), turns)

    def too_long(self) -> Iterator[tuple[int, int]]:
        """Samples that no batch can hold, with their lengths. Packed text is cut, so none is too long."""
        if self.rules.packed:
            return
        for shard, base in enumerate(self.bases[:-1].tolist()):
            longer = self._lengths(shard).max(axis=0)
            for sample in np.flatnonzero(longer > self.rules.limit).tolist():
                yield base + sample, int(longer[sample])

    def resume(self, position: Position) -> Position:
        """The position, if it belongs to this order; else an error that says so."""
        if position.fingerprint != self.fingerprint:
            raise RegardError(
                "The data or the rules of its order have changed since this position was saved.",
                where=f"epoch {position.epoch}, batch {position.next_global_batch}",
                fix="Restore the corpus, the vocabulary and the [data] settings, or start a new run.",
            )
        return position

    def _members(self, shards: Places, epoch: int) -> tuple[Places, Draws, Lengths]:
        """What the epoch draws from these shards: samples, how often they were drawn before, and their lengths."""
        parts = []
        for shard in shards.tolist():
            lengths = self._lengths(shard)
            keys = key(self.rules.seed, WEIGHTS, shard)
            samples, draws = drawn(keys, lengths.shape[1], self._weights[shard], epoch)
            if not self.rules.packed:
                fits = lengths.max(axis=0)[samples] <= self.rules.limit
                samples, draws = samples[fits], draws[fits]
            parts.append((samples + self.bases[shard], draws, lengths.take(samples, axis=1)))
        return (
            np.concatenate([part[0] for part in parts]),
            np.concatenate([part[1] for part in parts]),
            np.concatenate([part[2] for part in parts], axis=1),
        )


def share(first: int, end: int, rank: int, world: int) -> list[int | None]:
    """What a rank does of the global batches from `first` to `end`: batch b is for rank b mod world.

    None is an empty batch: all ranks get equally many, so that none waits for another.

    >>> share(0, 5, rank=0, world=3), share(0, 5, rank=2, world=3)
    ([0, 3], [2, None])
    """
    numbers = range(first - first % world + rank, end + -end % world, world)
    return [number if first <= number < end else None for number in numbers]


def _most(draws: Draws) -> int:
    """Room to tell the draws of one sample apart from those of its neighbours."""
    return int(draws.max()) + 1 if draws.size else 1


def _packed(
    shards: tuple[int, ...],
    following: tuple[int, ...],
    samples: Places,
    draws: Draws,
    lengths: NDArray[np.integer],
    rules: Rules,
    turn: NDArray[np.uint64],
) -> Window:
    segments = pack(lengths, rules.longest)
    return Window(
        shards,
        following,
        samples[segments.documents],
        draws[segments.documents],
        cuts=segments.rows,
        turns=shuffled(turn, segments.rows.size - 1),
        together=rules.budget // rules.longest,
        begins=segments.begins,
        lengths=segments.lengths,
    )
