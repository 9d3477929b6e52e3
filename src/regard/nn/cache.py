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
        self.lengths: Tensor | None = None  # (B) where rows differ
        self._written: dict[str, Pair] = {}  # self-attention, preallocated
        self._memory: dict[str, Pair] = {}  # cross-attention, written once

    def positions(self, count: int, device: torch.device) -> Tensor:
        """Where the next `count` tokens of each row stand, (1 or B, count)."""
        if self.lengths is None:
            return torch.arange(self.filled, self.filled + count, device=device)[None]
        return self.lengths[:, None] + torch.arange(count, device=device)

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
            if self.lengths is None:
                store[:, :, self.filled : end] = new
            else:
                rows = torch.arange(store.size(0), device=store.device)[:, None]
                store[rows, :, self.positions(count, store.device)] = new.transpose(1, 2)
        stored_keys, stored_values = self._written[name]
        return stored_keys[:, :, :end], stored_values[:, :, :end]  # (B, G, S, ...)

    def advance(self, count: int) -> None:
        """All layers have written `count` tokens: move on."""
        self.filled += count
        if self.lengths is not None:
            self.lengths = self.lengths + count

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
            self.lengths = self.lengths.index_select(0, index)

    def crop(self, lengths: int | Sequence[int]) -> None:
        """Forget all beyond these lengths: one for all rows, or one for each."""
        wanted = [lengths] if isinstance(lengths, int) else list(lengths)
        longest = max(wanted)
        if longest > self.filled or min(wanted) < 0:
            raise ShapeError(f"Rows of {self.filled} tokens cannot be cropped to {longest}.")
        self.filled = longest
        if min(wanted) == longest:
            self.lengths = None
        else:
            device = next(iter(self._written.values()))[0].device
            self.lengths = torch.tensor(wanted, device=device)

    @property
    def bytes(self) -> int:
        """What the cache occupies, empty room included."""
        pairs = [*self._written.values(), *self._memory.values()]
        return sum(part.numel() * part.element_size() for pair in pairs for part in pair)

    def _room(self, like: Tensor) -> Tensor:
        rows, groups, _, size = like.shape
        # Zeros, not `empty`: masked room is multiplied by 0, and 0 times a stray NaN would be NaN.
        return like.new_zeros(rows, groups, self.capacity, size)

    def _moved(self, store: Tensor, index: Tensor) -> Tensor:
        moved = store.new_zeros(index.numel(), *store.shape[1:])
        moved[:, :, : self.filled] = store[:, :, : self.filled].index_select(0, index)
        return moved
