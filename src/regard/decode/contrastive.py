"""Contrastive decoding: what a strong model knows and a weak one does not (Li et al. 2023).

A weak model (an "amateur": smaller, or an earlier checkpoint) loves what every model loves: repetition, the commonest
words. So words are preferred that the strong model, the "expert", likes better than the amateur does:

    logits(w) = log p_expert(w) - strength log p_amateur(w)     where p_expert(w) >= share max_v p_expert(v)
    logits(w) = -inf                                            elsewhere: a word that the expert holds for unlikely
                                                                is not good because the amateur holds it for impossible

`strength` 1 is Li et al.; 0 is the expert's own distribution, cut off like `min_p`. The result is a `step` and a
`state` like any other, for greedy search, a beam or sampling. Log-probabilities that a search tells are then those of
the contrast, not the expert's.

(The other method of this name, contrastive search by Su et al. 2022, compares the hidden vectors of words. A search
here sees logits only, so that method would need a wider protocol; this one needs nothing more.)
"""

import math
from collections.abc import Callable

from torch import Tensor

from regard.base.errors import RegardError
from regard.decode.ensemble import EnsembleState, Member
from regard.decode.protocol import Step

MIN_LOGPROB = -1e4  # what log p of an impossible word counts as: its advantage is very large, but finite


def contrastive(
    expert: Member,
    amateur: Member,
    *,
    strength: float = 1.0,
    plausibility: float = 0.1,
    suppressed: Tensor | None = None,
) -> tuple[Step[EnsembleState], EnsembleState]:
    """One `step` and one `state` for an expert and an amateur, which have the same words.

    Give the words in `never` (n) here as well as to the search, so that they are not all that is left.
    """
    if strength < 0 or not 0 < plausibility <= 1:
        raise RegardError(
            f"No contrast has strength {strength} and share {plausibility}.",
            fix="Use a strength of 0 or more, and a share above 0, at most 1.",
        )
    expert_step, amateur_step = (_logprob_step(member[0]) for member in (expert, amateur))

    def step(tokens: Tensor, state: EnsembleState) -> Tensor:
        expert_logprobs, amateur_logprobs = (
            expert_step(tokens, state.states[0]),
            amateur_step(tokens, state.states[1]),
        )  # (R, k, V)
        if expert_logprobs.shape != amateur_logprobs.shape:
            raise RegardError(
                f"The expert has {expert_logprobs.size(-1)} words and the amateur {amateur_logprobs.size(-1)}.",
                fix="Train them with one vocabulary.",
            )
        if suppressed is not None:
            expert_logprobs = expert_logprobs.index_fill(-1, suppressed, float("-inf"))
        is_implausible = expert_logprobs < expert_logprobs.amax(dim=-1, keepdim=True) + math.log(plausibility)
        contrast = expert_logprobs - strength * amateur_logprobs.clamp(min=MIN_LOGPROB) if strength else expert_logprobs
        return contrast.masked_fill(is_implausible, float("-inf"))

    return step, EnsembleState([expert[1], amateur[1]])


def _logprob_step(step: Step[EnsembleState]) -> Callable[..., Tensor]:
    return lambda tokens, state: step(tokens, state).float().log_softmax(dim=-1)
