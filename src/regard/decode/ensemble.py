"""Several models as one: what they think of the next word is averaged. They must share their words.

    mean of probabilities       p(w) = sum_m a_m p_m(w)              one model that is sure is heard
    mean of log-probabilities   p(w) ~ prod_m p_m(w)^a_m             one model that forbids a word is obeyed

with weights a_m that sum to 1. What comes back is a `step` and a `state` like any other: every search drives them.
"""

from collections.abc import Sequence
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.decode.step import State, Step

Mean = Literal["probabilities", "logs"]

Part = tuple[Step[Any], State]


class Together:
    """The states of several models, whose rows are the same texts."""

    def __init__(self, states: Sequence[State]) -> None:
        self.states = states

    def reorder(self, index: Tensor) -> None:
        """In all of them."""
        for state in self.states:
            state.reorder(index)

    def crop(self, lengths: int | Sequence[int]) -> None:
        """In all of them."""
        for state in self.states:
            state.crop(lengths)


def ensemble(
    parts: Sequence[Part],
    *,
    mean: Mean = "probabilities",
    weights: Sequence[float] | None = None,
) -> tuple[Step[Together], Together]:
    """One `step` and one `state` for several; all have equal weight, unless `weights` say otherwise."""
    each = torch.tensor([1.0] * len(parts) if weights is None else list(weights))
    if not parts or each.numel() != len(parts) or not bool((each >= 0).all()) or float(each.sum()) == 0:
        raise RegardError(
            f"{len(parts)} models with {each.numel()} weights cannot be averaged.",
            fix="Give at least one model, and one weight of 0 or more for each.",
        )
    if mean not in get_args(Mean):
        raise RegardError(f"There is no mean '{mean}'.", fix=f"Say one of {', '.join(get_args(Mean))}.")
    each = each / each.sum()

    def step(tokens: Tensor, state: Together) -> Tensor:
        logs = [one(tokens, its) for (one, _), its in zip(parts, state.states, strict=True)]
        if len({log.size(-1) for log in logs}) > 1:
            sizes = ", ".join(str(log.size(-1)) for log in logs)
            raise RegardError(f"Models of {sizes} words cannot be averaged.", fix="Train them with one vocabulary.")
        every = torch.stack([log.float().log_softmax(dim=-1) for log in logs])  # (M, R, k, V)
        share = each.to(every.device).view(-1, 1, 1, 1)
        if mean == "probabilities":
            return (every + share.log()).logsumexp(dim=0)  # (R, k, V)
        # A weight of 0 silences a model, even one that holds a word impossible: 0 x -inf would be NaN.
        return (every * share).masked_fill(share == 0, 0.0).sum(dim=0)  # (R, k, V)

    return step, Together([state for _, state in parts])
