"""Beam search: the best few beginnings are written on together.

At every step the `size` open beginnings of a sentence have size x V continuations. The best `size` of those that do not
end stay open; those that end, and are among the best `size` of all, are finished. (So both are found among the best
2 x size.) At the longest length the best `size` are finished as they are.

Finished texts are compared by score(y) = log p(y) / |y|^alpha, where |y| counts END, too: its probability is in the
sum. Without this (alpha = 0) short texts win, because every word more costs probability. Open beginnings of a sentence
have one length, so they are compared by log p alone.

When is a sentence done? Log-probabilities are never above 0, so a beginning with log p = s can at best go on for free
up to the longest length T, and then scores s / T^alpha. When that is no more than the score of the text found, no
open beginning can win any more, and going on would be in vain: this bound is exact, and gives nothing away. `enough`
is the lectures' other rule, which may: a sentence is done as soon as so many of its texts are finished.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.decode.step import Hypothesis, S, Step, check_longest, hypothesis, not_a_number
from regard.decode.top import top

NOTHING = float("-inf")


def beam(
    step: Step[S],
    state: S,
    first: Tensor,
    *,
    size: int,
    end: int,
    longest: Sequence[int],
    alpha: float = 1.0,
    best: int = 1,
    enough: int | None = None,
    never: Tensor | None = None,
) -> list[list[Hypothesis]]:
    """The `best` hypotheses of each sentence, best first; fewer where fewer were found.

    `first` (B, k) is what is read before anything is written: [begin], or [begin] and a prefix. At most `longest`
    tokens of each sentence are written, END included. Words in `never` (n) are not written; what the model thinks of
    the others stays as it is. Between equal candidates the one of the better beginning wins.
    """
    check_longest(longest, first.size(0))
    if size < 1 or best < 1 or alpha < 0:
        raise RegardError(
            f"No beam of size {size}, with the best {best} and alpha {alpha}.",
            fix="Use size and best of 1 or more, and alpha of 0 or more.",
        )
    limits = torch.tensor(longest, device=first.device)
    search = _Search(size, end, alpha, best, enough, limits)
    tokens, place = first, 0
    while True:
        place += 1
        log_probabilities = step(tokens, state)[:, -1].float().log_softmax(dim=-1)  # (R, V)
        if never is not None:
            log_probabilities.index_fill_(1, never, NOTHING)
        index = search.extend(log_probabilities, place)
        if not search.sentences:
            return search.found()
        if index is not None:
            state.reorder(index)
        tokens = search.written[:, -1:]  # (R, 1)


class _Candidates(NamedTuple):
    """Continuations of each sentence, best first: all (B, n)."""

    totals: Tensor
    parents: Tensor  # which of the sentence's open beginnings they continue
    tokens: Tensor
    logs: Tensor

    def columns(self, chosen: Tensor) -> "_Candidates":
        """Some of each sentence's, by their places (B, m)."""
        return _Candidates(*(part.gather(1, chosen) for part in self))

    def rows(self, chosen: Tensor) -> "_Candidates":
        """All of some sentences'."""
        return _Candidates(*(part[chosen] for part in self))


class _Finished(NamedTuple):
    """Texts that were finished at one step: n of them, on the device until the end."""

    sentences: list[int]
    tokens: Tensor  # (n, place)
    logs: Tensor  # (n, place)


