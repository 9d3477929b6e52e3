"""Texts that are being written, kept one by one: for the searches that treat each of them differently."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from regard.decode.length_penalty import LengthPenalty, as_function
from regard.decode.protocol import Hypothesis, S, State, Step, make_hypothesis, nan_error

NEG_INF = float("-inf")


@dataclass(frozen=True)
class PartialHypothesis:
    """The beginning of a text: what was written of it, and in which of the model's rows it was read."""

    row: int
    tokens: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    total: float = 0.0
    """Its log-probability."""

    def extend(self, token: int, logprob: float) -> "PartialHypothesis":
        """One token more.

        >>> PartialHypothesis(3, (5,), (-1.0,), -1.0).extend(7, -0.5)
        Beginning(row=3, tokens=(5, 7), logs=(-1.0, -0.5), total=-1.5)
        """
        return PartialHypothesis(self.row, (*self.tokens, token), (*self.logprobs, logprob), self.total + logprob)


def next_logprobs(step: Step[S], state: S, tokens: Tensor, suppressed: Tensor | None) -> Tensor:
    """The log-probabilities of the next word, (R, V), after reading tokens (R, k); -inf for what is never written."""
    logprobs = step(tokens, state)[:, -1].float().log_softmax(dim=-1)  # (R, V)
    return logprobs if suppressed is None else logprobs.index_fill(1, suppressed, NEG_INF)


def advance(
    state: State, hypotheses: Sequence[PartialHypothesis], device: torch.device
) -> tuple[Tensor, list[PartialHypothesis]]:
    """The model's rows become those of the open beginnings: what it must read next (R, 1), and the beginnings."""
    state.reorder(torch.tensor([hypothesis.row for hypothesis in hypotheses], device=device))
    tokens = torch.tensor([[hypothesis.tokens[-1]] for hypothesis in hypotheses], device=device)  # (R, 1)
    return tokens, [replace(hypothesis, row=row) for row, hypothesis in enumerate(hypotheses)]


def split_finished(
    candidates: Sequence[PartialHypothesis], beam_size: int, eos: int, *, is_last: bool
) -> tuple[list[PartialHypothesis], ...]:
    """The rule of `regard.decode.beam`: which candidates (best first) are finished, and which stay open.

    Those that end are finished if they are among the best `size`; the best `size` of the others stay open. At the
    longest length (`last`) the best `size` are finished as they are.
    """
    finished = [candidate for candidate in candidates[:beam_size] if is_last or candidate.tokens[-1] == eos]
    open_hypotheses = (
        [] if is_last else [candidate for candidate in candidates if candidate.tokens[-1] != eos][:beam_size]
    )
    return finished, open_hypotheses


class FinishedHypotheses:
    """The best finished texts of one sentence, and whether an open one could still be among them."""

    def __init__(self, eos: int, max_length: int, length_penalty: LengthPenalty, n_best: int) -> None:
        self.eos, self.length_penalty, self.n_best = eos, length_penalty, n_best
        self.max_divisor = as_function(length_penalty)(max_length)  # what the longest text is divided by
        self.hypotheses: list[Hypothesis] = []

    def add(self, partials: Sequence[PartialHypothesis]) -> None:
        """More of them."""
        self.hypotheses += [
            make_hypothesis(partial.tokens, partial.logprobs, self.eos, self.length_penalty) for partial in partials
        ]
        self.hypotheses = sorted(self.hypotheses, key=lambda text: -text.score)[: self.n_best]

    def is_settled(self, open_hypotheses: Sequence[PartialHypothesis]) -> bool:
        """The bound of `regard.decode.beam`: not even free words up to the longest length would be enough."""
        if len(self.hypotheses) < self.n_best:
            return not open_hypotheses
        return all(self.hypotheses[-1].score >= partial.total / self.max_divisor for partial in open_hypotheses)


def check_finite(values: Sequence[float]) -> None:
    """A model whose numbers are not numbers is refused."""
    if any(value != value for value in values):  # NaN
        raise nan_error()
