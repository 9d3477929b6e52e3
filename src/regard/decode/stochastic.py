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
from regard.decode.beginnings import Beginning, check_numbers, go_on
from regard.decode.lengths import Alpha
from regard.decode.step import Hypothesis, S, Step, check_longest, hypothesis
from regard.decode.top import top


@dataclass(frozen=True)
class Drawn:
    """A text, and the number by which it was drawn."""

    text: Hypothesis
    perturbed: float
    """Its log-probability (among what may be written) plus Gumbel noise: what the texts are ordered by."""


@dataclass(frozen=True)
class _Open:
    """A beginning, its log-probability among what may be written, and the largest sum below it."""

    beginning: Beginning
    total: float
    perturbed: float
    over: bool = False


def stochastic_beam(
    step: Step[S],
    state: S,
    first: Tensor,
    *,
    size: int,
    end: int,
    longest: Sequence[int],
    generator: torch.Generator,
    alpha: Alpha = 1.0,
    never: Tensor | None = None,
) -> list[list[Drawn]]:
    """`size` different texts of each sentence (fewer where there are fewer), in the order in which they were drawn.

    The first of them is an ordinary sample of the model. Words in `never` (n) are not written, and the rest is drawn
    in proportion; the hypotheses tell the model's own log-probabilities. `alpha` only normalises the score that is
    told. The generator must be on the device of `first`.
    """
    check_longest(longest, first.size(0))
    if size < 1:
        raise RegardError(f"{size} texts cannot be drawn.", fix="Use a size of 1 or more.")
    noise = _gumbel(torch.zeros(len(longest), 1, dtype=torch.double, device=first.device), generator)
    beams = [[_Open(Beginning(row), 0.0, largest)] for row, (largest,) in enumerate(noise.tolist())]
    tokens = first
    for place in range(1, max(longest) + 1):
        logits = step(tokens, state)[:, -1].double()  # (R, V)
        own, allowed = logits.log_softmax(dim=1), logits
        if never is not None:
            allowed = logits.index_fill(1, never, float("-inf"))
        opened = [one for beam in beams for one in beam if not one.over]
        children = _children(own, allowed.log_softmax(dim=1), opened, size, generator)
        for sentence, (beam, limit) in enumerate(zip(beams, longest, strict=True)):
            new = [one for one in beam if one.over]
            for parent in (one for one in beam if not one.over):
                new += [_closed(child, end, last=place >= limit) for child in children[parent.beginning.row]]
            beams[sentence] = sorted(new, key=lambda one: -one.perturbed)[:size]
        waiting = [one.beginning for beam in beams for one in beam if not one.over]
        if not waiting:
            break
        tokens, moved = go_on(state, waiting, first.device)
        rest = iter(moved)
        beams = [[one if one.over else replace(one, beginning=next(rest)) for one in beam] for beam in beams]
    return [[_told(one, end, alpha) for one in beam] for beam in beams]


def _children(
    own: Tensor, allowed: Tensor, opened: Sequence[_Open], size: int, generator: torch.Generator
) -> list[list[_Open]]:
    """The best continuations of every row, given log-probabilities (R, V) of all words and of what may be written."""
    totals = torch.tensor([[one.total] for one in opened], dtype=torch.double, device=own.device)  # (R, 1)
    largest = torch.tensor([[one.perturbed] for one in opened], dtype=torch.double, device=own.device)  # (R, 1)
    perturbed = _under(_gumbel(totals + allowed, generator), largest)  # (R, V)
    values, words = top(perturbed, min(size, perturbed.size(1)))  # (R, n)
    facts = torch.stack((values, words.double(), own.gather(1, words), allowed.gather(1, words)), dim=2).tolist()
    found: list[list[_Open]] = []
    for parent, row in zip(opened, facts, strict=True):
        check_numbers([number for fact in row for number in fact])
        found.append(
            [
                _Open(parent.beginning.plus(int(word), log), parent.total + drawn_from, value)
                for value, word, log, drawn_from in row
                if drawn_from > float("-inf")
            ]
        )
    return found


def _gumbel(location: Tensor, generator: torch.Generator) -> Tensor:
    """Gumbel-distributed numbers around these: location - log(exponential)."""
    return location - torch.empty_like(location).exponential_(generator=generator).log()


def _under(perturbed: Tensor, largest: Tensor) -> Tensor:
    """Numbers (R, V) moved so that the largest of each row is `largest` (R, 1), their distribution otherwise kept.

    It is -log(e^-largest - e^-max + e^-number), in a form that neither overflows nor cancels (their appendix B).
    """
    below = perturbed - perturbed.amax(dim=1, keepdim=True)  # <= 0
    v = largest - perturbed + torch.log1p(-below.exp())  # -inf for the largest itself
    return largest - v.clamp(min=0) - torch.log1p((-v.abs()).exp())


def _closed(one: _Open, end: int, *, last: bool) -> _Open:
    return replace(one, over=last or one.beginning.tokens[-1] == end)


def _told(one: _Open, end: int, alpha: Alpha) -> Drawn:
    return Drawn(hypothesis(one.beginning.tokens, one.beginning.logs, end, alpha), one.perturbed)
