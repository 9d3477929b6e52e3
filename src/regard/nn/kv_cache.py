"""The KV cache: keys and values of earlier tokens, one entry per attention module.

A row is a sequence being generated. Rows usually have the same length; the cache then stores a single number and needs
no mask. After a per-row `crop` lengths differ, and each row continues from its own end.

Rows that attend to the same memory (the beams of one sentence) share it: memory row m belongs to the
`rows_per_memory` rows that start at m x rows_per_memory. Beams can then be reordered without copying their memory,
which is most of the cache for a short translation.

A reordered row usually shares its first tokens with the row it replaces: both extend the same hypothesis. The cache
tracks which entries are copies of each other (`_lineage`) and copies only the entries that differ.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.base.errors import ShapeError

KeyValue = tuple[Tensor, Tensor]  # keys (B, G, S, K) and values (B, G, S, V)
IntArray = NDArray[np.int64]


class KVCache:
    """Keys and values of at most `capacity` tokens per row, allocated at the first `append`."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.length = 0  # tokens in the longest row
        self.lengths: list[int] | None = None  # tokens per row, if rows differ
        self.rows = 0  # rows of the buffers in use
        self.rows_per_memory = 1  # rows that share one memory row
        self._device_lengths: Tensor | None = None  # `lengths` (B) on the device of the buffers
        self._appended: set[str] = set()  # names in this step
        self._buffers: dict[str, KeyValue] = {}  # self-attention, preallocated
        self._memory: dict[str, KeyValue] = {}  # cross-attention, written once
        self._lineage: IntArray = np.empty((0, 0), np.int64)  # as of the last `reorder`, see `_trace_copies`

    def positions(self, count: int, device: torch.device) -> Tensor:
        """Return the positions of each row's next `count` tokens, (1 or B, count)."""
        if self._device_lengths is None:
            return torch.arange(self.length, self.length + count, device=device)[None]
        return self._device_lengths[:, None] + torch.arange(count, device=device)

    def append(self, name: str, keys: Tensor, values: Tensor) -> KeyValue:
        """Append new keys and values (B, G, T, ...) and return all of them, (B, G, S, ...)."""
        count, end = keys.size(2), self.length + keys.size(2)
        buffers = self.buffers(name, keys, values)
        for buffer, new in zip(buffers, (keys, values), strict=True):
            if self._device_lengths is None:
                buffer[:, :, self.length : end] = new
            else:
                buffer[:, :, self.length : end] = 0  # shorter rows end earlier: a masked NaN times 0 would be NaN
                rows = torch.arange(buffer.size(0), device=buffer.device)[:, None]
                buffer[rows, :, self.positions(count, buffer.device)] = new.transpose(1, 2)
        return buffers[0][:, :, :end], buffers[1][:, :, :end]  # (B, G, S, ...)

    def last(self, name: str) -> KeyValue | None:
        """Return each row's last key and value, (B, G, ...); zeros for an empty row, None if all are empty."""
        if self.length == 0:
            return None
        keys, values = (buffer[: self.rows] for buffer in self._buffers[name])
        if self._device_lengths is None:
            return keys[:, :, self.length - 1], values[:, :, self.length - 1]
        rows = torch.arange(self.rows, device=keys.device)
        index = (self._device_lengths - 1).clamp(min=0)
        is_empty = (self._device_lengths == 0)[:, None, None]
        return keys[rows, :, index].masked_fill(is_empty, 0.0), values[rows, :, index].masked_fill(is_empty, 0.0)

    def buffers(self, name: str, keys: Tensor, values: Tensor) -> KeyValue:
        """Return the buffers (B, G, capacity, ...) of an attention module, allocating them at first use.

        Raises:
            ShapeError: The new tokens exceed the capacity, or two modules of a step have the same name.
        """
        end = self.length + keys.size(2)
        if end > self.capacity:
            raise ShapeError(
                f"The KV cache holds {self.capacity} tokens per row, but {end} are needed.",
                hint="Pass a larger capacity to start().",
            )
        if name in self._appended:
            raise _name_error(name)
        self._appended.add(name)
        if name not in self._buffers:
            self.rows = keys.size(0)
            self._buffers[name] = (self._allocate(self.rows, keys), self._allocate(self.rows, values))
        pair = self._buffers[name]
        return pair if pair[0].size(0) == self.rows else (pair[0][: self.rows], pair[1][: self.rows])

    def advance(self, count: int) -> None:
        """Advance the length by `count` tokens, after all layers have appended them."""
        self.length += count
        self._appended.clear()
        if self.lengths is not None and self._device_lengths is not None:
            self.lengths = [length + count for length in self.lengths]
            self._device_lengths = self._device_lengths + count

    def store_memory(self, name: str, keys: Tensor, values: Tensor) -> None:
        """Store a copy of the keys and values of a memory for cross-attention; `reorder` changes it in place."""
        if name in self._memory:
            raise _name_error(name)
        self._memory[name] = (
            keys.clone(memory_format=torch.contiguous_format),
            values.clone(memory_format=torch.contiguous_format),
        )

    def memory(self, name: str) -> KeyValue:
        """Return the keys and values of the memory: one row per `rows_per_memory` rows of tokens."""
        return self._memory[name]

    def reorder(self, index: Tensor) -> Tensor | None:
        """Replace row i by row index[i]: copies beams and drops finished rows.

        Copies only the rows that change, and only the tokens that differ.

        Args:
            index: Row indices, on the CPU (an index on another device forces a synchronization).

        Returns:
            The memory rows that remain; None if the memory is unchanged.
        """
        row_index: IntArray = index.cpu().numpy()
        kept_rows = self._regroup_memory(row_index)
        device = next(iter(self._buffers.values()))[0].device if self._buffers else index.device
        selection, lineage = _RowSelection(row_index, device), self._trace_copies()
        starts = _find_starts(lineage, row_index)
        parts = [(start, selection.only(starts == start)) for start in np.unique(starts).tolist()]
        for name, (keys, values) in self._buffers.items():
            if selection.count > keys.size(0):
                self._buffers[name] = (self._grow(keys, selection), self._grow(values, selection))
            else:
                for buffer in (keys, values):
                    _copy_rows([(part, buffer[:, :, start : self.length]) for start, part in parts])
        self.rows = row_index.size
        self._lineage = lineage[row_index] if lineage.size else np.empty((row_index.size, 0), np.int64)
        if self.lengths is not None:
            self._set_lengths([self.lengths[row] for row in row_index])
        return kept_rows

    def crop(self, lengths: int | Sequence[int]) -> None:
        """Drop all tokens beyond these lengths: one for all rows (shorter rows do not change), or one per row."""
        current_lengths = self.lengths or [self.length] * self.rows
        if isinstance(lengths, int):
            if not 0 <= lengths <= self.length:
                raise ShapeError(f"Cannot crop rows of {self.length} tokens to {lengths}.")
            new_lengths = [min(lengths, length) for length in current_lengths]
        else:
            new_lengths = list(lengths)
            if len(new_lengths) != len(current_lengths):
                raise ShapeError(
                    f"Got {len(new_lengths)} lengths for {len(current_lengths)} rows.", hint="Pass one length per row."
                )
            if any(
                not 0 <= length <= current_length
                for length, current_length in zip(new_lengths, current_lengths, strict=True)
            ):
                raise ShapeError(f"Cannot crop rows of {current_lengths} tokens to {new_lengths}.")
        self._set_lengths(new_lengths)

    @property
    def bytes(self) -> int:
        """Cache size in bytes, including unused capacity."""
        pairs = [*self._buffers.values(), *self._memory.values()]
        return sum(part.numel() * part.element_size() for pair in pairs for part in pair)

    def _set_lengths(self, lengths: list[int]) -> None:
        """Set the length of every row; equal lengths are kept as a single number."""
        self._appended.clear()
        self._lineage = self._lineage[:, : min(lengths, default=0)]
        self.length = max(lengths, default=0)
        if min(lengths, default=0) == self.length:
            self.lengths = self._device_lengths = None
        else:
            self.lengths = lengths
            self._device_lengths = torch.tensor(lengths, device=next(iter(self._buffers.values()))[0].device)

    def _trace_copies(self) -> IntArray:
        """Return equal numbers in a column for entries that are copies of one another, (B, length of the shortest row).

        Every row has written its own entries since the last `reorder`.
        """
        length = self.length if self.lengths is None else min(self.lengths, default=0)
        known = self._lineage[:, :length] if len(self._lineage) == self.rows else np.empty((self.rows, 0), np.int64)
        return np.concatenate((known, np.arange(self.rows)[:, None].repeat(length - known.shape[1], axis=1)), axis=1)

    def _allocate(self, rows: int, like: Tensor) -> Tensor:
        _, groups, _, size = like.shape
        return like.new_empty(rows, groups, self.capacity, size)

    def _grow(self, buffer: Tensor, selection: "_RowSelection") -> Tensor:
        """Return a buffer with more rows, filled with the selected ones."""
        larger_buffer = self._allocate(selection.count, buffer)
        larger_buffer[:, :, : self.length] = selection.select(buffer[:, :, : self.length])
        return larger_buffer

    def _regroup_memory(self, row_index: IntArray) -> Tensor | None:
        """Share memory rows between as many rows as possible and drop unused memory rows."""
        if not self._memory or not row_index.size:
            return None
        memory_rows = row_index // self.rows_per_memory  # (R) the memory row of each row
        changes = np.flatnonzero(memory_rows != memory_rows[0])
        rows_per_memory = int(changes[0]) if changes.size else row_index.size
        if row_index.size % rows_per_memory or bool(
            (memory_rows.reshape(-1, rows_per_memory) != memory_rows[::rows_per_memory, None]).any()
        ):
            rows_per_memory = 1
        self.rows_per_memory = rows_per_memory
        kept_rows = memory_rows[::rows_per_memory]  # (B)
        first_keys = next(iter(self._memory.values()))[0]
        if kept_rows.size == first_keys.size(0) and bool((kept_rows == np.arange(kept_rows.size)).all()):
            return None
        selection = _RowSelection(kept_rows, first_keys.device)
        for name, (keys, values) in self._memory.items():
            self._memory[name] = (selection.select(keys), selection.select(values))
        return selection.rows


