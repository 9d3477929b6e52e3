"""Attention masks that combine with `&`. True means "may attend".

>>> mask = causal() & window(3)
>>> index = torch.arange(4)[None]
>>> mask.dense(index, index)[0, 0].int()
tensor([[1, 0, 0, 0],
        [1, 1, 0, 0],
        [1, 1, 1, 0],
        [0, 1, 1, 1]], dtype=torch.int32)

A mask is symbolic; a dense tensor is built only if the fused kernel has no cheaper form.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Mask:
    """Conditions under which a query may attend to a key; all must hold."""

    causal: bool
    window: int | None
    valid: Tensor | None  # (B, S) True for tokens, False for padding
    documents: tuple[Tensor, ...]  # each (B, S): the document number of a token
    prefix: Tensor | None = None  # (B) length of the prefix, to which `causal` does not apply

    def __and__(self, other: "Mask") -> "Mask":
        windows = [width for width in (self.window, other.window) if width is not None]
        prefixes = [lengths for lengths in (self.prefix, other.prefix) if lengths is not None]
        valid_masks = [valid for valid in (self.valid, other.valid) if valid is not None]
        return Mask(
            causal=self.causal or other.causal,
            window=min(windows) if windows else None,
            valid=valid_masks[0] & valid_masks[1]
            if len(valid_masks) == 2
            else (valid_masks[0] if valid_masks else None),
            documents=self.documents + other.documents,
            prefix=prefixes[0].minimum(prefixes[-1]) if prefixes else None,
        )

    @property
    def is_at_most_causal(self) -> bool:
        """Whether the mask hides at most later tokens."""
        return self.window is None and self.valid is None and not self.documents and self.prefix is None

    def dense(
        self,
        query_index: Tensor,
        key_index: Tensor,
        query_positions: Tensor | None = None,
        key_positions: Tensor | None = None,
    ) -> Tensor | None:
        """Return the dense mask (1 or B, 1, 1 or T, S), or None if everything is allowed.

        Args:
            query_index: Index of each query in its row, (1 or B, T).
            key_index: Index of each key in its row, (1, S).
            query_positions: Positions of queries, if they differ from the indices. A window is measured in positions,
                so that padding does not count.
            key_positions: Positions of keys, likewise.
        """
        allowed: Tensor | None = None
        if self.causal:
            allowed = _distance(query_index, key_index) >= 0
            if self.prefix is not None:
                allowed = allowed | (key_index < self.prefix[:, None])[:, None, None]
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
    """Every token attends to every token."""
    return Mask(causal=False, window=None, valid=None, documents=())


def causal() -> Mask:
    """Each token attends to itself and to earlier tokens."""
    return Mask(causal=True, window=None, valid=None, documents=())


def prefix(lengths: Tensor) -> Mask:
    """Each token attends to earlier ones and to a whole prefix of this length (B), as in UniLM (Dong et al. 2019).

    It includes `causal`, except within the prefix; all other conditions also apply to the prefix.

    >>> index = torch.arange(4)[None]
    >>> prefix(torch.tensor([2])).dense(index, index)[0, 0].int()
    tensor([[1, 1, 0, 0],
            [1, 1, 0, 0],
            [1, 1, 1, 0],
            [1, 1, 1, 1]], dtype=torch.int32)
    """
    return Mask(causal=True, window=None, valid=None, documents=(), prefix=lengths)


def padding(valid: Tensor) -> Mask:
    """Tokens do not attend to padding; `valid` (B, S) is True for tokens."""
    return Mask(causal=False, window=None, valid=valid, documents=())


def window(width: int) -> Mask:
    """Tokens attend at most `width` - 1 positions away."""
    return Mask(causal=False, window=width, valid=None, documents=())


def same_document(documents: Tensor) -> Mask:
    """Documents packed into one row do not attend to each other; `documents` (B, S) holds their numbers."""
    return Mask(causal=False, window=None, valid=None, documents=(documents,))


def _distance(queries: Tensor, keys: Tensor) -> Tensor:
    return queries[:, None, :, None] - keys[:, None, None, :]  # (1|B, 1, T, S)


def _and(allowed: Tensor | None, condition: Tensor) -> Tensor:
    return condition if allowed is None else torch.logical_and(allowed, condition)
