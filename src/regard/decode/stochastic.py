"""Stochastic beam search: sample sequences without replacement (Kool, van Hoof and Welling 2019).

Ordinary sampling returns the likeliest sequence again and again. This search returns `beam_size` different sequences,
each sampled as if the earlier ones were impossible. The Gumbel-top-k trick: add independent Gumbel noise to the
log-probability of every sequence; the `beam_size` largest sums are such a sample. There are too many sequences to
perturb each, but the largest sum among the continuations of a prefix is Gumbel-distributed, too, around the prefix's
log-probability. So a beam search works from the top down: it samples the sums of a prefix's continuations under the
condition that the largest of them equals the sum of the prefix.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

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

    partial: PartialHypothesis
    total: float
    perturbed_logprob: float
    is_finished: bool = False


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

    The first of them is an ordinary sample of the model.

    Args:
        step: The model; see `regard.decode.protocol`.
        state: Its state for B rows; the search changes it.
        prompt: Tokens (B, k) that the model reads first.
        beam_size: Number of sequences per sentence.
        eos: The end-of-sequence token.
        max_lengths: Maximum number of generated tokens of each sentence, eos included.
        generator: Random number generator on the device of `prompt`.
        length_penalty: Only normalizes the reported score.
        suppressed: Token ids (n) that are never generated. Sampling renormalizes the other probabilities; the
            hypotheses report the model's own.

    Raises:
        RegardError: An argument is out of range, or the logits are NaN.
    """
    check_max_lengths(max_lengths, prompt.size(0))
    if beam_size < 1:
        raise RegardError(f"beam_size must be at least 1, got {beam_size}.", hint="Sample at least one sequence.")
    noise = _add_gumbel(torch.zeros(len(max_lengths), 1, dtype=torch.double, device=prompt.device), generator)
    beams = [[_BeamEntry(PartialHypothesis(row), 0.0, largest)] for row, (largest,) in enumerate(noise.tolist())]
    tokens = prompt
    for length in range(1, max(max_lengths) + 1):
        logits = step(tokens, state)[:, -1].double()  # (R, V)
        logprobs, allowed_logits = logits.log_softmax(dim=1), logits
        if suppress_tokens is not None:
            allowed_logits = logits.index_fill(1, suppress_tokens, NEG_INF)
        open_entries = [entry for beam in beams for entry in beam if not entry.is_finished]
        children = _expand(logprobs, allowed_logits.log_softmax(dim=1), open_entries, beam_size, generator)
        for sentence, (beam, max_new_tokens) in enumerate(zip(beams, max_lengths, strict=True)):
            entries = [entry for entry in beam if entry.is_finished]
            for parent in (entry for entry in beam if not entry.is_finished):
                entries += [
                    _mark_finished(child, eos, is_last=length >= max_new_tokens)
                    for child in children[parent.partial.row]
                ]
            beams[sentence] = sorted(entries, key=lambda entry: -entry.perturbed_logprob)[:beam_size]
        open_partials = [entry.partial for beam in beams for entry in beam if not entry.is_finished]
        if not open_partials:
            break
        tokens, moved = advance(state, open_partials, prompt.device)
        remaining = iter(moved)
        beams = [
            [entry if entry.is_finished else replace(entry, partial=next(remaining)) for entry in beam]
            for beam in beams
        ]
    return [[_make_result(entry, eos, length_penalty) for entry in beam] for beam in beams]


def _expand(
    logprobs: Tensor,
    allowed_logprobs: Tensor,
    open_entries: Sequence[_BeamEntry],
    beam_size: int,
    generator: torch.Generator,
) -> list[list[_BeamEntry]]:
    """Return the best continuations of every row, given (R, V) of the model and renormalized over allowed tokens."""
    totals, maximum = torch.tensor(
        [(entry.total, entry.perturbed_logprob) for entry in open_entries], dtype=torch.double, device=logprobs.device
    ).split(1, dim=1)  # (R, 1), (R, 1)
    perturbed = _condition_on_max(_add_gumbel(totals + allowed_logprobs, generator), maximum)  # (R, V)
    values, tokens = topk(perturbed, min(beam_size, perturbed.size(1)))  # (R, n)
    packed = torch.stack(
        (values, tokens.double(), logprobs.gather(1, tokens), allowed_logprobs.gather(1, tokens)), dim=2
    ).tolist()
    children: list[list[_BeamEntry]] = []
    for parent, row in zip(open_entries, packed, strict=True):
        check_not_nan(number for item in row for number in item)
        children.append(
            [
                _BeamEntry(
                    parent.partial.extend(int(token), logprob), parent.total + allowed_logprob, perturbed_logprob
                )
                for perturbed_logprob, token, logprob, allowed_logprob in row
                if allowed_logprob > NEG_INF
            ]
        )
    return children


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


def _mark_finished(entry: _BeamEntry, eos: int, *, is_last: bool) -> _BeamEntry:
    return replace(entry, is_finished=is_last or entry.partial.tokens[-1] == eos)


def _make_result(entry: _BeamEntry, eos: int, length_penalty: LengthPenalty) -> PerturbedHypothesis:
    return PerturbedHypothesis(
        make_hypothesis(entry.partial.tokens, entry.partial.logprobs, eos, length_penalty), entry.perturbed_logprob
    )
