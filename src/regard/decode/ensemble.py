"""Ensembles: several models predict the next token together. They must share one vocabulary.

    mean of probabilities       p(w) = sum_m a_m p_m(w)              a token is likely if one model is sure of it
    mean of log-probabilities   p(w) ~ prod_m p_m(w)^a_m             a token is impossible if one model excludes it

The weights a_m sum to 1. The result is a `step` and a `state`, so it works with every search.
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
    """The states of several models; row i of each belongs to the same sequence."""

    def __init__(self, states: Sequence[State]) -> None:
        self.states = states

    def reorder(self, index: Tensor) -> None:
        """Reorder the rows of every state."""
        for state in self.states:
            state.reorder(index)

    def crop(self, lengths: int | Sequence[int]) -> None:
        """Crop every state."""
        for state in self.states:
            state.crop(lengths)


def ensemble(
    members: Sequence[Member],
    *,
    mean: Mean = "probabilities",
    weights: Sequence[float] | None = None,
) -> tuple[Step[EnsembleState], EnsembleState]:
    """Combine several models into one `step` and one `state`.

    Args:
        members: `(step, state)` of each model.
        mean: What is averaged: "probabilities" or "logprobs".
        weights: The weight of each model, 0 or more; they need not sum to 1. None: equal weights.

    Raises:
        RegardError: The number of weights differs from the number of members or a weight is invalid, or (at the first
            step) the vocabularies differ in size.
    """
    member_weights = torch.tensor([1.0] * len(members) if weights is None else list(weights))
    if (
        not members
        or member_weights.numel() != len(members)
        or not bool((member_weights >= 0).all())
        or float(member_weights.sum()) == 0
    ):
        raise RegardError(
            f"An ensemble of {len(members)} models cannot use the weights {member_weights.tolist()}.",
            hint="Pass at least one model and one nonnegative weight per model, with a positive sum.",
        )
    if mean not in get_args(Mean):
        raise RegardError(f"Unknown ensemble mean '{mean}'.", hint=f"Use one of {', '.join(get_args(Mean))}.")
    member_weights = member_weights / member_weights.sum()

    def step(tokens: Tensor, state: EnsembleState) -> Tensor:
        logits = [
            member_step(tokens, member_state)
            for (member_step, _), member_state in zip(members, state.states, strict=True)
        ]
        if len({member_logits.size(-1) for member_logits in logits}) > 1:
            sizes = ", ".join(str(member_logits.size(-1)) for member_logits in logits)
            raise RegardError(
                f"The vocabularies of the ensemble differ in size: {sizes} tokens.",
                hint="Train all models with the same vocabulary.",
            )
        logprobs = torch.stack([member_logits.float().log_softmax(dim=-1) for member_logits in logits])  # (M, R, k, V)
        weight = member_weights.to(logprobs.device).view(-1, 1, 1, 1)
        if mean == "probabilities":
            return (logprobs + weight.log()).logsumexp(dim=0)  # (R, k, V)
        # A weight of 0 excludes a model; multiplying its log-probabilities by 0 would give NaN for -inf.
        return (logprobs * weight).masked_fill(weight == 0, 0.0).sum(dim=0)  # (R, k, V)

    return step, EnsembleState([state for _, state in members])
