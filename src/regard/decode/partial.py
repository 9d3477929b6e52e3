"""Unfinished hypotheses as separate objects, for searches that rank them one by one (diverse, grid, stochastic)."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.decode.length_penalty import LengthPenalty, as_function
from regard.decode.protocol import NEG_INF, Hypothesis, S, State, Step, make_hypothesis


@dataclass(eq=False)
class PartialHypothesis:
    """An unfinished hypothesis: its tokens so far, and the row of the model's state that has read them.

    `advance` changes the row, so hypotheses are compared by identity.
    """

    row: int
    tokens: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    total: float = 0.0
    """The sum of the log-probabilities."""

    def extend(self, token: int, logprob: float) -> "PartialHypothesis":
        """Return this hypothesis with one more token.

        >>> PartialHypothesis(3, (5,), (-1.0,), -1.0).extend(7, -0.5)
        PartialHypothesis(row=3, tokens=(5, 7), logprobs=(-1.0, -0.5), total=-1.5)
        """
        return PartialHypothesis(self.row, (*self.tokens, token), (*self.logprobs, logprob), self.total + logprob)


def next_logprobs(step: Step[S], state: S, tokens: Tensor, suppress_tokens: Tensor | None) -> Tensor:
    """Read tokens (R, k) and return the log-probabilities of the next token, (R, V); -inf for suppressed tokens."""
    logprobs = step(tokens, state)[:, -1].float().log_softmax(dim=-1)  # (R, V)
    return logprobs if suppress_tokens is None else logprobs.index_fill(1, suppress_tokens, NEG_INF)


def advance(state: State, hypotheses: Sequence[PartialHypothesis], device: torch.device) -> Tensor:
    """Give row i to hypothesis i, and return the tokens that the model reads next, (R, 1)."""
    state.reorder(torch.tensor([hypothesis.row for hypothesis in hypotheses]))
    for row, hypothesis in enumerate(hypotheses):
        hypothesis.row = row
    return torch.tensor([[hypothesis.tokens[-1]] for hypothesis in hypotheses], device=device)


def split_finished(
    candidates: Sequence[PartialHypothesis], beam_size: int, eos: int, *, is_last: bool
) -> tuple[list[PartialHypothesis], list[PartialHypothesis]]:
    """Split candidates (best first) into finished and open ones, by the rule of `regard.decode.beam`.

    Candidates that end with eos are finished if they are among the best `beam_size`. The best `beam_size` of the
    remaining ones stay open. At the maximum length (`is_last`) the best `beam_size` candidates are finished, with or
    without eos.
    """
    finished = [candidate for candidate in candidates[:beam_size] if is_last or candidate.tokens[-1] == eos]
    open_hypotheses = (
        [] if is_last else [candidate for candidate in candidates if candidate.tokens[-1] != eos][:beam_size]
    )
    return finished, open_hypotheses


class FinishedHypotheses:
    """The best finished hypotheses of one sentence."""

    def __init__(self, eos: int, max_new_tokens: int, length_penalty: LengthPenalty, n_best: int) -> None:
        self.eos, self.length_penalty, self.n_best = eos, length_penalty, n_best
        self.max_new_tokens, self.penalty_fn = max_new_tokens, as_function(length_penalty)
        self.hypotheses: list[Hypothesis] = []

    def add(self, partials: Sequence[PartialHypothesis]) -> None:
        """Score finished hypotheses and keep the best `n_best` of all."""
        self.hypotheses += [
            make_hypothesis(partial.tokens, partial.logprobs, self.eos, self.length_penalty) for partial in partials
        ]
        self.hypotheses = sorted(self.hypotheses, key=lambda hypothesis: -hypothesis.score)[: self.n_best]

    def is_settled(self, open_hypotheses: Sequence[PartialHypothesis], max_length: int | None = None) -> bool:
        """Return whether no open hypothesis can still enter the n-best list (the bound of `regard.decode.beam`).

        Args:
            open_hypotheses: The open hypotheses.
            max_length: Length by which they would have to end; None for the maximum length.
        """
        if len(self.hypotheses) < self.n_best:
            return not open_hypotheses
        divisor = self.penalty_fn(min(max_length or self.max_new_tokens, self.max_new_tokens))
        return all(self.hypotheses[-1].score >= partial.total / divisor for partial in open_hypotheses)

    def copy_empty(self) -> "FinishedHypotheses":
        """Return an empty list with the same settings."""
        return FinishedHypotheses(self.eos, self.max_new_tokens, self.length_penalty, self.n_best)
