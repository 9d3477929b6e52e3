"""Contrastive decoding (Li et al. 2023): prefer tokens that a strong model rates higher than a weak one.

A weak model (the "amateur": smaller, or an earlier checkpoint) prefers what every model prefers: repetition and
frequent tokens. Contrastive decoding prefers tokens that the strong model (the "expert") rates higher than the amateur:

    logits(w) = log p_expert(w) - strength log p_amateur(w)     where p_expert(w) >= plausibility max_v p_expert(v)
    logits(w) = -inf                                            elsewhere: a token that is unlikely for the expert is
                                                                not good because it is impossible for the amateur

`strength` 1 is Li et al.; 0 is the expert's own distribution, truncated like `min_p`. The result is a `step` and a
`state` like those of one model, for greedy search, beam search or sampling. Log-probabilities that a search reports are
those of the contrast, not the expert's.

(Contrastive search by Su et al. 2022 is another method: it compares hidden states. A search here sees logits only, so
that it would need a larger protocol.)
"""

import math
from collections.abc import Callable

from torch import Tensor

from regard.base.errors import RegardError
from regard.decode.ensemble import EnsembleState, Member
from regard.decode.protocol import NEG_INF, Step

MIN_LOGPROB = -1e4  # replaces log 0 of the amateur: such a token has a very large, but finite, advantage


def contrastive(
    expert: Member,
    amateur: Member,
    *,
    strength: float = 1.0,
    plausibility: float = 0.1,
    suppressed: Tensor | None = None,
) -> tuple[Step[EnsembleState], EnsembleState]:
    """Combine an expert and an amateur into one `step` and one `state`.

    Args:
        expert: `(step, state)` of the strong model.
        amateur: `(step, state)` of the weak model, with the same vocabulary.
        strength: Weight of the amateur's log-probabilities, 0 or more.
        plausibility: Tokens below this fraction of the expert's highest probability are excluded.
        suppressed: Token ids (n) that the search suppresses. They are needed here, too: otherwise the plausible tokens
            could all be suppressed ones.

    Raises:
        RegardError: `strength` or `plausibility` is out of range, or the vocabularies differ in size.
    """
    if strength < 0 or not 0 < plausibility <= 1:
        raise RegardError(
            f"Contrastive decoding cannot use strength {strength} and plausibility {plausibility}.",
            fix="Use a strength of 0 or more, and a plausibility above 0 and at most 1.",
        )
    expert_step, amateur_step = (_logprob_step(member[0]) for member in (expert, amateur))

    def step(tokens: Tensor, state: EnsembleState) -> Tensor:
        expert_logprobs = expert_step(tokens, state.states[0])  # (R, k, V)
        amateur_logprobs = amateur_step(tokens, state.states[1])  # (R, k, V)
        if expert_logprobs.shape != amateur_logprobs.shape:
            raise RegardError(
                f"The expert's vocabulary has {expert_logprobs.size(-1)} tokens, "
                f"the amateur's {amateur_logprobs.size(-1)}.",
                fix="Train both models with the same vocabulary.",
            )
        if suppressed is not None:
            expert_logprobs = expert_logprobs.index_fill(-1, suppressed, NEG_INF)
        is_implausible = expert_logprobs < expert_logprobs.amax(dim=-1, keepdim=True) + math.log(plausibility)
        contrast = expert_logprobs - strength * amateur_logprobs.clamp(min=MIN_LOGPROB) if strength else expert_logprobs
        return contrast.masked_fill(is_implausible, NEG_INF)

    return step, EnsembleState([expert[1], amateur[1]])


def _logprob_step(step: Step[EnsembleState]) -> Callable[..., Tensor]:
    return lambda tokens, state: step(tokens, state).float().log_softmax(dim=-1)
