"""All see all: read a sequence and say something about it."""

from typing import TYPE_CHECKING

from torch import Tensor, nn

from regard.models.heads import Head
from regard.models.inputs import Input
from regard.nn.masks import Mask, everything, padding, same_document
from regard.nn.record import Record
from regard.nn.stack import Stack


class EncoderOnly(nn.Module):
    """source -> encoder -> head."""

    def __init__(self, source: Input, encoder: Stack, head: Head, mask: Mask) -> None:
        super().__init__()
        self.source = source
        self.encoder = encoder
        self.head = head
        self.mask = mask  # what the configuration hides: everything is seen, or a window

    def forward(
        self,
        source: Tensor,
        real: Tensor | None = None,
        *,
        types: Tensor | None = None,
        positions: Tensor | None = None,
        documents: Tensor | None = None,
        record: Record | None = None,
    ) -> Tensor:
        """The head's logits; `real` is False for padding, `documents` (B, T) keeps packed texts apart."""
        x, real = self.vectors(source, real, types=types, positions=positions, documents=documents, record=record)
        return self.head(x, real)

    if TYPE_CHECKING:
        __call__ = forward

    def vectors(
        self,
        source: Tensor,
        real: Tensor | None = None,
        *,
        types: Tensor | None = None,
        positions: Tensor | None = None,
        documents: Tensor | None = None,
        record: Record | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """What the head reads: (B, T, D), and which of it is real."""
        x, real = self.source(source, real, types)  # (B, T, D), (B, T)
        mask = self.mask & (everything() if real is None else padding(real))
        if documents is not None:
            mask = mask & same_document(documents)
        return self.encoder(x, mask, positions, record=record), real
