"""Each sees the past: write on, word by word. An image or sound may stand before the words."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from regard.base.errors import ShapeError
from regard.models.heads import ClassHead, Head
from regard.models.inputs import MelInput, PatchInput, TokenInput
from regard.nn.kv_cache import DecodingState, KVCache
from regard.nn.masks import Mask, padding, same_document
from regard.nn.record import Record
from regard.nn.stack import Stack


class DecoderOnly(nn.Module):
    """(prefix,) tokens -> decoder -> head."""

    def __init__(
        self, prefix: PatchInput | MelInput | None, tokens: TokenInput, decoder: Stack, head: Head, mask: Mask
    ) -> None:
        super().__init__()
        self.prefix = prefix
        self.tokens = tokens
        self.decoder = decoder
        self.head = head
        self.mask = mask  # causal, perhaps within a window

    def forward(
        self,
        tokens: Tensor,
        valid: Tensor | None = None,
        *,
        positions: Tensor | None = None,
        documents: Tensor | None = None,
        prefix: Tensor | None = None,
        prefix_valid: Tensor | None = None,
        record: Record | None = None,
    ) -> Tensor:
        """Logits for every token (B, T, words), or the head's answer.

        Rows are padded on the right, where no earlier token looks; `real` (B, T) matters only to heads that
        pool. Packed texts are kept apart by `documents` (B, T), with `positions` (B, T) that restart.
        """
        x = self.hidden_states(
            tokens,
            positions=positions,
            documents=documents,
            prefix=prefix,
            prefix_valid=prefix_valid,
            record=record,
        )
        return self.head(x, valid)

    if TYPE_CHECKING:
        __call__ = forward

    def hidden_states(
        self,
        tokens: Tensor,
        *,
        positions: Tensor | None = None,
        documents: Tensor | None = None,
        prefix: Tensor | None = None,
        prefix_valid: Tensor | None = None,
        record: Record | None = None,
    ) -> Tensor:
        """What the head reads: (B, T, D), the prefix left out."""
        x, _ = self.tokens(tokens)  # (B, T, D)
        mask = self.mask if documents is None else self.mask & same_document(documents)
        if prefix is None:
            return self.decoder(x, mask, positions, record=record)
        if positions is not None or documents is not None:
            raise ShapeError("A prefix cannot be packed.", fix="Give one text a row.")
        prefix_states, valid = self._read_prefix(prefix, prefix_valid)  # (B, P, D), (B, P)
        inputs = torch.cat((prefix_states, x), dim=1)  # (B, P + T, D)
        if valid is not None:
            valid = torch.cat((valid, valid.new_ones(tokens.shape)), dim=1)  # (B, P + T)
            mask = mask & padding(valid)
            positions = (valid.cumsum(dim=1) - 1).clamp(min=0)  # words go on where the real prefix ends
        return self.decoder(inputs, mask, positions, record=record)[:, prefix_states.size(1) :]  # (B, T, D)

    def start(self, capacity: int, prefix: Tensor | None = None, prefix_valid: Tensor | None = None) -> DecodingState:
        """An empty state with room for `capacity` vectors a row; a prefix is read at once."""
        if isinstance(self.head, ClassHead):
            raise ShapeError("A classifier does not write.", fix="Call the model on the whole text.")
        state = DecodingState(KVCache(capacity), memory_valid=None)
        if prefix is not None:
            prefix_states, valid = self._read_prefix(prefix, prefix_valid)  # (B, P, D)
            self.decoder(prefix_states, self.mask, kv_cache=state.kv_cache)
            if valid is not None:
                if bool((valid[:, 1:] & ~valid[:, :-1]).any()):
                    raise ShapeError("A prefix has a hole.", fix="Pad prefixes on the right, after all that is real.")
                state.crop(valid.sum(dim=1).tolist())
        return state

    def step(self, tokens: Tensor, state: DecodingState, record: Record | None = None) -> Tensor:
        """Logits (B, k, words) for the next k tokens (B, k) of each row; the state moves on."""
        x, _ = self.tokens(tokens)  # (B, k, D)
        return self.head(self.decoder(x, self.mask, kv_cache=state.kv_cache, record=record))

    def _read_prefix(self, prefix: Tensor, valid: Tensor | None) -> tuple[Tensor, Tensor | None]:
        if self.prefix is None:
            raise ShapeError("A prefix was given, but the model has none.", fix="Build it with a `prefix` input.")
        return self.prefix(prefix, valid)
