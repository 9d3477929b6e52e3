"""Stochastic beam search: sample sequences without replacement (Kool, van Hoof and Welling 2019).

Ordinary sampling returns the likeliest sequence again and again. This search returns `beam_size` different sequences,
each sampled as if the earlier ones were impossible. The Gumbel-top-k trick: add independent Gumbel noise to the
log-probability of every sequence; the `beam_size` largest sums are such a sample. There are too many sequences to
perturb each, but the largest sum among the continuations of a prefix is also Gumbel-distributed, with the prefix's
log-probability as its location. So a beam search can work top-down: it samples the sums of a prefix's continuations
under the condition that the largest of them equals the sum of the prefix.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from operator import attrgetter

import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.decode.length_penalty import LengthPenalty
from regard.decode.partial import PartialHypothesis, advance
from regard.decode.protocol import NEG_INF, Hypothesis, S, Step, check_max_lengths, check_not_nan, make_hypothesis
from regard.decode.topk import topk


@dataclass(frozen=True)
class PerturbedHypothesis:
    """A sampled sequence and its perturbed log-probability."""

    hypothesis: Hypothesis
    perturbed_logprob: float
    """Its log-probability, renormalized over allowed tokens, plus Gumbel noise; the sample is sorted by it."""


@dataclass(frozen=True)
class _BeamEntry:
    """A hypothesis, its log-probability over allowed tokens, and the largest perturbed sum of its continuations."""

    sentence: int
    partial: PartialHypothesis
    total: float
    perturbed_logprob: float


def stochastic_beam(
    step: Step[S],
    state: S,
    prompt: Tensor,
    *,
    beam_size: int,
    eos: int,
    max_lengths: Sequence[int],
    generator: torch.Generator,
    length_penalty: LengthPenalty = 1.0,
    suppress_tokens: Tensor | None = None,
) -> list[list[PerturbedHypothesis]]:
    """Sample `beam_size` different sequences per sentence (fewer where fewer exist), in the order of sampling.

    The first of them is an ordinary sample of the model. See `regard.decode.protocol` for the arguments shared by all
    searches. Sampling renormalizes the probabilities of tokens that are not suppressed; the hypotheses report the
    model's own.
    """
    check_max_lengths(max_lengths, prompt.size(0))
    if beam_size < 1:
        raise RegardError(f"beam_size must be at least 1, got {beam_size}.", hint="Sample at least one sequence.")
    noise = _add_gumbel(torch.zeros(len(max_lengths), 1, dtype=torch.double, device=prompt.device), generator)
    open_entries = [
        _BeamEntry(row, PartialHypothesis(row), 0.0, largest) for row, (largest,) in enumerate(noise.tolist())
    ]
    finished: list[_BeamEntry] = []
    tokens = prompt
    for length in range(1, max(max_lengths) + 1):
        logits = step(tokens, state)[:, -1].double()  # (R, V)
        candidates = finished + _expand(logits, suppress_tokens, open_entries, beam_size, generator)
        candidates.sort(key=lambda entry: (entry.sentence, -entry.perturbed_logprob))
        finished, open_entries = [], []
        for sentence, beam in groupby(candidates, key=attrgetter("sentence")):
            for entry in islice(beam, beam_size):
                is_finished = entry.partial.tokens[-1] == eos or length >= max_lengths[sentence]
                (finished if is_finished else open_entries).append(entry)
        if not open_entries:
            break
        tokens = advance(state, [entry.partial for entry in open_entries], prompt.device)
    samples: list[list[PerturbedHypothesis]] = [[] for _ in max_lengths]
    for entry in finished:
        hypothesis = make_hypothesis(entry.partial.tokens, entry.partial.logprobs, eos, length_penalty)
        samples[entry.sentence].append(PerturbedHypothesis(hypothesis, entry.perturbed_logprob))
    return samples


def _expand(
    logits: Tensor,
    suppress_tokens: Tensor | None,
    open_entries: Sequence[_BeamEntry],
    beam_size: int,
    generator: torch.Generator,
) -> list[_BeamEntry]:
    """Return the best continuations of every row, given its logits (R, V)."""
    logprobs = allowed_logprobs = logits.log_softmax(dim=1)
    if suppress_tokens is not None:
        allowed_logprobs = logits.index_fill(1, suppress_tokens, NEG_INF).log_softmax(dim=1)
    totals, maximum = torch.tensor(
        [(entry.total, entry.perturbed_logprob) for entry in open_entries], dtype=torch.double, device=logits.device
    ).split(1, dim=1)  # (R, 1), (R, 1)
    perturbed = _condition_on_max(_add_gumbel(totals + allowed_logprobs, generator), maximum)  # (R, V)
    values, tokens = topk(perturbed, min(beam_size, perturbed.size(1)))  # (R, n)
    packed = torch.stack(
        (values, tokens.double(), logprobs.gather(1, tokens), allowed_logprobs.gather(1, tokens)), dim=2
    ).tolist()
    check_not_nan(number for row in packed for item in row for number in item)
    return [
        _BeamEntry(
            parent.sentence,
            parent.partial.extend(int(token), logprob),
            parent.total + allowed_logprob,
            perturbed_logprob,
        )
        for parent, row in zip(open_entries, packed, strict=True)
        for perturbed_logprob, token, logprob, allowed_logprob in row
        if allowed_logprob > NEG_INF
    ]


def _add_gumbel(location: Tensor, generator: torch.Generator) -> Tensor:
    """Add standard Gumbel noise: location - log(exponential)."""
    return location - torch.empty_like(location).exponential_(generator=generator).log()


def _condition_on_max(perturbed: Tensor, maximum: Tensor) -> Tensor:
    """Condition perturbed sums (R, V) on the largest of each row being `maximum` (R, 1).

    With the row's own largest sum max: -log(e^-maximum - e^-max + e^-perturbed), in a form that neither overflows nor
    cancels (appendix B of the paper).
    """
    below = perturbed - perturbed.amax(dim=1, keepdim=True)  # <= 0
    v = maximum - perturbed + torch.log1p(-below.exp())  # -inf for the largest itself
    return maximum - v.clamp(min=0) - torch.log1p((-v.abs()).exp())
