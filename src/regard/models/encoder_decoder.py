"""Read the source as a whole, then write the target word by word, looking back at the source."""

from typing import TYPE_CHECKING

from torch import Tensor, nn

from regard.models.heads import WordHead
from regard.models.inputs import Input, TokenInput
from regard.models.state import State
from regard.nn.cache import Cache
from regard.nn.masks import Mask, everything, padding
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
        head: WordHead,
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
        source_real: Tensor | None = None,
        *,
        record: Record | None = None,
    ) -> Tensor:
        """Logits (B, T, words) for every target token.

        `source_real` is False for padding in the source. Targets are padded on the right, where no earlier
        token looks.
        """
        return self.head(self.vectors(source, target, source_real, record=record))

    if TYPE_CHECKING:
        __call__ = forward

    def vectors(
        self,
        source: Tensor,
        target: Tensor,
        source_real: Tensor | None = None,
        *,
        record: Record | None = None,
    ) -> Tensor:
        """What the head reads: (B, T, D)."""
        memory = self.encode(source, source_real, record=record)
        return self.decode(target, memory, record=record)

    def encode(self, source: Tensor, real: Tensor | None = None, *, record: Record | None = None) -> Memory:
        """The memory (B, S, D) of a source, and which of it is real."""
        x, real = self.source(source, real)  # (B, S, D), (B, S)
        return self.encoder(x, self.encoder_mask & _seen(real), record=record), real

    def decode(self, target: Tensor, memory: Memory, *, record: Record | None = None) -> Tensor:
        """The decoder's vectors (B, T, D) over a memory."""
        x, _ = self.target(target)  # (B, T, D)
        vectors, real = memory
        return self.decoder(x, self.decoder_mask, None, vectors, _seen(real), record=record)

    def start(self, source: Tensor, source_real: Tensor | None = None, *, capacity: int) -> State:
        """Read the source once; room for `capacity` target tokens a row."""
        memory, real = self.encode(source, source_real)
        state = State(Cache(capacity), real)
        self.decoder.remember(memory, state.cache)
        return state

    def step(self, tokens: Tensor, state: State, record: Record | None = None) -> Tensor:
        """Logits (B, k, words) for the next k tokens (B, k) of each row; the state moves on."""
        x, _ = self.target(tokens)  # (B, k, D)
        seen = _seen(state.memory_real)
        x = self.decoder(x, self.decoder_mask, memory_mask=seen, cache=state.cache, record=record)
        return self.head(x)


def _seen(real: Tensor | None) -> Mask:
    return everything() if real is None else padding(real)