def _name_error(name: str) -> ShapeError:
    message = f"Two decoder modules are named '{name}', so they would overwrite each other's keys."
    return ShapeError(message, hint="Give each copied module a unique `name`; a layer cannot be used twice.")


class _RowSelection:
    """A selection of rows, applied to several buffers."""

    def __init__(self, row_index: IntArray, device: torch.device) -> None:
        moved_rows = np.flatnonzero(row_index != np.arange(row_index.size))
        self.count, self.has_moves = row_index.size, moved_rows.size > 0
        self.rows = torch.from_numpy(row_index).to(device)
        self.targets = torch.from_numpy(moved_rows).to(device)  # rows that change
        self.sources = torch.from_numpy(row_index[moved_rows]).to(device)

    def only(self, mask: NDArray[np.bool_]) -> tuple[Tensor, Tensor]:
        """Return the targets and sources of the changing rows selected by a mask (n)."""
        chosen = torch.from_numpy(np.flatnonzero(mask)).to(self.targets.device)
        return self.targets[chosen], self.sources[chosen]

    def select(self, buffer: Tensor) -> Tensor:
        """Return the selected rows of a buffer, in place if it has enough rows: only rows that change are copied."""
        if self.count > buffer.size(0):
            return buffer.index_select(0, self.rows)
        if self.has_moves:
            buffer.index_copy_(0, self.targets, buffer.index_select(0, self.sources))
        return buffer[: self.count]


