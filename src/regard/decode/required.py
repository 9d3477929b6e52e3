"""Phrases that must be written: grid beam search (Hokamp and Liu 2017).

An ordinary beam would drop a beginning that has just written an unlikely phrase in favour of one that has not. So
beginnings compete only with those that are equally far: for every number c of required tokens that are written there is
a beam of its own, of `size` beginnings. Every word is a candidate, and in any case those that begin a missing phrase or
go on with it. Only beginnings with all phrases may end. The rest is as in `regard.decode.beam`; without phrases it is
that.

What is written of a phrase counts only while it is at the end of the text: a phrase that is left in the middle must be
begun again. Texts may write a phrase of their own accord, and phrases may overlap.

Limits: C required tokens make C + 1 beams, so it costs C + 1 times as much. Phrases are tokens: they are not inflected,
and nothing says that they translate what they should (a model that does not expect a phrase may write it as well as the
word it would have chosen). Where the longest length is near C, texts have no room for anything else.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.decode.beginnings import NOTHING, Beginning, Finished, check_numbers, go_on, parted, word_logs
from regard.decode.lengths import Alpha
from regard.decode.phrases import ROOT, Phrases
from regard.decode.step import Hypothesis, S, Step, check_longest
from regard.decode.top import top

Word = tuple[int, float]  # a token and its log-probability


@dataclass(frozen=True)
class _Progress:
    """How far a beginning is: the phrases it has, and its node in the trie of all."""

    has: frozenset[int] = frozenset()
    node: int = ROOT


def required_beam(
    step: Step[S],
    state: S,
    first: Tensor,
    *,
    required: Sequence[Sequence[Sequence[int]]],
    size: int,
    end: int,
    longest: Sequence[int],
    alpha: Alpha = 1.0,
    best: int = 1,
    never: Tensor | None = None,
) -> list[list[Hypothesis]]:
    """The `best` hypotheses of each sentence with all its `required` phrases, best first.

    The other arguments are those of `regard.decode.beam`. At the longest length only texts count that have all phrases.
    """
    check_longest(longest, first.size(0))
    if len(required) != len(longest) or size < 1 or best < 1:
        raise RegardError(
            f"{len(required)} lists of phrases for {len(longest)} sentences, size {size}, best {best}.",
            fix="Give one list for each sentence, perhaps empty; size and best of 1 or more.",
        )
    grids = [
        _Grid(phrases, size, end, limit, alpha, best, row)
        for row, (phrases, limit) in enumerate(zip(required, longest, strict=True))
    ]
    special = sorted({end}.union(*(phrase for grid in grids for phrase in grid.phrases.phrases)))
    tokens = first
    for place in range(1, max(longest) + 1):
        logs = word_logs(step, state, tokens, never)  # (R, V)
        rows = _words(logs, special, size)
        for grid in grids:
            grid.extend(rows, place)
        opened = [one for grid in grids for one in grid.opened]
        if not opened:
            break
        tokens, moved = go_on(state, opened, first.device)
        rest = iter(moved)
        for grid in grids:
            grid.opened = {next(rest): progress for progress in grid.opened.values()}
    return [grid.found() for grid in grids]


def _words(logs: Tensor, special: list[int], size: int) -> list[list[Word]]:
    """The words of each row that can matter: the special ones, and enough others to fill a beam."""
    count = min(size + len(special), logs.size(1))
    values, words = top(logs, count)  # (R, n)
    places = torch.tensor([word for word in special if 0 <= word < logs.size(1)], dtype=torch.long, device=logs.device)
    values = torch.cat((values, logs[:, places]), dim=1).double()
    words = torch.cat((words, places.expand(logs.size(0), -1)), dim=1)
    facts = torch.stack((words.double(), values), dim=2).tolist()  # the one wait for the device
    for row in facts:
        check_numbers([value for _, value in row])
    return [list({int(word): value for word, value in row}.items()) for row in facts]


class _Grid:
    """The beams of one sentence."""

    def __init__(
        self, phrases: Sequence[Sequence[int]], size: int, end: int, limit: int, alpha: Alpha, best: int, row: int
    ) -> None:
        self.phrases = Phrases(list(dict.fromkeys(tuple(phrase) for phrase in phrases)))
        self.all = frozenset(range(len(self.phrases.phrases)))
        if any(end in phrase for phrase in self.phrases.phrases):
            raise RegardError("A required phrase holds END.", fix="Leave it out: texts end by themselves.")
        self.size, self.end, self.limit = size, end, limit
        self.finished = Finished(end, limit, alpha, best)
        self.opened = {Beginning(row): _Progress()}  # in order: the fewest required tokens first, then the best

    def extend(self, rows: list[list[Word]], place: int) -> None:
        """Write one token more of every open beginning."""
        beams: dict[int, list[tuple[Beginning, _Progress]]] = {}
        for beginning, progress in self.opened.items():
            for token, log in rows[beginning.row]:
                if log == NOTHING:
                    continue
                new = self._after(progress, token)
                beams.setdefault(self._covered(new), []).append((beginning.plus(token, log), new))
        self.opened = {}
        for _, candidates in sorted(beams.items()):
            ranked = dict(sorted(candidates, key=lambda pair: -pair[0].total))
            complete = next(iter(ranked.values())).has == self.all
            over, opened = parted(list(ranked), self.size, self.end, last=place >= self.limit)
            if complete:
                self.finished.add(over)
            self.opened |= {one: ranked[one] for one in opened}
        if self.finished.cannot_change(list(self.opened)):
            self.opened = {}

    def found(self) -> list[Hypothesis]:
        """The best finished texts."""
        if not self.finished.texts:
            raise RegardError(
                f"No text of up to {self.limit} tokens with all of {self.phrases.phrases} can be written.",
                fix="Give a larger `longest`, or require less.",
            )
        return self.finished.texts

    def _after(self, progress: _Progress, token: int) -> _Progress:
        if not self.all:
            return progress
        node = self.phrases.after(progress.node, token)
        return _Progress(progress.has | self.phrases.ends[node], node)

    def _covered(self, progress: _Progress) -> int:
        """How many required tokens are written."""
        whole = sum(len(self.phrases.phrases[number]) for number in progress.has)
        return whole + (self.phrases.progress(progress.node, progress.has) if progress.has != self.all else 0)
