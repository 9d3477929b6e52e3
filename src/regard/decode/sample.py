"""Sampling: words are drawn, not chosen. The filters act in one order: temperature, top-k, top-p.

    logits / temperature   below 1 the likely words become likelier, above 1 all become more alike; 0 is greedy
    top_k                  only the k likeliest words
    top_p                  of what is left, the fewest likeliest words that together reach probability p (at least one)

What remains is drawn from in proportion to its probabilities, with the generator that is given: the same seed draws the
same text.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.decode.step import Hypothesis, S, Step, check_longest, hypothesis, not_a_number
from regard.decode.top import first as likeliest
from regard.decode.top import top


@dataclass(frozen=True)
class Filters:
    """What is done to a distribution before a word is drawn from it. The defaults do nothing."""

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.temperature < float("inf"):
            raise RegardError(f"There is no temperature of {self.temperature}.", fix="Use 0 (greedy) or more.")
        if self.top_k is not None and self.top_k < 1:
            raise RegardError(f"The best {self.top_k} words are none.", fix="Use a top_k of 1 or more.")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise RegardError(f"There is no probability of {self.top_p}.", fix="Use a top_p above 0, at most 1.")

    def candidates(self, logits: Tensor) -> tuple[Tensor, Tensor | None]:
        """Probabilities (R, n) of the words that are left, and which words these are (R, n); None: all, in order.

        >>> logits = torch.tensor([[0.1, 0.5, 0.15, 0.25]]).log()
        >>> probabilities, words = Filters(top_k=3, top_p=0.8).candidates(logits)
        >>> [round(probability, 3) for probability in probabilities[0].tolist()], words.tolist()
        ([0.667, 0.333, 0.0], [[1, 3, 2]])
        """
        logits = logits.float() / self.temperature
        words = None
        if self.top_k is not None and self.top_k < logits.size(1):
            logits, words = top(logits, self.top_k)  # (R, k), best first
        elif self.top_p is not None and self.top_p < 1:
            logits, words = logits.sort(dim=1, descending=True, stable=True)  # (R, V)
        probabilities = logits.softmax(dim=1)
        if self.top_p is not None and self.top_p < 1:
            before = probabilities.cumsum(dim=1) - probabilities  # what likelier words have together
            probabilities = probabilities.masked_fill(before >= self.top_p, 0.0)
            probabilities = probabilities / probabilities.sum(dim=1, keepdim=True)
        return probabilities, words

    def draw(self, logits: Tensor, generator: torch.Generator) -> Tensor:
        """One word for each row: (R, V) -> (R, 1)."""
        if self.temperature == 0:
            return likeliest(logits)
        probabilities, words = self.candidates(logits)
        # Whoever of exponential waiting times with rates p rings first is drawn with probability p: no sum, no check
        # that the device would have to wait for.
        waiting = torch.empty_like(probabilities).exponential_(generator=generator)
        drawn = (probabilities / waiting).argmax(dim=1, keepdim=True)  # (R, 1)
        return drawn if words is None else words.gather(1, drawn)


Written = list[tuple[int, float] | None]  # for each row its token and log-probability; None after its end


def sampled(
    step: Step[S],
    state: S,
    first: Tensor,
    *,
    end: int,
    longest: Sequence[int],
    generator: torch.Generator,
    filters: Filters | None = None,
    never: Tensor | None = None,
) -> Iterator[Written]:
    """Tokens as they are drawn, one step of all rows at a time.

    `first` (R, k) is what is read before anything is written. At most `longest` tokens of each row are written, END
    included; words in `never` (n) are not. The log-probabilities are the model's own, before any filter.
    """
    filters = filters or Filters()
    check_longest(longest, first.size(0))
    rows = list(range(first.size(0)))  # which text each row is
    tokens = first
    for place in range(max(longest)):
        logits = step(tokens, state)[:, -1].float()  # (R, V)
        logs = logits.log_softmax(dim=-1)
        allowed = logs if never is None else logs.index_fill(1, never, float("-inf"))
        tokens = filters.draw(allowed, generator)  # (R, 1)
        facts = torch.cat((tokens.double(), logs.gather(1, tokens).double()), dim=1).tolist()  # the one wait
        written: Written = [None] * first.size(0)
        for row, (token, log) in zip(rows, facts, strict=True):
            if log != log:  # NaN
                raise not_a_number()
            written[row] = (int(token), log)
        yield written
        stay = [n for n, row in enumerate(rows) if facts[n][0] != end and place + 1 < longest[row]]
        if not stay:
            return
        if len(stay) < len(rows):
            index = torch.tensor(stay, device=first.device)
            state.reorder(index)
            tokens, rows = tokens[index], [rows[n] for n in stay]


def sample(
    step: Step[S],
    state: S,
    first: Tensor,
    *,
    end: int,
    longest: Sequence[int],
    generator: torch.Generator,
    filters: Filters | None = None,
    alpha: float = 1.0,
    never: Tensor | None = None,
) -> list[Hypothesis]:
    """One text for each row, drawn as `sampled` draws it."""
    steps = sampled(step, state, first, end=end, longest=longest, generator=generator, filters=filters, never=never)
    texts: list[list[tuple[int, float]]] = [[] for _ in longest]
    for written in steps:
        for text, new in zip(texts, written, strict=True):
            if new is not None:
                text.append(new)
    return [hypothesis([token for token, _ in text], [log for _, log in text], end, alpha) for text in texts]
