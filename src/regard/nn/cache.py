"""Keys and values that need not be computed again: one slot for each attention, with verbs.

A row is a sequence being written. Rows usually have the same length, which is then one number and needs no
mask; after a per-row `crop` they differ, and each row goes on from its own end.

Rows that look at the same memory (the beams of one sentence) share it: memory row m belongs to the `group` rows from
m x group on. So beams are moved without their memory, which is most of what a short translation's cache holds.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.base.errors import ShapeError

Pair = tuple[Tensor, Tensor]  # keys (B, G, S, K) and values (B, G, S, V)
Numbers = NDArray[np.int64]


class Cache:
    """Room for `capacity` tokens a row, taken at the first `append`."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.filled = 0  # the length of the longest row
        self.lengths: list[int] | None = None  # one for each row, where rows differ
        self.rows = 0  # how many rows of the room are used
        self.group = 1  # how many rows share one row of the memory
        self._ends: Tensor | None = None  # the lengths (B), where the rows are
        self._written: dict[str, Pair] = {}  # self-attention, preallocated
        self._memory: dict[str, Pair] = {}  # cross-attention, written once

    def positions(self, count: int, device: torch.device) -> Tensor:
        """Where the next `count` tokens of each row stand, (1 or B, count)."""
        if self._ends is None:
            return torch.arange(self.filled, self.filled + count, device=device)[None]
        return self._ends[:, None] + torch.arange(count, device=device)

    def append(self, name: str, keys: Tensor, values: Tensor) -> Pair:
        """Write new keys and values (B, G, T, ...) behind the old ones; all of them come back."""
        count, end = keys.size(2), self.filled + keys.size(2)
        rooms = self.room(name, keys, values)
        for store, new in zip(rooms, (keys, values), strict=True):
            if self._ends is None:
                store[:, :, self.filled : end] = new
            else:
                store[:, :, self.filled : end] = 0  # short rows do not reach here; 0 times a stray NaN would be NaN
                rows = torch.arange(store.size(0), device=store.device)[:, None]
                store[rows, :, self.positions(count, store.device)] = new.transpose(1, 2)
        return rooms[0][:, :, :end], rooms[1][:, :, :end]  # (B, G, S, ...)

    def room(self, name: str, keys: Tensor, values: Tensor) -> Pair:
        """All the room (B, G, capacity, ...) of an attention, which is taken if it is not there yet."""
        end = self.filled + keys.size(2)
        if end > self.capacity:
            raise ShapeError(
                f"The cache has room for {self.capacity} tokens a row, and {end} are needed.",
                fix="Start with a larger capacity.",
            )
        if name not in self._written:
            self.rows = keys.size(0)
            self._written[name] = (self._new(self.rows, keys), self._new(self.rows, values))
        pair = self._written[name]
        return pair if pair[0].size(0) == self.rows else (pair[0][: self.rows], pair[1][: self.rows])

    def advance(self, count: int) -> None:
        """All layers have written `count` tokens: move on."""
        self.filled += count
        if self.lengths is not None and self._ends is not None:
            self.lengths = [length + count for length in self.lengths]
            self._ends = self._ends + count

    def remember(self, name: str, keys: Tensor, values: Tensor) -> None:
        """Keep the keys and values of a memory, which never change."""
        self._memory[name] = (keys.contiguous(), values.contiguous())

    def recall(self, name: str) -> Pair:
        """The keys and values of the memory: a row for each `group` rows of tokens."""
        return self._memory[name]

    def reorder(self, index: Tensor) -> Tensor | None:
        """Row i becomes what row index[i] was: beams are copied, finished rows left out.

        Only rows that become others are copied, and what nobody has written is not. An index on another device must
        be waited for: give it on the CPU. Comes back: which rows of the memory are left (None: all of them, as they
        were).
        """
        chosen: Numbers = index.cpu().numpy()
        left = self._shared(chosen)
        device = next(iter(self._written.values()))[0].device if self._written else index.device
        choice = _Choice(chosen, device)
        for name, (keys, values) in self._written.items():
            if choice.count > keys.size(0):
                self._written[name] = (self._grown(keys, choice), self._grown(values, choice))
            else:
                for store in (keys, values):
                    choice.of(store[:, :, : self.filled])
        self.rows = chosen.size
        if self.lengths is not None:
            self._set([self.lengths[row] for row in chosen])
        return left

    def crop(self, lengths: int | Sequence[int]) -> None:
        """Forget all beyond these lengths: one for all rows (shorter rows stay as they are), or one for each."""
        now = self.lengths or [self.filled] * self.rows
        if isinstance(lengths, int):
            if not 0 <= lengths <= self.filled:
                raise ShapeError(f"Rows of {self.filled} tokens cannot be cropped to {lengths}.")
            wanted = [min(lengths, length) for length in now]
        else:
            wanted = list(lengths)
            if len(wanted) != len(now):
                raise ShapeError(f"{len(wanted)} lengths for {len(now)} rows.", fix="Give one length for each row.")
            if any(not 0 <= length <= known for length, known in zip(wanted, now, strict=True)):
                raise ShapeError(f"Rows of {now} tokens cannot be cropped to {wanted}.")
        self._set(wanted)

    @property
    def bytes(self) -> int:
        """What the cache occupies, empty room included."""
        pairs = [*self._written.values(), *self._memory.values()]
        return sum(part.numel() * part.element_size() for pair in pairs for part in pair)

    def _set(self, lengths: list[int]) -> None:
        """Take these lengths; where they are all the same, one number says it."""
        self.filled = max(lengths, default=0)
        if min(lengths, default=0) == self.filled:
            self.lengths = self._ends = None
        else:
            self.lengths = lengths
            self._ends = torch.tensor(lengths, device=next(iter(self._written.values()))[0].device)

    def _new(self, rows: int, like: Tensor) -> Tensor:
        _, groups, _, size = like.shape
        return like.new_empty(rows, groups, self.capacity, size)

    def _grown(self, store: Tensor, choice: "_Choice") -> Tensor:
        """Room for more rows than there were."""
        grown = self._new(choice.count, store)
        grown[:, :, : self.filled] = choice.of(store[:, :, : self.filled])
        return grown

    def _shared(self, chosen: Numbers) -> Tensor | None:
        """Let as many rows as possible share a row of the memory, and forget what nobody needs."""
        if not self._memory or not chosen.size:
            return None
        owners = chosen // self.group  # (R) the memory of each row
        changes = np.flatnonzero(owners != owners[0])
        group = int(changes[0]) if changes.size else chosen.size
        if chosen.size % group or bool((owners.reshape(-1, group) != owners[::group, None]).any()):
            group = 1
        self.group = group
        left = owners[::group]  # (B)
        first = next(iter(self._memory.values()))[0]
        if left.size == first.size(0) and bool((left == np.arange(left.size)).all()):
            return None
        choice = _Choice(left, first.device)
        for name, (keys, values) in self._memory.items():
            self._memory[name] = (choice.of(keys), choice.of(values))
        return choice.rows


class _Choice:
    """Some rows of several stores, in an order."""

    def __init__(self, chosen: Numbers, device: torch.device) -> None:
        moved = np.flatnonzero(chosen != np.arange(chosen.size))
        self.count, self.moves = chosen.size, moved.size > 0
        self.rows = torch.from_numpy(chosen).to(device)
        self.places = torch.from_numpy(moved).to(device)  # that are taken by another row
        self.takers = torch.from_numpy(chosen[moved]).to(device)

    def of(self, store: Tensor) -> Tensor:
        """The rows of a store, which is written over where it has room for them: only those that move are copied."""
        if self.count > store.size(0):
            return store.index_select(0, self.rows)
        if self.moves:
            store.index_copy_(0, self.places, store.index_select(0, self.takers))
        return store[: self.count]
