"""Records for looking into a model: a compact one for long texts, and one that switches heads off."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from regard.nn.record import AttentionRecord, Record

MAX_COMPLETE_ROWS = 256  # up to this many rows everything is kept by reference, which costs nothing
CHECKED_ROWS = 16  # rows of a longer text whose output is recomputed to measure the error


class _NoResiduals(dict[str, Tensor]):
    """Discards residuals, which a look does not need and which would use memory."""

    def __setitem__(self, name: str, value: Tensor) -> None:
        pass


class LookRecord(Record):
    """Keeps the queries and keys of every attention, from which the weights are recomputed.

    For a text with more than `MAX_COMPLETE_ROWS` rows, values and outputs are dropped after the recomputation error was
    measured on `CHECKED_ROWS` rows. For 2,048 tokens of a GPT-2 shape this keeps 151 MB, or 75 MB in half precision,
    instead of 459 MB.

    Args:
        half: Keep queries and keys of long texts in half precision.
    """

    def __init__(self, *, half: bool = False) -> None:
        super().__init__()
        self.residuals = _NoResiduals()
        self._half = half
        self._errors: dict[str, list[float]] = {}

    def add_attention(self, name: str, attention: AttentionRecord) -> Tensor:
        """Record one attention; return its output."""
        rows = attention.query.size(2)
        if rows <= MAX_COMPLETE_ROWS:
            return super().add_attention(name, attention)
        dtype = torch.float16 if self._half else attention.query.dtype
        nothing = attention.value.new_zeros(1)  # shaped as values and outputs, in four bytes
        self.attention[name] = replace(
            attention,
            query=attention.query.to(dtype),
            key=attention.key.to(dtype),
            value=nothing.expand(*attention.key.shape[:3], 1),
            output=nothing.expand(*attention.query.shape[:3], 1),
        )
        # The shown weights come from the kept tensors, so the error is measured on them.
        checked = replace(
            attention, query=attention.query.to(dtype).float(), key=attention.key.to(dtype).float()
        ).select(*attention.indices(None, spread(rows, CHECKED_ROWS)))
        self._errors[name] = _errors(checked)
        return attention.output

    @torch.no_grad()  # scores with parameters would track gradients of recorded tensors
    def weights(self, name: str, heads: Sequence[int] | None = None, rows: Sequence[int] | None = None) -> Tensor:
        """Return the attention weights (B, H, T, S) of some heads and rows."""
        attention = self._find(name)
        if attention.query.dtype != torch.float16:
            return super().weights(name, heads, rows)
        selected = attention.select(*attention.indices(heads, rows))  # half precision is slow to compute with
        record = Record()
        record.attention[name] = replace(selected, query=selected.query.float(), key=selected.key.float())
        return record.weights(name)

    @torch.no_grad()
    def head_errors(self, name: str) -> list[float]:
        """Return max |A V - fused output| of every head; for a long text, on `CHECKED_ROWS` rows."""
        attention = self._find(name)
        if name not in self._errors:
            self._errors[name] = _errors(attention)
        return self._errors[name]

    @property
    def bytes(self) -> int:
        """Memory of all kept tensors."""
        storages = {
            tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes()
            for attention in self.attention.values()
            for tensor in (attention.query, attention.key, attention.value, attention.output)
        }
        return sum(storages.values())


class HeadsOff(Record):
    """Switches heads off, separately for each row of a batch; keeps no tensors.

    Args:
        masks: For each attention, 1 for heads that are on and 0 for heads that are off, (B or 1, H).
    """

    def __init__(self, masks: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.residuals = _NoResiduals()
        self._masks = dict(masks)

    def add_attention(self, name: str, attention: AttentionRecord) -> Tensor:
        """Return the output with the heads of this attention switched off."""
        mask = self._masks.get(name)
        return attention.output if mask is None else attention.output * mask[:, :, None, None].to(attention.output)

    def reorder(self, index: Tensor) -> None:
        """Let the masks follow the rows of a search; a mask of one row holds for all."""
        self._masks = {name: mask[index] if mask.size(0) > 1 else mask for name, mask in self._masks.items()}


def spread(count: int, chosen: int) -> list[int]:
    """Return at most `chosen` of the numbers below `count`, evenly spread, first and last included.

    >>> spread(10, 4), spread(2, 4)
    ([0, 3, 6, 9], [0, 1])
    """
    if count <= chosen:
        return list(range(count))
    return [round(index * (count - 1) / (chosen - 1)) for index in range(chosen)]


def _errors(attention: AttentionRecord) -> list[float]:
    record = Record()
    record.attention[""] = attention
    difference: Any = record.recompute_output("") - attention.output  # (B, H, T, V)
    return [float(error) for error in difference.abs().amax(dim=(0, 2, 3))]
