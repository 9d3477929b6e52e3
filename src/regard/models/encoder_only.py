"""The encoder-only family (BERT, ViT): bidirectional self-attention over a sequence."""

from typing import TYPE_CHECKING, Any, ClassVar

from torch import Tensor, nn

from regard.models.batch_inputs import BatchInputs, require
from regard.models.heads import Head, PixelHead
from regard.models.inputs import Input, PatchInput
from regard.nn.masks import Mask, no_mask, padding, same_document
from regard.nn.record import Record
from regard.nn.stack import Stack


class EncoderOnly(nn.Module):
    """source -> encoder -> head."""

    sides: ClassVar[tuple[str, ...]] = ("source",)
    """Names of the modules that embed the model's input."""

    def __init__(self, source: Input, encoder: Stack, head: Head, mask: Mask) -> None:
        super().__init__()
        self.source = source
        self.encoder = encoder
        self.head = head
        self.mask = mask  # no mask, or a window

    def forward(
        self,
        source: Tensor,
        valid: Tensor | None = None,
        *,
        types: Tensor | None = None,
        positions: Tensor | None = None,
        documents: Tensor | None = None,
        record: Record | None = None,
    ) -> Tensor:
        """Return the head's logits.

        Args:
            source: Tokens (B, T), images or mel spectrograms.
            valid: False for padding.
            types: Token types (B, T).
            positions: (B, T), restarting at each document of a packed row. For images, the indices of the encoded
                vectors: the class token is 0, the first patch 1.
            documents: (B, T), the number of each token's document in a packed row.
            record: Where to record attentions and residuals.
        """
        x, valid = self.hidden_states(
            source, valid, types=types, positions=positions, documents=documents, record=record
        )
        if isinstance(self.head, PixelHead) and isinstance(self.source, PatchInput):
            return self.head(x, valid, positions, self.source.count_vectors(source))
        return self.head(x, valid)

    if TYPE_CHECKING:
        __call__ = forward

    def hidden_states(
        self,
        source: Tensor,
        valid: Tensor | None = None,
        *,
        types: Tensor | None = None,
        positions: Tensor | None = None,
        documents: Tensor | None = None,
        record: Record | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Return the hidden states that the head reads, (B, T, D), and their padding mask."""
        x, valid = self.source(source, valid, types)  # (B, T, D), (B, T)
        if positions is not None and isinstance(self.source, PatchInput):
            x = x.gather(1, positions[..., None].expand(-1, -1, x.size(-1)))  # (B, V, D): the visible ones
        mask = self.mask & (no_mask() if valid is None else padding(valid))
        if documents is not None:
            mask = mask & same_document(documents)
        return self.encoder(x, mask, positions, record=record), valid

    def read_sides(self, source: Tensor, target: Tensor, **options: Any) -> Tensor:  # noqa: ARG002
        """Return the hidden states that the head reads, (B, T, D). Each model family uses the sides it needs."""
        return self.hidden_states(source, **options)[0]

    def read_batch(self, batch: BatchInputs) -> tuple[Tensor, Tensor | None]:
        """Return the hidden states that the head reads in training, (B, T, D), and their padding mask."""
        return self.hidden_states(
            require(batch.source), batch.source_valid, types=batch.types, positions=batch.positions
        )
