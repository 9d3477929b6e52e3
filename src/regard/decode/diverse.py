"""Diverse beam search: several beams that avoid each other's words (Vijayakumar et al. 2018).

The texts of one beam often differ in a comma. Here a beam is cut into groups, which choose one after the other at every
step. A group's candidates are ranked by

    log p(y) - strength x (how many texts of earlier groups took the same word at this step; END is a word, too),

so that later groups prefer other words (the authors' Hamming diversity). The penalty decides what a group keeps at this
step and is not remembered; texts are finished and compared by the model's own score, as in `regard.decode.beam`.
`strength` 0 gives the same beam in every group; one group is an ordinary beam.
"""

from collections import Counter
from collections.abc import Sequence

from torch import Tensor

from regard.base.errors import RegardError
from regard.decode.length_penalty import LengthPenalty
from regard.decode.partial import (
    NEG_INF,
    FinishedHypotheses,
    PartialHypothesis,
    advance,
    check_finite,
    next_logprobs,
    split_finished,
)
from regard.decode.protocol import Hypothesis, S, Step, check_max_lengths
from regard.decode.topk import topk

TokenLogprobs = list[tuple[int, float]]  # tokens and their log-probabilities, best first


def diverse_beam(
    step: Step[S],
    state: S,
    prompt: Tensor,
    *,
    groups: int,
    beam_size: int,
    eos: int,
    max_lengths: Sequence[int],
    strength: float = 0.5,
    length_penalty: LengthPenalty = 1.0,
    n_best: int = 1,
    suppressed: Tensor | None = None,
) -> list[list[list[Hypothesis]]]:
    """For each sentence and each of its groups the `best` hypotheses, best first; fewer where fewer were found.

    Every group is a beam of `size`; groups x size rows of each sentence are read together. The other arguments are
    those of `regard.decode.beam`. Two groups may well find the same text.
    """
    check_max_lengths(max_lengths, prompt.size(0))
    if groups < 1 or beam_size < 1 or n_best < 1 or strength < 0:
        raise RegardError(
            f"No {groups} groups of size {beam_size}, best {n_best} and strength {strength}.",
            fix="Use groups, size and best of 1 or more, and strength of 0 or more.",
        )
    sentences = [
        [_Group(beam_size, eos, max_length, length_penalty, n_best, row) for _ in range(groups)]
        for row, max_length in enumerate(max_lengths)
    ]
    tokens = prompt
    for length in range(1, max(max_lengths) + 1):
        logprobs = next_logprobs(step, state, tokens, suppressed)  # (R, V)
        # Earlier groups took at most (groups - 1) x (size + 1) different words: that many may move down.
        top_logprobs, top_tokens = topk(
            logprobs, min(2 * beam_size + (groups - 1) * (beam_size + 1), logprobs.size(1))
        )  # (R, n)
        candidate_tokens = [
            list(zip(row_tokens, row_logprobs, strict=True))
            for row_tokens, row_logprobs in zip(top_tokens.tolist(), top_logprobs.tolist(), strict=True)
        ]
        for sentence in sentences:
            chosen_counts: Counter[int] = Counter()
            for group in sentence:
                chosen_counts.update(group.extend(candidate_tokens, length, chosen_counts, strength))
        open_hypotheses = [
            hypothesis for sentence in sentences for group in sentence for hypothesis in group.open_hypotheses
        ]
        if not open_hypotheses:
            break
        tokens, moved = advance(state, open_hypotheses, prompt.device)
        remaining = iter(moved)
        for group in (group for sentence in sentences for group in sentence):
            group.open_hypotheses = [next(remaining) for _ in group.open_hypotheses]
    return [[group.finished.hypotheses for group in sentence] for sentence in sentences]


class _Group:
    """One of the beams of a sentence."""

    def __init__(
        self, beam_size: int, eos: int, max_length: int, length_penalty: LengthPenalty, n_best: int, row: int
    ) -> None:
        self.beam_size, self.eos, self.max_length = beam_size, eos, max_length
        self.finished = FinishedHypotheses(eos, max_length, length_penalty, n_best)
        self.open_hypotheses = [PartialHypothesis(row)]

    def extend(
        self, candidate_tokens: list[TokenLogprobs], length: int, chosen_counts: Counter[int], strength: float
    ) -> list[int]:
        """Write one token more, and rather not one that was `chosen`; comes back: what was taken."""
        candidates = []
        for hypothesis in self.open_hypotheses:
            check_finite([logprob for _, logprob in candidate_tokens[hypothesis.row]])
            candidates += [
                hypothesis.extend(token, logprob)
                for token, logprob in candidate_tokens[hypothesis.row]
                if logprob > NEG_INF
            ]
        candidates.sort(key=lambda hypothesis: strength * chosen_counts[hypothesis.tokens[-1]] - hypothesis.total)
        finished, open_hypotheses = split_finished(
            candidates, self.beam_size, self.eos, is_last=length >= self.max_length
        )
        self.finished.add(finished)
        self.open_hypotheses = [] if self.finished.is_settled(open_hypotheses) else open_hypotheses
        return [hypothesis.tokens[-1] for hypothesis in (*finished, *open_hypotheses)]
