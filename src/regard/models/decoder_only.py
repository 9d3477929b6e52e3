"""The decoder-only family (GPT, Llama): causal self-attention, with an optional image or audio prefix."""

from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn

from regard.base.errors import ShapeError
from regard.models.batch_inputs import BatchInputs, require
from regard.models.heads import ClassHead, Head
from regard.models.inputs import MelInput, PatchInput, TokenInput
from regard.nn.kv_cache import DecodingState, KVCache
from regard.nn.masks import Mask, padding, same_document
from regard.nn.record import Record
from regard.nn.stack import Stack


class DecoderOnly(nn.Module):
    """(prefix,) tokens -> decoder -> head."""

    sides: ClassVar[tuple[str, ...]] = ("tokens",)
    """Names of the modules that embed the model's input."""

    def __init__(
        self, prefix: PatchInput | MelInput | None, tokens: TokenInput, decoder: Stack, head: Head, mask: Mask
    ) -> None:
        super().__init__()
        self.prefix = prefix
        self.tokens = tokens
        self.decoder = decoder
        self.head = head
        self.mask = mask  # causal, optionally within a window

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
        """Return logits (B, T, vocabulary), or the output of another head.

        Args:
            tokens: Token ids (B, T), padded on the right; the causal mask hides the padding.
            valid: (B, T), False for padding; only heads that pool need it.
            positions: (B, T), restarting at each document of a packed row.
            documents: (B, T), the number of each token's document in a packed row.
            prefix: Image or mel spectrogram before the tokens.
            prefix_valid: Which parts of the prefix are not padding.
            record: Where to record attentions and residuals.
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
        """Return the hidden states that the head reads, (B, T, D), without the prefix."""
        x, _ = self.tokens(tokens)  # (B, T, D)
        mask = self.mask if documents is None else self.mask & same_document(documents)
        if prefix is None:
            return self.decoder(x, mask, positions, record=record)
        if positions is not None or documents is not None:
            raise ShapeError("Packed rows cannot have a prefix.", hint="Use one text per row.")
        prefix_states, valid = self._read_prefix(prefix, prefix_valid)  # (B, P, D), (B, P)
        inputs = torch.cat((prefix_states, x), dim=1)  # (B, P + T, D)
        if valid is not None:
            valid = torch.cat((valid, valid.new_ones(tokens.shape)), dim=1)  # (B, P + T)
            mask = mask & padding(valid)
            positions = (valid.cumsum(dim=1) - 1).clamp(min=0)  # tokens continue where the valid prefix ends
        return self.decoder(inputs, mask, positions, record=record)[:, prefix_states.size(1) :]  # (B, T, D)

    def read_sides(self, source: Tensor, target: Tensor, **options: Any) -> Tensor:  # noqa: ARG002
        """Return the hidden states that the head reads, (B, T, D). Each model family uses the sides it needs."""
        return self.hidden_states(target, **options)

    def read_batch(self, batch: BatchInputs) -> tuple[Tensor, Tensor | None]:
        """Return the hidden states that the head reads in training, (B, T, D), and no padding mask."""
        states = self.hidden_states(require(batch.target), positions=batch.positions, documents=batch.documents)
        return states, None

    def start(
        self,
        capacity: int,
        prefix: Tensor | None = None,
        prefix_valid: Tensor | None = None,
        *,
        record: Record | None = None,
    ) -> DecodingState:
        """Return a decoding state for at most `capacity` vectors per row; runs the decoder on the prefix, if any.

        Raises:
            ShapeError: The model has a classification head, or the prefix is not padded on the right.
        """
        if isinstance(self.head, ClassHead):
            raise ShapeError("A classifier cannot generate text.", hint="Call the model on the whole text.")
        state = DecodingState(KVCache(capacity), memory_valid=None)
        if prefix is not None:
            prefix_states, valid = self._read_prefix(prefix, prefix_valid)  # (B, P, D)
            self.decoder(prefix_states, self.mask, kv_cache=state.kv_cache, record=record)
            if valid is not None:
                if bool((valid[:, 1:] & ~valid[:, :-1]).any()):
                    raise ShapeError("A prefix has padding before valid positions.", hint="Pad prefixes on the right.")
                state.crop(valid.sum(dim=1).tolist())
        return state

    def step(self, tokens: Tensor, state: DecodingState, record: Record | None = None) -> Tensor:
        """Return logits (B, k, vocabulary) for the next k tokens (B, k) of each row, and advance the state."""
        x, _ = self.tokens(tokens)  # (B, k, D)
        return self.head(self.decoder(x, self.mask, kv_cache=state.kv_cache, record=record))

    def _read_prefix(self, prefix: Tensor, valid: Tensor | None) -> tuple[Tensor, Tensor | None]:
        if self.prefix is None:
            raise ShapeError(
                "The model has no prefix input, but a prefix was passed.", hint="Build the model with a `prefix`."
            )
        return self.prefix(prefix, valid)
