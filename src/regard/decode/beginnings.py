"""Texts that are being written, kept one by one: for the searches that treat each of them differently."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from regard.decode.lengths import Alpha, normaliser
from regard.decode.step import Hypothesis, S, State, Step, hypothesis, not_a_number

NOTHING = float("-inf")


@dataclass(frozen=True)
class Beginning:
    """The beginning of a text: what was written of it, and in which of the model's rows it was read."""

    row: int
    tokens: tuple[int, ...] = ()
    logs: tuple[float, ...] = ()
    total: float = 0.0
    """Its log-probability."""

    def plus(self, token: int, log: float) -> "Beginning":
        """One token more.

        >>> Beginning(3, (5,), (-1.0,), -1.0).plus(7, -0.5)
        Beginning(row=3, tokens=(5, 7), logs=(-1.0, -0.5), total=-1.5)
        """
        return Beginning(self.row, (*self.tokens, token), (*self.logs, log), self.total + log)


def word_logs(step: Step[S], state: S, tokens: Tensor, never: Tensor | None) -> Tensor:
    """The log-probabilities of the next word, (R, V), after reading tokens (R, k); -inf for what is never written."""
    logs = step(tokens, state)[:, -1].float().log_softmax(dim=-1)  # (R, V)
    return logs if never is None else logs.index_fill(1, never, NOTHING)


def go_on(state: State, opened: Sequence[Beginning], device: torch.device) -> tuple[Tensor, list[Beginning]]:
    """The model's rows become those of the open beginnings: what it must read next (R, 1), and the beginnings."""
    state.reorder(torch.tensor([one.row for one in opened], device=device))
    tokens = torch.tensor([[one.tokens[-1]] for one in opened], device=device)  # (R, 1)
    return tokens, [replace(one, row=row) for row, one in enumerate(opened)]


def parted(candidates: Sequence[Beginning], size: int, end: int, *, last: bool) -> tuple[list[Beginning], ...]:
    """The rule of `regard.decode.beam`: which candidates (best first) are finished, and which stay open.

    Those that end are finished if they are among the best `size`; the best `size` of the others stay open. At the
    longest length (`last`) the best `size` are finished as they are.
    """
    finished = [one for one in candidates[:size] if last or one.tokens[-1] == end]
    opened = [] if last else [one for one in candidates if one.tokens[-1] != end][:size]
    return finished, opened


class Finished:
    """The best finished texts of one sentence, and whether an open one could still be among them."""

    def __init__(self, end: int, limit: int, alpha: Alpha, best: int) -> None:
        self.end, self.alpha, self.best = end, alpha, best
        self.most = normaliser(alpha)(limit)  # what the longest text is divided by
        self.texts: list[Hypothesis] = []

    def add(self, new: Sequence[Beginning]) -> None:
        """More of them."""
        self.texts += [hypothesis(one.tokens, one.logs, self.end, self.alpha) for one in new]
        self.texts = sorted(self.texts, key=lambda text: -text.score)[: self.best]

    def cannot_change(self, opened: Sequence[Beginning]) -> bool:
        """The bound of `regard.decode.beam`: not even free words up to the longest length would be enough."""
        if len(self.texts) < self.best:
            return not opened
        return all(self.texts[-1].score >= one.total / self.most for one in opened)


def check_numbers(values: Sequence[float]) -> None:
    """A model whose numbers are not numbers is refused."""
    if any(value != value for value in values):  # NaN
        raise not_a_number()
