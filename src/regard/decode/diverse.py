"""Diverse beam search: groups of beams that avoid each other's tokens (Vijayakumar et al. 2018).

The hypotheses of one beam often differ only in a comma. Diverse beam search splits the beam into groups, which choose
their tokens one after another at every step. A group ranks its candidates by

    log p(y) - diversity_penalty x (hypotheses of earlier groups with the same token at this step, eos included),

so that later groups prefer other tokens (the authors' Hamming diversity). The penalty only decides which candidates a
group keeps at this step; finished hypotheses are compared by the model's own score, as in `regard.decode.beam`. With a
penalty of 0 every group finds the same beam; one group is ordinary beam search.
"""

from collections import Counter
from collections.abc import Sequence

from torch import Tensor

from regard.base.errors import RegardError
from regard.decode.length_penalty import LengthPenalty
from regard.decode.partial import FinishedHypotheses, PartialHypothesis, advance, next_logprobs, split_finished
from regard.decode.protocol import NEG_INF, Hypothesis, S, Step, check_max_lengths, check_not_nan
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
    diversity_penalty: float = 0.5,
    length_penalty: LengthPenalty = 1.0,
    n_best: int = 1,
    suppress_tokens: Tensor | None = None,
) -> list[list[list[Hypothesis]]]:
    """Return the `n_best` hypotheses of each group of each sentence, best first; fewer where fewer were found.

    Two groups may find the same hypothesis. See `regard.decode.protocol` for the arguments shared by all searches.

    Args:
        groups: Number of groups per sentence.
        beam_size: Beam size of each group; the model reads groups x beam_size rows per sentence.
        diversity_penalty: Penalty per hypothesis of an earlier group with the same token, 0 or more.
    """
    check_max_lengths(max_lengths, prompt.size(0))
    if groups < 1 or beam_size < 1 or n_best < 1 or diversity_penalty < 0:
        raise RegardError(
            "groups, beam_size and n_best must be at least 1, diversity_penalty at least 0, got "
            f"groups={groups}, beam_size={beam_size}, n_best={n_best}, diversity_penalty={diversity_penalty}.",
            hint="Use for instance groups=4, beam_size=1, diversity_penalty=0.5.",
        )
    sentences = [
        [_BeamGroup(beam_size, eos, max_new_tokens, length_penalty, n_best, row) for _ in range(groups)]
        for row, max_new_tokens in enumerate(max_lengths)
    ]
    # Earlier groups chose at most (groups - 1) x (beam_size + 1) different tokens: at most that many move down.
    max_candidates = 2 * beam_size + (groups - 1) * (beam_size + 1)
    tokens = prompt
    for length in range(1, max(max_lengths) + 1):
        logprobs = next_logprobs(step, state, tokens, suppress_tokens)  # (R, V)
        top_logprobs, top_tokens = (part.tolist() for part in topk(logprobs, min(max_candidates, logprobs.size(1))))
        candidate_tokens = [list(zip(*row, strict=True)) for row in zip(top_tokens, top_logprobs, strict=True)]
        for sentence in sentences:
            chosen_counts: Counter[int] = Counter()
            for group in sentence:
                chosen_counts.update(group.extend(candidate_tokens, length, chosen_counts, diversity_penalty))
        open_hypotheses = [
            hypothesis for sentence in sentences for group in sentence for hypothesis in group.open_hypotheses
        ]
        if not open_hypotheses:
            break
        tokens = advance(state, open_hypotheses, prompt.device)
    return [[group.finished.hypotheses for group in sentence] for sentence in sentences]


class _BeamGroup:
    """One group of a sentence's beam."""

    def __init__(
        self, beam_size: int, eos: int, max_new_tokens: int, length_penalty: LengthPenalty, n_best: int, row: int
    ) -> None:
        self.beam_size, self.eos, self.max_new_tokens = beam_size, eos, max_new_tokens
        self.finished = FinishedHypotheses(eos, max_new_tokens, length_penalty, n_best)
        self.open_hypotheses = [PartialHypothesis(row)]

    def extend(
        self, candidate_tokens: list[TokenLogprobs], length: int, chosen_counts: Counter[int], diversity_penalty: float
    ) -> list[int]:
        """Extend every hypothesis of this group by one token, penalizing tokens that earlier groups chose.

        Returns:
            The tokens that this group chose.
        """
        candidates = []
        for hypothesis in self.open_hypotheses:
            check_not_nan(logprob for _, logprob in candidate_tokens[hypothesis.row])
            candidates += [
                hypothesis.extend(token, logprob)
                for token, logprob in candidate_tokens[hypothesis.row]
                if logprob > NEG_INF
            ]
        candidates.sort(
            key=lambda hypothesis: diversity_penalty * chosen_counts[hypothesis.tokens[-1]] - hypothesis.total
        )
        finished, open_hypotheses = split_finished(
            candidates, self.beam_size, self.eos, is_last=length >= self.max_new_tokens
        )
        self.finished.add(finished)
        self.open_hypotheses = [] if self.finished.is_settled(open_hypotheses) else open_hypotheses
        return [hypothesis.tokens[-1] for hypothesis in (*finished, *open_hypotheses)]
