"""The interface between a search and a model, and the types and checks that all searches share.

A search sees a model as a function `step(tokens (R, k), state) -> logits (R, k, V)`, which reads k more tokens of each
of R rows and updates the state. A row is one sequence that is being generated. The search may copy, drop and move rows
(`reorder`) and remove tokens from the end (`crop`). A table of probabilities is therefore enough to serve as a model,
which the tests use. The search owns the logits and may overwrite them.

All searches share these arguments, and raise RegardError if one is out of range or the logits are NaN:

    step: The model.
    state: The model's state for one row per sentence; the search modifies it.
    prompt: Tokens (R, k) that the model reads first: [bos], or [bos] and a forced prefix.
    eos: The end-of-sequence token.
    max_lengths: Maximum number of generated tokens of each sentence, eos included.
    length_penalty: The exponent alpha of |y|^alpha, or a function of `regard.decode.length_penalty`. It ranks the
        hypotheses of a beam search; other searches only use it to normalize the reported score.
    suppress_tokens: Token ids (n) that are never generated. The probabilities of other tokens do not change.
    generator: Random number generator on the device of `prompt`.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

from regard.base.errors import RegardError
from regard.decode.length_penalty import LengthPenalty, as_function

if TYPE_CHECKING:
    from torch import Tensor

NEG_INF = float("-inf")  # the log-probability of an impossible token


class State(Protocol):
    """State of a model between two steps, for instance `regard.nn.kv_cache.DecodingState`."""

    def reorder(self, index: "Tensor") -> None:
        """Replace row i by the old row index[i]; rows may be repeated, dropped or moved.

        Searches pass an index on the CPU: the KV cache reads it there without waiting for the device.
        """

    def crop(self, lengths: int | Sequence[int]) -> None:
        """Remove all tokens beyond these lengths: one length for all rows, or one per row."""


S = TypeVar("S", bound=State)
Step = Callable[["Tensor", S], "Tensor"]  # tokens (R, k), state -> logits (R, k, V)


@dataclass(frozen=True)
class Hypothesis:
    """A generated sequence with its score."""

    tokens: tuple[int, ...]
    """The generated token ids; eos is the last of them if the sequence has `ended`."""
    logprobs: tuple[float, ...]
    """The log-probability that the model gave each token."""
    score: float
    """sum(logprobs) / len(tokens) ** length_penalty, or another form of `regard.decode.length_penalty`."""
    ended: bool
    """True if the sequence ends with eos, False if it was cut off at its maximum length."""

    @property
    def without_eos(self) -> tuple[int, ...]:
        """The tokens without eos.

        >>> Hypothesis((5, 7, 2), (-0.1, -0.2, -0.3), -0.2, ended=True).without_eos
        (5, 7)
        """
        return self.tokens[:-1] if self.ended else self.tokens


def make_hypothesis(
    tokens: Sequence[int], logprobs: Sequence[float], eos: int, length_penalty: LengthPenalty
) -> Hypothesis:
    """Create a hypothesis and compute its score.

    Raises:
        RegardError: A log-probability is NaN.
    """
    score = sum(logprobs) / as_function(length_penalty)(len(tokens))
    check_not_nan([score])
    return Hypothesis(tuple(tokens), tuple(logprobs), score, ended=tokens[-1] == eos)


def nan_error() -> RegardError:
    """Return the error to raise when logits are NaN."""
    return RegardError(
        "The model's logits are not numbers (NaN): its weights are damaged, or its training diverged.",
        hint="Use an earlier checkpoint, or train with a smaller learning rate.",
    )


def check_not_nan(values: Iterable[float]) -> None:
    """Raise `nan_error` if any value is NaN; -inf is allowed."""
    if any(value != value for value in values):
        raise nan_error()


def check_max_lengths(max_lengths: Sequence[int], rows: int) -> None:
    """Check that there is one maximum length per row, and that each is at least 1."""
    if len(max_lengths) != rows:
        raise RegardError(
            f"max_lengths has {len(max_lengths)} values, the prompt has {rows} rows.",
            hint="Pass one maximum length per row.",
        )
    if min(max_lengths) < 1:
        raise RegardError(f"max_lengths must be at least 1, got {min(max_lengths)}.", hint="Allow at least one token.")
