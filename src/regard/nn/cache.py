"""Keys and values that need not be computed again: one slot for each attention, with verbs.

A row is a sequence being written. Rows usually have the same length, which is then one number and needs no
mask; after a per-row `crop` they differ, and each row goes on from its own end.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from regard.base.errors import ShapeError

Pair = tuple[Tensor, Tensor]  # keys (B, G, S, K) and values (B, G, S, V)


class Cache:
    """Room for `capacity` tokens a row, taken at the first `append`."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.filled = 0  # the length of the longest row
        self.lengths: list[int] | None = None  # one for each row, where rows differ
        self._ends: Tensor | None = None  # the same (B), where the rows are
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
        if end > self.capacity:
            raise ShapeError(
                f"The cache has room for {self.capacity} tokens a row, and {end} are needed.",
                fix="Start with a larger capacity.",
            )
        if name not in self._written:
            self._written[name] = (self._room(keys), self._room(values))
        for store, new in zip(self._written[name], (keys, values), strict=True):
            if self._ends is None:
                store[:, :, self.filled : end] = new
            else:
                store[:, :, self.filled : end] = 0  # short rows do not reach here; 0 times a stray NaN would be NaN
                rows = torch.arange(store.size(0), device=store.device)[:, None]
                store[rows, :, self.positions(count, store.device)] = new.transpose(1, 2)
        stored_keys, stored_values = self._written[name]
        return stored_keys[:, :, :end], stored_values[:, :, :end]  # (B, G, S, ...)

    def advance(self, count: int) -> None:
        """All layers have written `count` tokens: move on."""
        self.filled += count
        if self.lengths is not None and self._ends is not None:
            self.lengths = [length + count for length in self.lengths]
            self._ends = self._ends + count

    def remember(self, name: str, keys: Tensor, values: Tensor) -> None:
        """Keep the keys and values of a memory, which never change."""
        self._memory[name] = (keys, values)

    def recall(self, name: str) -> Pair:
        """The keys and values of the memory."""
        return self._memory[name]

    def reorder(self, index: Tensor) -> None:
        """Row i becomes what row index[i] was: beams are copied, finished rows left out."""
        for name, (keys, values) in self._memory.items():
            self._memory[name] = (keys.index_select(0, index), values.index_select(0, index))
        for name, pair in self._written.items():
            keys, values = (self._moved(store, index) for store in pair)
            self._written[name] = (keys, values)
        if self.lengths is not None:
            self._set([self.lengths[row] for row in index.tolist()])

    def crop(self, lengths: int | Sequence[int]) -> None:
        """Forget all beyond these lengths: one for all rows (shorter rows stay as they are), or one for each."""
        now = self.lengths or [self.filled] * self._rows()
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

    def _rows(self) -> int:
        return next(iter(self._written.values()))[0].size(0) if self._written else 0

    def _room(self, like: Tensor) -> Tensor:
        rows, groups, _, size = like.shape
        return like.new_empty(rows, groups, self.capacity, size)

    def _moved(self, store: Tensor, index: Tensor) -> Tensor:
        moved = store.new_empty(index.numel(), *store.shape[1:])
        moved[:, :, : self.filled] = store[:, :, : self.filled].index_select(0, index)
        return moved
