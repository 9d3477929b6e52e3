"""Stochastic beam search: different texts drawn without replacement (Kool, van Hoof and Welling 2019).

Sampling draws the likeliest text again and again; this draws `size` different ones, as if each were drawn from what the
others left. The trick: add to the log-probability of every text an independent Gumbel number, and the `size` largest
sums are such a sample. There are too many texts to do so one by one, but the largest sum below a beginning is
Gumbel-distributed, too, around the log-probability of the beginning. So a beam search does it from the top down: the
numbers of a beginning's continuations are drawn under the condition that the largest of them is the number which the
beginning already has.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.decode.length_penalty import LengthPenalty
from regard.decode.partial import PartialHypothesis, advance, check_finite
from regard.decode.protocol import Hypothesis, S, Step, check_max_lengths, make_hypothesis
from regard.decode.topk import topk


@dataclass(frozen=True)
class PerturbedHypothesis:
    """A text, and the number by which it was drawn."""

    hypothesis: Hypothesis
    perturbed_logprob: float
    """Its log-probability (among what may be written) plus Gumbel noise: what the texts are ordered by."""


@dataclass(frozen=True)
class _BeamEntry:
    """A beginning, its log-probability among what may be written, and the largest sum below it."""

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
    suppressed: Tensor | None = None,
) -> list[list[PerturbedHypothesis]]:
    """`size` different texts of each sentence (fewer where there are fewer), in the order in which they were drawn.

    The first of them is an ordinary sample of the model. Words in `never` (n) are not written, and the rest is drawn
    in proportion; the hypotheses tell the model's own log-probabilities. `alpha` only normalises the score that is
    told. The generator must be on the device of `first`.
    """
    check_max_lengths(max_lengths, prompt.size(0))
    if beam_size < 1:
        raise RegardError(f"{beam_size} texts cannot be drawn.", fix="Use a size of 1 or more.")
    noise = _add_gumbel(torch.zeros(len(max_lengths), 1, dtype=torch.double, device=prompt.device), generator)
    beams = [[_BeamEntry(PartialHypothesis(row), 0.0, largest)] for row, (largest,) in enumerate(noise.tolist())]
    tokens = prompt
    for length in range(1, max(max_lengths) + 1):
        logits = step(tokens, state)[:, -1].double()  # (R, V)
        logprobs, allowed_logits = logits.log_softmax(dim=1), logits
        if suppressed is not None:
            allowed_logits = logits.index_fill(1, suppressed, float("-inf"))
        open_entries = [entry for beam in beams for entry in beam if not entry.is_finished]
        children = _expand(logprobs, allowed_logits.log_softmax(dim=1), open_entries, beam_size, generator)
        for sentence, (beam, max_length) in enumerate(zip(beams, max_lengths, strict=True)):
            entries = [entry for entry in beam if entry.is_finished]
            for parent in (entry for entry in beam if not entry.is_finished):
                entries += [
                    _mark_finished(child, eos, is_last=length >= max_length) for child in children[parent.partial.row]
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
    """The best continuations of every row, given log-probabilities (R, V) of all words and of what may be written."""
    totals = torch.tensor(
        [[entry.total] for entry in open_entries], dtype=torch.double, device=logprobs.device
    )  # (R, 1)
    maximum = torch.tensor(
        [[entry.perturbed_logprob] for entry in open_entries], dtype=torch.double, device=logprobs.device
    )  # (R, 1)
    perturbed = _condition_on_max(_add_gumbel(totals + allowed_logprobs, generator), maximum)  # (R, V)
    values, tokens = topk(perturbed, min(beam_size, perturbed.size(1)))  # (R, n)
    packed = torch.stack(
        (values, tokens.double(), logprobs.gather(1, tokens), allowed_logprobs.gather(1, tokens)), dim=2
    ).tolist()
    children: list[list[_BeamEntry]] = []
    for parent, row in zip(open_entries, packed, strict=True):
        check_finite([number for item in row for number in item])
        children.append(
            [
                _BeamEntry(
                    parent.partial.extend(int(token), logprob), parent.total + allowed_logprob, perturbed_logprob
                )
                for perturbed_logprob, token, logprob, allowed_logprob in row
                if allowed_logprob > float("-inf")
            ]
        )
    return children


def _add_gumbel(location: Tensor, generator: torch.Generator) -> Tensor:
    """Gumbel-distributed numbers around these: location - log(exponential)."""
    return location - torch.empty_like(location).exponential_(generator=generator).log()


def _condition_on_max(perturbed: Tensor, maximum: Tensor) -> Tensor:
    """Numbers (R, V) moved so that the largest of each row is `largest` (R, 1), their distribution otherwise kept.

    It is -log(e^-largest - e^-max + e^-number), in a form that neither overflows nor cancels (their appendix B).
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
