"""Who may look at whom. Masks are words that combine; True means "may look".

>>> mask = causal() & window(3)
>>> index = torch.arange(4)[None]
>>> mask.dense(index, index)[0, 0].int()
tensor([[1, 0, 0, 0],
        [1, 1, 0, 0],
        [1, 1, 1, 0],
        [0, 1, 1, 1]], dtype=torch.int32)

A word says what is meant; a dense table is built only when no hint to the fused kernel can say it.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Mask:
    """The words of a mask. All of them must allow a look."""

    causal: bool
    window: int | None
    valid: Tensor | None  # (B, S) True where a key is a token and not padding
    documents: tuple[Tensor, ...]  # each (B, S): the document that a token belongs to

    def __and__(self, other: "Mask") -> "Mask":
        windows = [width for width in (self.window, other.window) if width is not None]
        valid_masks = [valid for valid in (self.valid, other.valid) if valid is not None]
        return Mask(
            causal=self.causal or other.causal,
            window=min(windows) if windows else None,
            valid=valid_masks[0] & valid_masks[1]
            if len(valid_masks) == 2
            else (valid_masks[0] if valid_masks else None),
            documents=self.documents + other.documents,
        )

    @property
    def is_at_most_causal(self) -> bool:
        """Nothing is hidden but, perhaps, the future."""
        return self.window is None and self.valid is None and not self.documents

    def dense(
        self,
        query_index: Tensor,
        key_index: Tensor,
        query_positions: Tensor | None = None,
        key_positions: Tensor | None = None,
    ) -> Tensor | None:
        """The table (1 or B, 1, 1 or T, S), from where queries (1 or B, T) and keys (1, S) stand in their rows.

        A window is measured in positions, where they differ from places in the row: padding has no width.
        """
        allowed: Tensor | None = None
        if self.causal:
            allowed = _and(allowed, _distance(query_index, key_index) >= 0)
        if self.window is not None:
            queries = query_index if query_positions is None else query_positions
            keys = key_index if key_positions is None else key_positions
            allowed = _and(allowed, _distance(queries, keys).abs() < self.window)
        for documents in self.documents:
            allowed = _and(allowed, documents[:, None, :, None] == documents[:, None, None, :])
        if self.valid is not None:
            allowed = _and(allowed, self.valid[:, None, None, :])
        return allowed


def no_mask() -> Mask:
    """All see all."""
    return Mask(causal=False, window=None, valid=None, documents=())


def causal() -> Mask:
    """Each sees itself and what came before."""
    return Mask(causal=True, window=None, valid=None, documents=())


def padding(valid: Tensor) -> Mask:
    """Nobody sees padding; `real` (B, S) is True for tokens."""
    return Mask(causal=False, window=None, valid=valid, documents=())


def window(width: int) -> Mask:
    """Nobody looks further than `width` - 1 tokens."""
    return Mask(causal=False, window=width, valid=None, documents=())


def same_document(documents: Tensor) -> Mask:
    """Texts packed into one row do not see each other; `documents` (B, S) numbers them."""
    return Mask(causal=False, window=None, valid=None, documents=(documents,))


def _distance(queries: Tensor, keys: Tensor) -> Tensor:
    return queries[:, None, :, None] - keys[:, None, None, :]  # (1|B, 1, T, S)


def _and(allowed: Tensor | None, condition: Tensor) -> Tensor:
    return condition if allowed is None else torch.logical_and(allowed, condition)