def _find_starts(lineage: IntArray, row_index: IntArray) -> IntArray:
    """Return the first token to copy for each changing row, (n): 0, or one number shared by all other rows."""
    moved_rows = np.flatnonzero(row_index != np.arange(row_index.size))
    if not lineage.size or row_index.size > len(lineage):
        return np.zeros(moved_rows.size, np.int64)
    is_copy = lineage[moved_rows] == lineage[row_index[moved_rows]]  # (n, length)
    starts = np.where(is_copy.all(axis=1), lineage.shape[1], is_copy.argmin(axis=1))  # (n)
    return np.where(starts > 0, starts[starts > 0].min(initial=lineage.shape[1]), 0)


def _copy_rows(parts: Sequence[tuple[tuple[Tensor, Tensor], Tensor]]) -> None:
    """Copy rows in place, given as ((targets, sources), buffer); all are read before the first is written."""
    copies = [buffer.index_select(0, sources) for (_, sources), buffer in parts]
    for ((targets, _), buffer), copied in zip(parts, copies, strict=True):
        buffer.index_copy_(0, targets, copied)


@dataclass
class DecodingState:
    """State of a model between two decoding steps: its KV cache and the padding mask of the memory.

    Searches in `regard.decode` use only its methods, not its fields.
    """

    kv_cache: KVCache
    memory_valid: Tensor | None  # (B, S), one row per row of the cache's memory

    def reorder(self, index: Tensor) -> None:
        """Replace row i by row index[i]; rows may be repeated, dropped or moved. `index` is best on the CPU."""
        kept_rows = self.kv_cache.reorder(index)  # (B)
        if self.memory_valid is not None and kept_rows is not None:
            self.memory_valid = self.memory_valid.index_select(0, kept_rows)

    def crop(self, lengths: int | Sequence[int]) -> None:
        """Remove all tokens beyond these lengths: one length for all rows, or one per row."""
        self.kv_cache.crop(lengths)

    @property
    def bytes(self) -> int:
        """Memory of the cache in bytes."""
        return self.kv_cache.bytes
