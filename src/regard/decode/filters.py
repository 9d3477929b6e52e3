"""What is done to a distribution before a word is drawn from it. The filters act in one order, this one:

    1  ngram        no word that would repeat a sequence of n tokens
    2  repetition   p^r for words that were written before; r > 1 makes them rarer
    3  temperature  p^(1/T): below 1 the likely words become likelier, above 1 all become more alike; 0 is greedy
    4  top_k        only the k likeliest words
    5  top_p        the fewest likeliest words that together reach probability p (at least one)
    6  min_p        only words with at least this share of the likeliest word's probability
    7  typical      the fewest words that together reach this probability, where those come first whose surprise
                    -log p is nearest to the expected one, the entropy (Meister et al. 2023)

After each of them what is left is made to sum to 1 again, and the next one sees only that. The order is that of
Hugging Face, where the repetition penalty (Keskar et al. 2019) acts on logits and depends on their sign; here it acts
on log-probabilities, because logits have no zero of their own: a constant added to all of them changes nothing.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.decode.topk import argmax as likeliest
from regard.decode.topk import topk

NUCLEUS_HEAD_SIZE = 256  # words among which a share of the probability is looked for first


@dataclass(frozen=True)
class Filters:
    """The defaults do nothing."""

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    typical_p: float | None = None
    repetition_penalty: float = 1.0
    no_repeat_ngram: int | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.temperature < float("inf"):
            raise RegardError(f"There is no temperature of {self.temperature}.", fix="Use 0 (greedy) or more.")
        if self.top_k is not None and self.top_k < 1:
            raise RegardError(f"The best {self.top_k} words are none.", fix="Use a top_k of 1 or more.")
        for name in ("top_p", "min_p", "typical_p"):
            value = getattr(self, name)
            if value is not None and not 0 < value <= 1:
                raise RegardError(f"There is no probability of {value}.", fix=f"Use a {name} above 0, at most 1.")
        if not 0 < self.repetition_penalty < float("inf"):
            raise RegardError(
                f"There is no repetition penalty of {self.repetition_penalty}.", fix="Use 1 (none) or more."
            )
        if self.no_repeat_ngram is not None and self.no_repeat_ngram < 1:
            raise RegardError(f"No sequence has {self.no_repeat_ngram} tokens.", fix="Use an ngram of 1 or more.")

    @property
    def needs_history(self) -> bool:
        """Whether they must know what was written before."""
        return self.no_repeat_ngram is not None or self.repetition_penalty != 1

    def apply_penalties(self, logprobs: Tensor, history: Tensor) -> Tensor:
        """Log-probabilities (R, V) after the first two filters; `history` (R, n) is all that was read before.

        >>> logs = torch.tensor([[0.5, 0.25, 0.25]]).log()
        >>> Filters(repetition_penalty=2, no_repeat_ngram=2).apply_penalties(logs, torch.tensor([[0, 1, 0]])).exp()
        tensor([[0.2500, 0.0000, 0.2500]])
        """
        if self.no_repeat_ngram is not None and self.no_repeat_ngram <= history.size(1):
            ngrams = history.unfold(1, self.no_repeat_ngram, 1)  # (R, runs, ngram): every sequence that was written
            prefix = history[:, history.size(1) - self.no_repeat_ngram + 1 :]  # (R, ngram - 1): the one being written
            is_match = (ngrams[:, :, :-1] == prefix[:, None]).all(dim=2)  # (R, runs)
            match_counts = torch.zeros_like(logprobs).scatter_add_(1, ngrams[:, :, -1], is_match.to(logprobs.dtype))
            logprobs = logprobs.masked_fill(match_counts > 0, float("-inf"))
        if self.repetition_penalty != 1:
            is_repeated = torch.zeros_like(logprobs, dtype=torch.bool).scatter_(1, history, value=True)  # (R, V)
            logprobs = torch.where(is_repeated, logprobs * self.repetition_penalty, logprobs)
        return logprobs

    def candidates(self, logits: Tensor) -> tuple[Tensor, Tensor | None]:
        """Probabilities (R, n) of the words that are left, and which words these are (R, n); None: all, in order.

        The last five filters, with a temperature above 0.

        >>> logits = torch.tensor([[0.1, 0.5, 0.15, 0.25]]).log()
        >>> probabilities, words = Filters(top_k=3, top_p=0.8).candidates(logits)
        >>> [round(probability, 3) for probability in probabilities[0].tolist()], words.tolist()
        ([0.667, 0.333, 0.0], [[1, 3, 2]])
        """
        logits = logits.float() / self.temperature
        tokens = None
        if self.top_k is not None and self.top_k < logits.size(1):
            logits, tokens = topk(logits, self.top_k)  # (R, k), best first
        probabilities = logits.softmax(dim=1)
        if self.top_p is not None and self.top_p < 1:
            if tokens is None:
                probabilities, tokens = _top_probabilities(probabilities, self.top_p)  # (R, n), best first
            probabilities = _nucleus(probabilities, self.top_p)
        if self.min_p is not None:
            is_likely = probabilities >= self.min_p * probabilities.amax(dim=1, keepdim=True)
            probabilities = _normalise(probabilities * is_likely)
        if self.typical_p is not None and self.typical_p < 1:
            probabilities = _typical_set(probabilities, self.typical_p)
        return probabilities, tokens

    def probabilities(self, logits: Tensor) -> Tensor:
        """The distribution that is drawn from, (R, V) -> (R, V); at temperature 0 all of it is on one word.

        >>> Filters(top_k=2).probabilities(torch.tensor([[0.1, 0.5, 0.15, 0.25]]).log())
        tensor([[0.0000, 0.6667, 0.0000, 0.3333]])
        """
        empty = torch.zeros_like(logits, dtype=torch.float)
        if self.temperature == 0:
            return empty.scatter_(1, likeliest(logits), 1.0)
        probabilities, tokens = self.candidates(logits)
        return probabilities if tokens is None else empty.scatter_(1, tokens, probabilities)

    def draw(self, logits: Tensor, generator: torch.Generator) -> Tensor:
        """One word for each row: (R, V) -> (R, 1)."""
        if self.temperature == 0:
            return likeliest(logits)
        probabilities, tokens = self.candidates(logits)
        columns = draw(probabilities, generator)
        return columns if tokens is None else tokens.gather(1, columns)


def draw(probabilities: Tensor, generator: torch.Generator) -> Tensor:
    """One column of each row, as probable as it says: (R, n) -> (R, 1). Rows need not sum to 1."""
    # Whoever of exponential waiting times with rates p rings first is drawn with probability p: no sum, no check that
    # the device would have to wait for.
    waiting_times = torch.empty_like(probabilities).exponential_(generator=generator)
    return (probabilities / waiting_times).argmax(dim=1, keepdim=True)


def _normalise(probabilities: Tensor) -> Tensor:
    return probabilities / probabilities.sum(dim=1, keepdim=True)


def _top_probabilities(probabilities: Tensor, mass: float) -> tuple[Tensor, Tensor]:
    """As many of the likeliest words as any row needs to reach this share, best first: (R, V) -> (R, n), (R, n).

    A few hundred nearly always do, and are found much sooner than all words are sorted.
    """
    values, tokens = topk(probabilities, min(NUCLEUS_HEAD_SIZE, probabilities.size(1)))
    if bool((values.sum(dim=1) > mass).all()):
        return values, tokens
    return probabilities.sort(dim=1, descending=True, stable=True)


def _nucleus(probabilities: Tensor, mass: float) -> Tensor:
    """Only the first columns, until they reach this share together."""
    mass_before = probabilities.cumsum(dim=1) - probabilities
    return _normalise(probabilities.masked_fill(mass_before >= mass, 0.0))


def _typical_set(probabilities: Tensor, mass: float) -> Tensor:
    entropy = -torch.special.xlogy(probabilities, probabilities).sum(dim=1, keepdim=True)  # (R, 1); 0 log 0 is 0
    order = (-probabilities.log() - entropy).abs().argsort(dim=1, stable=True)  # (R, n), the most expected first
    kept_probabilities = _nucleus(probabilities.gather(1, order), mass)
    return torch.zeros_like(probabilities).scatter_(1, order, kept_probabilities)
