"""Filters: changes to the distribution before a token is sampled. They always act in this order:

    1  no_repeat_ngram     exclude tokens that would repeat an n-gram of the history
    2  repetition_penalty  p^r for tokens of the history; r > 1 makes them less likely
    3  temperature         p^(1/T): below 1 the distribution sharpens, above 1 it flattens; 0 is greedy
    4  top_k               keep the k likeliest tokens
    5  top_p               keep the fewest likeliest tokens whose probabilities sum to p (at least one)
    6  min_p               keep tokens with at least this fraction of the likeliest token's probability
    7  typical_p           keep the fewest tokens whose probabilities sum to this value, starting with those whose
                           surprise -log p is nearest to the expected one, the entropy (Meister et al. 2023)

Each filter renormalizes the tokens it keeps and passes only these to the next filter. The order is the same as in
Hugging Face. There the repetition penalty (Keskar et al. 2019) acts on logits and depends on their sign; here it acts
on log-probabilities, because logits have no natural zero: adding a constant to all of them does not change the
distribution.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.decode.protocol import NEG_INF
from regard.decode.topk import argmax, topk

FILTER_ORDER = (
    "no_repeat_ngram",
    "repetition_penalty",
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "typical_p",
)
MASS_TOLERANCE = 1e-6  # five tokens of probability 0.1 reach a mass of 0.5, though their float32 sum may not
NUCLEUS_HEAD_SIZE = 256  # top-p tries this number of likeliest tokens before it sorts the whole vocabulary
Generators = torch.Generator | Sequence[torch.Generator]  # one for all rows, or one for each


@dataclass(frozen=True)
class Filters:
    """Settings of the filters; the module docstring describes each. The defaults change nothing."""

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    typical_p: float | None = None
    repetition_penalty: float = 1.0
    no_repeat_ngram: int | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.temperature < float("inf"):
            raise RegardError(
                f"temperature must be finite and at least 0, got {self.temperature}.", hint="Use 0 (greedy) or more."
            )
        if self.top_k is not None and self.top_k < 1:
            raise RegardError(f"top_k must be at least 1, got {self.top_k}.", hint="Use 1 or more, or leave it out.")
        for name in ("top_p", "min_p", "typical_p"):
            value = getattr(self, name)
            if value is not None and not 0 < value <= 1:
                raise RegardError(
                    f"{name} must be above 0 and at most 1, got {value}.", hint=f"Use a {name} such as 0.9."
                )
        if not 0 < self.repetition_penalty < float("inf"):
            raise RegardError(
                f"repetition_penalty must be finite and above 0, got {self.repetition_penalty}.",
                hint="Use 1 (no penalty) or more.",
            )
        if self.no_repeat_ngram is not None and self.no_repeat_ngram < 1:
            raise RegardError(
                f"no_repeat_ngram must be at least 1, got {self.no_repeat_ngram}.",
                hint="Use 1 or more, or leave it out.",
            )

    @property
    def needs_history(self) -> bool:
        """Whether a filter depends on earlier tokens."""
        return self.no_repeat_ngram is not None or self.repetition_penalty != 1

    def apply_penalties(self, logprobs: Tensor, history: Tensor) -> Tensor:
        """Apply the first two filters to log-probabilities (R, V); `history` (R, n) holds all earlier tokens.

        >>> logprobs = torch.tensor([[0.5, 0.25, 0.25]]).log()
        >>> filters = Filters(repetition_penalty=2, no_repeat_ngram=2)
        >>> filters.apply_penalties(logprobs, torch.tensor([[0, 1, 0]])).exp()
        tensor([[0.2500, 0.0000, 0.2500]])
        """
        if self.no_repeat_ngram is not None and self.no_repeat_ngram <= history.size(1):
            ngrams = history.unfold(1, self.no_repeat_ngram, 1)  # (R, runs, n): every n-gram of the history
            prefix = history[:, history.size(1) - self.no_repeat_ngram + 1 :]  # (R, n - 1): the last tokens
            is_match = (ngrams[:, :, :-1] == prefix[:, None]).all(dim=2)  # (R, runs)
            match_counts = torch.zeros_like(logprobs).scatter_add_(1, ngrams[:, :, -1], is_match.to(logprobs.dtype))
            logprobs = logprobs.masked_fill(match_counts > 0, NEG_INF)
        if self.repetition_penalty != 1:
            is_repeated = torch.zeros_like(logprobs, dtype=torch.bool).scatter_(1, history, value=True)  # (R, V)
            logprobs = torch.where(is_repeated, logprobs * self.repetition_penalty, logprobs)
        return logprobs

    def candidates(self, logits: Tensor) -> tuple[Tensor, Tensor | None]:
        """Apply the last five filters to logits (R, V); the temperature must be above 0.

        Returns:
            Probabilities (R, n) and the token ids that they belong to, (R, n); None: all tokens, in order.

        >>> logits = torch.tensor([[0.1, 0.5, 0.15, 0.25]]).log()
        >>> probabilities, tokens = Filters(top_k=3, top_p=0.8).candidates(logits)
        >>> [round(probability, 3) for probability in probabilities[0].tolist()], tokens.tolist()
        ([0.667, 0.333, 0.0], [[1, 3, 2]])
        """
        logits = logits.float() / self.temperature
        tokens = None
        if self.top_k is not None and self.top_k < logits.size(1):
            logits, tokens = _stable_topk(logits, self.top_k)  # (R, k), best first
        probabilities = logits.softmax(dim=1)
        if self.top_p is not None and self.top_p < 1:
            if tokens is None:
                probabilities, tokens = _top_probabilities(probabilities, self.top_p)  # (R, n), best first
            probabilities = _nucleus(probabilities, self.top_p)
        if self.min_p is not None:
            is_likely = probabilities >= self.min_p * probabilities.amax(dim=1, keepdim=True)
            probabilities = _normalize(probabilities * is_likely)
        if self.typical_p is not None and self.typical_p < 1:
            probabilities = _typical_set(probabilities, self.typical_p)
        return probabilities, tokens

    def probabilities(self, logits: Tensor) -> Tensor:
        """Return the distribution to sample from, (R, V) -> (R, V); at temperature 0 one token has probability 1.

        >>> Filters(top_k=2).probabilities(torch.tensor([[0.1, 0.5, 0.15, 0.25]]).log())
        tensor([[0.0000, 0.6667, 0.0000, 0.3333]])
        """
        empty = torch.zeros_like(logits, dtype=torch.float)
        if self.temperature == 0:
            return empty.scatter_(1, argmax(logits), 1.0)
        probabilities, tokens = self.candidates(logits)
        return probabilities if tokens is None else empty.scatter_(1, tokens, probabilities)

    def stages(self, logprobs: Tensor, history: Tensor) -> list[tuple[str, Tensor]]:
        """Return the distribution (R, V) after each filter that is on, in the order of the filters.

        The last one is the distribution to sample from. `history` (R, n) holds all earlier tokens.

        >>> logprobs = torch.tensor([[0.1, 0.5, 0.15, 0.25]]).log()
        >>> for name, distribution in Filters(top_k=3, min_p=0.4).stages(logprobs, torch.tensor([[0]])):
        ...     print(name, [round(probability, 3) for probability in distribution[0].tolist()])
        top_k [0.0, 0.556, 0.167, 0.278]
        min_p [0.0, 0.667, 0.0, 0.333]
        """
        off, settings, stages = Filters(), dict[str, Any](), list[tuple[str, Tensor]]()
        for name in FILTER_ORDER:
            if getattr(self, name) != getattr(off, name):
                settings[name] = getattr(self, name)
                filters = Filters(**settings)
                stages.append((name, filters.probabilities(filters.apply_penalties(logprobs, history))))
        return stages

    def draw(self, logits: Tensor, generator: Generators) -> Tensor:
        """Sample one token per row: (R, V) -> (R, 1).

        With one generator per row, a row's token depends only on its own logits and generator.
        """
        if self.temperature == 0:
            return argmax(logits)
        if not isinstance(generator, torch.Generator):
            rows = zip(logits.split(1), generator, strict=True)
            return torch.cat([self.draw(row_logits, row_generator) for row_logits, row_generator in rows])
        probabilities, tokens = self.candidates(logits)
        columns = draw(probabilities, generator)
        return columns if tokens is None else tokens.gather(1, columns)

    def race(self, logits: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Sample one token per row like `draw` and also return the details; the temperature must be above 0.

        Returns:
            The tokens (R, 1); the tokens that took part (R, n), their probabilities and their waiting times.
        """
        probabilities, tokens = self.candidates(logits)
        waiting_times = draw_waiting_times(probabilities, generator)
        columns = (probabilities / waiting_times).argmax(dim=1, keepdim=True)
        if tokens is None:
            tokens = torch.arange(logits.size(1), device=logits.device).expand_as(logits)  # (R, V)
        return tokens.gather(1, columns), tokens, probabilities, waiting_times


