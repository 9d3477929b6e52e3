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
from regard.decode.ensemble import Part, Together
from regard.decode.step import Step

LEAST = -1e4  # what log p of an impossible word counts as: its advantage is very large, but finite


def contrastive(
    expert: Part, amateur: Part, *, strength: float = 1.0, share: float = 0.1, never: Tensor | None = None
) -> tuple[Step[Together], Together]:
    """One `step` and one `state` for an expert and an amateur, which have the same words.

    Give the words in `never` (n) here as well as to the search, so that they are not all that is left.
    """
    if strength < 0 or not 0 < share <= 1:
        raise RegardError(
            f"No contrast has strength {strength} and share {share}.",
            fix="Use a strength of 0 or more, and a share above 0, at most 1.",
        )
    strong, weak = (_logs(part[0]) for part in (expert, amateur))

    def step(tokens: Tensor, state: Together) -> Tensor:
        mine, theirs = strong(tokens, state.states[0]), weak(tokens, state.states[1])  # (R, k, V)
        if mine.shape != theirs.shape:
            raise RegardError(
                f"The expert has {mine.size(-1)} words and the amateur {theirs.size(-1)}.",
                fix="Train them with one vocabulary.",
            )
        if never is not None:
            mine = mine.index_fill(-1, never, float("-inf"))
        unlikely = mine < mine.amax(dim=-1, keepdim=True) + math.log(share)
        contrast = mine - strength * theirs.clamp(min=LEAST) if strength else mine
        return contrast.masked_fill(unlikely, float("-inf"))

    return step, Together([expert[1], amateur[1]])


def _logs(step: Step[Together]) -> Callable[..., Tensor]:
    return lambda tokens, state: step(tokens, state).float().log_softmax(dim=-1)
