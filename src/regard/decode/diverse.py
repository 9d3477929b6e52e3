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
from regard.decode.beginnings import NOTHING, Beginning, Finished, check_numbers, go_on, parted, word_logs
from regard.decode.lengths import Alpha
from regard.decode.step import Hypothesis, S, Step, check_longest
from regard.decode.top import top

Words = list[tuple[int, float]]  # tokens and their log-probabilities, best first


def diverse_beam(
    step: Step[S],
    state: S,
    first: Tensor,
    *,
    groups: int,
    size: int,
    end: int,
    longest: Sequence[int],
    strength: float = 0.5,
    alpha: Alpha = 1.0,
    best: int = 1,
    never: Tensor | None = None,
) -> list[list[list[Hypothesis]]]:
    """For each sentence and each of its groups the `best` hypotheses, best first; fewer where fewer were found.

    Every group is a beam of `size`; groups x size rows of each sentence are read together. The other arguments are
    those of `regard.decode.beam`. Two groups may well find the same text.
    """
    check_longest(longest, first.size(0))
    if groups < 1 or size < 1 or best < 1 or strength < 0:
        raise RegardError(
            f"No {groups} groups of size {size}, best {best} and strength {strength}.",
            fix="Use groups, size and best of 1 or more, and strength of 0 or more.",
        )
    sentences = [
        [_Group(size, end, limit, alpha, best, row) for _ in range(groups)] for row, limit in enumerate(longest)
    ]
    tokens = first
    for place in range(1, max(longest) + 1):
        logs = word_logs(step, state, tokens, never)  # (R, V)
        # Earlier groups took at most (groups - 1) x (size + 1) different words: that many may move down.
        values, words = top(logs, min(2 * size + (groups - 1) * (size + 1), logs.size(1)))  # (R, n)
        rows = [
            list(zip(its_words, its_values, strict=True))
            for its_words, its_values in zip(words.tolist(), values.tolist(), strict=True)
        ]
        for sentence in sentences:
            chosen: Counter[int] = Counter()
            for group in sentence:
                chosen.update(group.extend(rows, place, chosen, strength))
        opened = [one for sentence in sentences for group in sentence for one in group.opened]
        if not opened:
            break
        tokens, moved = go_on(state, opened, first.device)
        rest = iter(moved)
        for group in (group for sentence in sentences for group in sentence):
            group.opened = [next(rest) for _ in group.opened]
    return [[group.finished.texts for group in sentence] for sentence in sentences]


class _Group:
    """One of the beams of a sentence."""

    def __init__(self, size: int, end: int, limit: int, alpha: Alpha, best: int, row: int) -> None:
        self.size, self.end, self.limit = size, end, limit
        self.finished = Finished(end, limit, alpha, best)
        self.opened = [Beginning(row)]

    def extend(self, rows: list[Words], place: int, chosen: Counter[int], strength: float) -> list[int]:
        """Write one token more, and rather not one that was `chosen`; comes back: what was taken."""
        candidates = []
        for one in self.opened:
            check_numbers([log for _, log in rows[one.row]])
            candidates += [one.plus(token, log) for token, log in rows[one.row] if log > NOTHING]
        candidates.sort(key=lambda one: strength * chosen[one.tokens[-1]] - one.total)
        over, opened = parted(candidates, self.size, self.end, last=place >= self.limit)
        self.finished.add(over)
        self.opened = [] if self.finished.cannot_change(opened) else opened
        return [one.tokens[-1] for one in (*over, *opened)]
