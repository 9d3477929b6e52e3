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
from regard.decode.protocol import State, Step

Mean = Literal["probabilities", "logprobs"]

Member = tuple[Step[Any], State]


class EnsembleState:
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
    members: Sequence[Member],
    *,
    mean: Mean = "probabilities",
    weights: Sequence[float] | None = None,
) -> tuple[Step[EnsembleState], EnsembleState]:
    """One `step` and one `state` for several; all have equal weight, unless `weights` say otherwise."""
    member_weights = torch.tensor([1.0] * len(members) if weights is None else list(weights))
    if (
        not members
        or member_weights.numel() != len(members)
        or not bool((member_weights >= 0).all())
        or float(member_weights.sum()) == 0
    ):
        raise RegardError(
            f"{len(members)} models with {member_weights.numel()} weights cannot be averaged.",
            fix="Give at least one model, and one weight of 0 or more for each.",
        )
    if mean not in get_args(Mean):
        raise RegardError(f"There is no mean '{mean}'.", fix=f"Say one of {', '.join(get_args(Mean))}.")
    member_weights = member_weights / member_weights.sum()

    def step(tokens: Tensor, state: EnsembleState) -> Tensor:
        logits = [
            member_step(tokens, member_state)
            for (member_step, _), member_state in zip(members, state.states, strict=True)
        ]
        if len({member_logits.size(-1) for member_logits in logits}) > 1:
            sizes = ", ".join(str(member_logits.size(-1)) for member_logits in logits)
            raise RegardError(f"Models of {sizes} words cannot be averaged.", fix="Train them with one vocabulary.")
        logprobs = torch.stack([member_logits.float().log_softmax(dim=-1) for member_logits in logits])  # (M, R, k, V)
        weight = member_weights.to(logprobs.device).view(-1, 1, 1, 1)
        if mean == "probabilities":
            return (logprobs + weight.log()).logsumexp(dim=0)  # (R, k, V)
        # A weight of 0 silences a model, even one that holds a word impossible: 0 x -inf would be NaN.
        return (logprobs * weight).masked_fill(weight == 0, 0.0).sum(dim=0)  # (R, k, V)

    return step, EnsembleState([state for _, state in members])
