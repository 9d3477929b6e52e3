"""Read the source as a whole, then write the target word by word, looking back at the source."""

from typing import TYPE_CHECKING

from torch import Tensor, nn

from regard.models.heads import LMHead
from regard.models.inputs import Input, TokenInput
from regard.nn.kv_cache import DecodingState, KVCache
from regard.nn.masks import Mask, no_mask, padding
from regard.nn.record import Record
from regard.nn.stack import Stack

Memory = tuple[Tensor, Tensor | None]  # (B, S, D) and which of it is real, (B, S)


class EncoderDecoder(nn.Module):
    """source -> encoder -> memory; target, memory -> decoder -> head."""

    def __init__(
        self,
        source: Input,
        target: TokenInput,
        encoder: Stack,
        decoder: Stack,
        head: LMHead,
        encoder_mask: Mask,
        decoder_mask: Mask,
    ) -> None:
        super().__init__()
        self.source = source
        self.target = target
        self.encoder = encoder
        self.decoder = decoder
        self.head = head
        self.encoder_mask = encoder_mask  # everything, perhaps within a window
        self.decoder_mask = decoder_mask  # causal, perhaps within a window

    def forward(
        self,
        source: Tensor,
        target: Tensor,
        source_valid: Tensor | None = None,
        *,
        record: Record | None = None,
    ) -> Tensor:
        """Logits (B, T, words) for every target token.

        `source_valid` is False for padding in the source. Targets are padded on the right, where no earlier
        token looks.
        """
        return self.head(self.hidden_states(source, target, source_valid, record=record))

    if TYPE_CHECKING:
        __call__ = forward

    def hidden_states(
        self,
        source: Tensor,
        target: Tensor,
        source_valid: Tensor | None = None,
        *,
        record: Record | None = None,
    ) -> Tensor:
        """What the head reads: (B, T, D)."""
        memory = self.encode(source, source_valid, record=record)
        return self.decode(target, memory, record=record)

    def encode(self, source: Tensor, valid: Tensor | None = None, *, record: Record | None = None) -> Memory:
        """The memory (B, S, D) of a source, and which of it is real."""
        x, valid = self.source(source, valid)  # (B, S, D), (B, S)
        return self.encoder(x, self.encoder_mask & _padding_mask(valid), record=record), valid

    def decode(self, target: Tensor, memory: Memory, *, record: Record | None = None) -> Tensor:
        """The decoder's vectors (B, T, D) over a memory."""
        x, _ = self.target(target)  # (B, T, D)
        hidden_states, valid = memory
        return self.decoder(x, self.decoder_mask, None, hidden_states, _padding_mask(valid), record=record)

    def start(self, source: Tensor, source_valid: Tensor | None = None, *, capacity: int) -> DecodingState:
        """Read the source once; room for `capacity` target tokens a row."""
        memory, valid = self.encode(source, source_valid)
        state = DecodingState(KVCache(capacity), valid)
        self.decoder.cache_memory(memory, state.kv_cache)
        return state

    def step(self, tokens: Tensor, state: DecodingState, record: Record | None = None) -> Tensor:
        """Logits (B, k, words) for the next k tokens (B, k) of each row; the state moves on."""
        x, _ = self.target(tokens)  # (B, k, D)
        memory_mask = _padding_mask(state.memory_valid)
        x = self.decoder(x, self.decoder_mask, memory_mask=memory_mask, kv_cache=state.kv_cache, record=record)
        return self.head(x)


def _padding_mask(valid: Tensor | None) -> Mask:
    return no_mask() if valid is None else padding(valid)