def draw(probabilities: Tensor, generator: torch.Generator) -> Tensor:
    """Draw one column of each row with these probabilities: (R, n) -> (R, 1). Rows need not sum to 1."""
    return (probabilities / draw_waiting_times(probabilities, generator)).argmax(dim=1, keepdim=True)


def draw_waiting_times(probabilities: Tensor, generator: torch.Generator) -> Tensor:
    """Draw an exponential waiting time for every column: the column with the largest p / time wins with probability p.

    Unlike torch.multinomial, this needs neither a sum nor a check that synchronizes with the device.
    """
    return torch.empty_like(probabilities).exponential_(generator=generator)


def _normalize(probabilities: Tensor) -> Tensor:
    return probabilities / probabilities.sum(dim=1, keepdim=True)


def _stable_topk(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the k best scores of each row and their tokens, best first; of equal scores the lowest ids come first."""
    values, tokens = topk(scores, k)
    if bool((scores >= values[:, -1:]).sum(dim=1).gt(k).any()):  # the last one ties with tokens that were left out
        values, tokens = scores.sort(dim=1, descending=True, stable=True)
        return values[:, :k], tokens[:, :k]
    tokens, order = tokens.sort(dim=1)
    values, order = values.gather(1, order).sort(dim=1, descending=True, stable=True)
    return values, tokens.gather(1, order)


def _top_probabilities(probabilities: Tensor, mass: float) -> tuple[Tensor, Tensor]:
    """Return enough of the likeliest tokens for every row to exceed `mass`, best first: (R, V) -> (R, n), (R, n).

    A few hundred tokens nearly always suffice, and finding them is much faster than sorting the vocabulary.
    """
    values, tokens = _stable_topk(probabilities, min(NUCLEUS_HEAD_SIZE, probabilities.size(1)))
    if bool((values.sum(dim=1) > mass).all()):
        return values, tokens
    return probabilities.sort(dim=1, descending=True, stable=True)


def _nucleus(probabilities: Tensor, mass: float) -> Tensor:
    """Keep the first columns until their probabilities sum to `mass`: the smallest set (Holtzman et al. 2020)."""
    dtype = torch.float32 if probabilities.device.type == "mps" else torch.float64  # MPS has no float64
    mass_before = probabilities.cumsum(dim=1, dtype=dtype) - probabilities
    return _normalize(probabilities.masked_fill(mass_before >= mass - MASS_TOLERANCE, 0.0))


def _typical_set(probabilities: Tensor, mass: float) -> Tensor:
    entropy = -torch.special.xlogy(probabilities, probabilities).sum(dim=1, keepdim=True)  # (R, 1); 0 log 0 is 0
    order = (-probabilities.log() - entropy).abs().argsort(dim=1, stable=True)  # (R, n), the most typical first
    kept_probabilities = _nucleus(probabilities.gather(1, order), mass)
    return torch.zeros_like(probabilities).scatter_(1, order, kept_probabilities)