class _Search:
    """All that is known of the sentences that are not done: B of them with W open beginnings each, R = B W rows."""

    def __init__(self, size: int, end: int, alpha: float, best: int, enough: int | None, limits: Tensor) -> None:
        self.size, self.end, self.alpha, self.best, self.enough = size, end, alpha, best, enough
        self.limits = limits  # (B) the longest lengths
        self.count, device = limits.numel(), limits.device
        self.sentences = list(range(self.count))
        self.totals = torch.zeros(self.count, 1, device=device)  # (B, W) log p; -inf for a place that is empty
        self.written = limits.new_empty(self.count, 0)  # (R, place)
        self.logs = self.totals.new_empty(self.count, 0)  # (R, place)
        self.scores = self.totals.new_full((self.count, best), NOTHING)  # (B, best) of finished texts, best first
        self.ended = torch.zeros_like(limits)  # (B) how many texts are finished
        self.finished: list[_Finished] = []

    def extend(self, log_probabilities: Tensor, place: int) -> Tensor | None:
        """Write one token more; how the model's rows must be reordered for it (None: they stay as they are)."""
        candidates = self._continuations(log_probabilities)
        ends = candidates.tokens == self.end  # (B, n)
        last = self.limits <= place  # (B)
        over = (ends | last[:, None])[:, : self.size] & (candidates.totals[:, : self.size] > NOTHING)  # (B, size)
        opened = candidates.columns(ends.byte().sort(dim=1, stable=True).indices[:, : self.size])  # (B, W')
        opened.totals.masked_fill_(opened.tokens == self.end, NOTHING)  # where too few go on, a place stays empty
        done = last | self._cannot_win(candidates.totals[:, : self.size], over, opened.totals[:, 0], place)
        same = opened.parents == torch.arange(opened.parents.size(1), device=ends.device)
        seen = torch.cat((over, done[:, None], same.all(dim=1, keepdim=True)), dim=1).cpu()  # the one wait
        self._set_aside(candidates, seen[:, :-2])
        return self._go_on(opened, seen[:, -2], bool(seen[:, -1].all()))

    def found(self) -> list[list[Hypothesis]]:
        """The best finished texts of every sentence."""
        texts: list[list[Hypothesis]] = [[] for _ in range(self.count)]
        for step in self.finished:
            for sentence, tokens, logs in zip(step.sentences, step.tokens.tolist(), step.logs.tolist(), strict=True):
                texts[sentence].append(hypothesis(tokens, logs, self.end, self.alpha))
        if not all(texts):
            raise not_a_number()
        return [sorted(some, key=lambda text: -text.score)[: self.best] for some in texts]

    def _continuations(self, log_probabilities: Tensor) -> _Candidates:
        """The best 2 x size of each sentence."""
        sentences, width = self.totals.shape
        each = min(2 * self.size, log_probabilities.size(1))
        logs, tokens = top(log_probabilities, each)  # (R, each)
        totals = (self.totals.view(-1, 1) + logs).view(sentences, width * each)
        # Sorted, not topk: there are few, and equal ones keep their order.
        totals, places = totals.sort(dim=1, descending=True, stable=True)
        totals, places = totals[:, : 2 * self.size], places[:, : 2 * self.size]  # (B, n)
        parts = (part.view(sentences, -1).gather(1, places) for part in (tokens, logs))
        return _Candidates(totals, places // each, *parts)

    def _cannot_win(self, totals: Tensor, over: Tensor, open_total: Tensor, place: int) -> Tensor:
        """Score what has finished; then say of which sentences (B) nothing that is open can win any more."""
        scores = (totals / place**self.alpha).masked_fill(~over, NOTHING)  # (B, size)
        self.scores = torch.cat((self.scores, scores), dim=1).topk(self.best, dim=1).values  # (B, best)
        done = self.scores[:, -1] >= open_total / self.limits**self.alpha  # free words up to the longest length
        if self.enough is None:
            return done
        self.ended = self.ended + over.sum(dim=1)
        return done | (self.ended >= self.enough)

    def _set_aside(self, candidates: _Candidates, over: Tensor) -> None:
        """Keep the texts that have finished; `over` (B, size) is where Python can see it."""
        where = over.nonzero()  # (n, 2)
        if not where.size(0):
            return
        sentences, places = where.to(self.limits.device).unbind(dim=1)
        rows = sentences * self.totals.size(1) + candidates.parents[sentences, places]
        tokens = torch.cat((self.written[rows], candidates.tokens[sentences, places, None]), dim=1)  # (n, place)
        logs = torch.cat((self.logs[rows], candidates.logs[sentences, places, None]), dim=1)  # (n, place)
        self.finished.append(_Finished([self.sentences[number] for number in where[:, 0].tolist()], tokens, logs))

    def _go_on(self, opened: _Candidates, done: Tensor, same: bool) -> Tensor | None:
        """Sentences that are done leave; the others have new open beginnings."""
        sentences, width = self.totals.shape
        index = torch.arange(sentences, device=opened.totals.device)[:, None] * width + opened.parents  # (B, W')
        same = same and opened.totals.size(1) == width
        if bool(done.any()):
            stay = (~done).nonzero()[:, 0]
            self.sentences = [self.sentences[number] for number in stay.tolist()]
            stay, same = stay.to(index.device), False
            index, opened = index[stay], opened.rows(stay)
            self.limits, self.scores, self.ended = self.limits[stay], self.scores[stay], self.ended[stay]
        index = index.flatten()  # (R)
        self.totals = opened.totals
        self.written = torch.cat((self.written[index], opened.tokens.view(-1, 1)), dim=1)  # (R, place)
        self.logs = torch.cat((self.logs[index], opened.logs.view(-1, 1)), dim=1)  # (R, place)
        return None if same else index
