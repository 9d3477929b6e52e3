"""The encoder-decoder family (the original Transformer): encodes a source, then generates a target token by token."""

from typing import TYPE_CHECKING, Any, ClassVar

from torch import Tensor, nn

from regard.models.batch_inputs import BatchInputs, require
from regard.models.heads import LMHead
from regard.models.inputs import Input, TokenInput
from regard.nn.attention import CrossAttention
from regard.nn.kv_cache import DecodingState, KVCache
from regard.nn.masks import Mask, no_mask, padding
from regard.nn.record import Record
from regard.nn.recurrent import RecurrentLayer
from regard.nn.stack import Stack

Memory = tuple[Tensor, Tensor | None]  # encoder output (B, S, D) and its padding mask (B, S), True for tokens


class EncoderDecoder(nn.Module):
    """source -> encoder -> memory; target, memory -> decoder -> head."""

    sides: ClassVar[tuple[str, ...]] = ("source", "target")
    """Names of the modules that embed the model's input."""

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
        self.encoder_mask = encoder_mask  # no mask, or a window
        self.decoder_mask = decoder_mask  # causal, optionally within a window

    def forward(
        self,
        source: Tensor,
        target: Tensor,
        source_valid: Tensor | None = None,
        *,
        record: Record | None = None,
    ) -> Tensor:
        """Return logits (B, T, vocabulary) for every target token (teacher forcing).

        Args:
            source: Source tokens (B, S), images or mel spectrograms.
            target: Target tokens (B, T), padded on the right; the causal mask hides the padding.
            source_valid: False for padding in the source.
            record: Where to record attentions and residuals.
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
        """Return the hidden states that the head reads, (B, T, D)."""
        memory = self.encode(source, source_valid, record=record)
        return self.decode(target, memory, record=record)

    def read_sides(self, source: Tensor, target: Tensor, **options: Any) -> Tensor:
        """Return the hidden states that the head reads, (B, T, D). Each model family uses the sides it needs."""
        return self.hidden_states(source, target, **options)

    def read_batch(self, batch: BatchInputs) -> tuple[Tensor, Tensor | None]:
        """Return the hidden states that the head reads in training, (B, T, D), and no padding mask."""
        return self.hidden_states(require(batch.source), require(batch.target), batch.source_valid), None

    def encode(self, source: Tensor, valid: Tensor | None = None, *, record: Record | None = None) -> Memory:
        """Return the encoder output (B, S, D) of a source, and its padding mask."""
        x, valid = self.source(source, valid)  # (B, S, D), (B, S)
        return self.encoder(x, self.encoder_mask & _padding_mask(valid), record=record), valid

    def decode(self, target: Tensor, memory: Memory, *, record: Record | None = None) -> Tensor:
        """Return the decoder's hidden states (B, T, D) over a memory."""
        x, _ = self.target(target)  # (B, T, D)
        hidden_states, valid = memory
        return self.decoder(x, self.decoder_mask, None, hidden_states, _padding_mask(valid), record=record)

    def start(
        self, source: Tensor, source_valid: Tensor | None = None, *, capacity: int, record: Record | None = None
    ) -> DecodingState:
        """Encode the source and return a decoding state for at most `capacity` target tokens per row."""
        memory, valid = self.encode(source, source_valid, record=record)
        state = DecodingState(KVCache(capacity), valid)
        for module in self.decoder.modules():  # also those inside a module that wraps a layer or an attention
            if isinstance(module, CrossAttention | RecurrentLayer):
                module.cache_memory(memory, state.kv_cache)
        return state

    def step(self, tokens: Tensor, state: DecodingState, record: Record | None = None) -> Tensor:
        """Return logits (B, k, vocabulary) for the next k tokens (B, k) of each row, and advance the state."""
        x, _ = self.target(tokens)  # (B, k, D)
        memory_mask = _padding_mask(state.memory_valid)
        x = self.decoder(x, self.decoder_mask, memory_mask=memory_mask, kv_cache=state.kv_cache, record=record)
        return self.head(x)


def _padding_mask(valid: Tensor | None) -> Mask:
    return no_mask() if valid is None else padding(valid)
