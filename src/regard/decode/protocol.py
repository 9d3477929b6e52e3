"""What a search drives, and what it finds.

A model that writes is two things to a search: a function `step(tokens (R, k), state) -> logits (R, k, V)`, which reads
k more tokens of each of R rows, and the state that it moves on. A row is one text being written. The search may copy,
drop and move rows (`reorder`) and take tokens back (`crop`); it knows nothing else, so a table of probabilities is a
model, too, and that is how searches are tested. The logits belong to the search, which may write over them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from torch import Tensor

from regard.base.errors import RegardError
from regard.decode.length_penalty import LengthPenalty, as_function


class State(Protocol):
    """What a model carries from step to step: `regard.models.state.State`, or a test's own."""

    def reorder(self, index: Tensor) -> None:
        """Row i becomes what row index[i] was; rows may be repeated, dropped or moved. (Best: an index on the CPU.)"""

    def crop(self, lengths: int | Sequence[int]) -> None:
        """Take back all tokens beyond these lengths: one for all rows, or one for each."""


S = TypeVar("S", bound=State)
Step = Callable[[Tensor, S], Tensor]  # tokens (R, k), state -> logits (R, k, V)


@dataclass(frozen=True)
class Hypothesis:
    """A text that was written."""

    tokens: tuple[int, ...]
    """As they were written; END is the last of them if the text `ended`."""
    logprobs: tuple[float, ...]
    """The log-probability that the model gave each token."""
    score: float
    """sum(logs) / len(tokens) ** alpha, or in another form of `regard.decode.length_penalty`."""
    ended: bool
    """Whether it came to its end, or was cut off at its longest length."""

    @property
    def without_eos(self) -> tuple[int, ...]:
        """The tokens without END.

        >>> Hypothesis((5, 7, 2), (-0.1, -0.2, -0.3), -0.2, ended=True).without_eos
        (5, 7)
        """
        return self.tokens[:-1] if self.ended else self.tokens


def make_hypothesis(
    tokens: Sequence[int], logprobs: Sequence[float], eos: int, length_penalty: LengthPenalty
) -> Hypothesis:
    """A hypothesis with its score; a model whose numbers are not numbers is refused here."""
    score = sum(logprobs) / as_function(length_penalty)(len(tokens))
    if score != score:  # NaN
        raise nan_error()
    return Hypothesis(tuple(tokens), tuple(logprobs), score, ended=tokens[-1] == eos)


def nan_error() -> RegardError:
    """What is said of a model that has lost its mind."""
    return RegardError(
        "The model's scores are not numbers (NaN): its weights are damaged, or its training went wrong.",
        fix="Use an earlier checkpoint, or train with a smaller learning rate.",
    )


def check_max_lengths(max_lengths: Sequence[int], rows: int) -> None:
    """One length for each row, and room for a token in each."""
    if len(max_lengths) != rows:
        raise RegardError(f"{len(max_lengths)} lengths for {rows} rows.", fix="Give one `longest` for each row.")
    if min(max_lengths) < 1:
        raise RegardError(f"A text of {min(max_lengths)} tokens cannot be written.", fix="Give `longest` of 1 or more.")
