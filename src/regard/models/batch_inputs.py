"""The model inputs of a training batch."""

from typing import Protocol

from torch import Tensor


class BatchInputs(Protocol):
    """The inputs of a batch; inputs that its task does not use are None."""

    @property
    def source(self) -> Tensor | None:
        """The encoder's input: tokens (B, S), images or spectrograms."""

    @property
    def source_valid(self) -> Tensor | None:
        """(B, S) False for padding."""

    @property
    def types(self) -> Tensor | None:
        """(B, S) token types."""

    @property
    def target(self) -> Tensor | None:
        """The decoder's input, (B, T)."""

    @property
    def positions(self) -> Tensor | None:
        """(B, T) from 0 in every document; for images, the indices of the visible vectors."""

    @property
    def documents(self) -> Tensor | None:
        """(B, T) the document of each token."""


def require(tokens: Tensor | None) -> Tensor:
    """Return an input that is always set in the batches of this model's tasks."""
    assert tokens is not None  # noqa: S101 - the rows of the task set it
    return tokens
