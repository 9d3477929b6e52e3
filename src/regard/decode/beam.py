"""Beam search: the best few beginnings are written on together.

At every step the `size` open beginnings of a sentence have size x V continuations. The best `size` of those that do not
end stay open; those that end, and are among the best `size` of all, are finished. (So both are found among the best
2 x size.) At the longest length the best `size` are finished as they are.

Finished texts are compared by score(y) = log p(y) / |y|^alpha, where |y| counts END, too: its probability is in the
sum (`regard.decode.lengths` has GNMT's form, too). Without this (alpha = 0) short texts win, because every word more
costs probability. Open beginnings of a sentence have one length, so they are compared by log p alone.

When is a sentence done? The lectures have two rules: at a longest length T, always; or as soon as n texts are finished
(`enough`), which may miss a better one. Beyond them stands a bound: log-probabilities are never above 0, so a beginning
with log p = s can at best go on for free up to T, and then scores s / T^alpha. When that is no more than the score of
the text found, no open beginning can win any more, and going on would be in vain: it is exact, and gives nothing away.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.decode.lengths import Alpha, normaliser
from regard.decode.rows import Flags, Logs, Numbers, closed_up, on_host
from regard.decode.step import Hypothesis, S, Step, check_longest, hypothesis, not_a_number
from regard.decode.top import best as best_words
from regard.decode.trace import DROPPED, FINISHED, OPEN, Trace

NOTHING = float("-inf")


def beam(
    step: Step[S],
    state: S,
    first: Tensor,
    *,
    size: int,
    end: int,
    longest: Sequence[int],
    alpha: Alpha = 1.0,
    best: int = 1,
    enough: int | None = None,
    never: Tensor | None = None,
    trace: Trace | None = None,
) -> list[list[Hypothesis]]:
    """The `best` hypotheses of each sentence, best first; fewer where fewer were found.

    `first` (B, k) is what is read before anything is written: [begin], or [begin] and a prefix. At most `longest`
    tokens of each sentence are written, END included. Words in `never` (n) are not written; what the model thinks of
    the others stays as it is. Between equal candidates the one of the better beginning wins. A `trace` is told every
    candidate: the best 2 x size of each sentence at each step.
    """
    check_longest(longest, first.size(0))
    if size < 1 or best < 1 or (enough is not None and enough < 1):
        raise RegardError(
            f"No beam of size {size}, with the best {best} and {enough} finished texts.",
            fix="Use 1 or more for each.",
        )
    search = _Search(size, end, alpha, best, enough, longest, trace)
    tokens = first
    for _ in range(max(longest)):
        logits = step(tokens, state)[:, -1].float()  # (R, V)
        # A few numbers of each row decide everything else; numpy is quicker with small arrays than any device is.
        index = search.extend(*on_host(*best_words(logits, min(2 * size, logits.size(1)), never)))
        if not search.sentences.size:
            break
        if index is not None:
            state.reorder(torch.from_numpy(index))
        tokens = torch.from_numpy(search.last).to(first.device)  # (R, 1)
    return search.found()


class _Candidates(NamedTuple):
    """Continuations of each sentence, best first: all (B, n)."""

    totals: Logs
    parents: Numbers  # which of the sentence's open beginnings they continue
    tokens: Numbers
    logs: Logs

    def chosen(self, rows: Numbers, columns: Numbers) -> "_Candidates":
        """Some of them."""
        at = (rows, columns)
        return _Candidates(self.totals[at], self.parents[at], self.tokens[at], self.logs[at])


class _Finished(NamedTuple):
    """Texts that were finished at one step."""

    sentences: Numbers  # (n)
    tokens: Numbers  # (n, place)
    logs: Logs  # (n, place)
    numbers: Numbers  # (n) in the trace


class _Search:
    """All that is known of the sentences that are not done: B of them with W open beginnings each, R = B W rows."""

    def __init__(
        self,
        size: int,
        end: int,
        alpha: Alpha,
        best: int,
        enough: int | None,
        longest: Sequence[int],
        trace: Trace | None,
    ) -> None:
        self.size, self.end, self.alpha, self.best, self.enough = size, end, alpha, best, enough
        self.count, self.place = len(longest), 0
        self.sentences = np.arange(self.count)  # (B)
        self.divide_by = normaliser(alpha)
        self.limits = np.array(longest)  # (B)
        self.most = np.array([self.divide_by(length) for length in longest])  # (B) what the longest text is divided by
        self.totals = np.zeros((self.count, 1))  # (B, W) log p; -inf for a place that is empty
        self.order = np.zeros((self.count, 1), np.int64)  # (B, W) which of the sentence's rows is the best, the second
        self.written = np.empty((self.count, 0), np.int64)  # (R, place)
        self.logs = np.empty((self.count, 0))  # (R, place)
        self.scores = np.full((self.count, best), NOTHING)  # (B, best) of finished texts, the worst first
        self.ended = np.zeros(self.count, np.int64)  # (B) how many texts are finished
        self.finished: list[_Finished] = []
        self.trace = trace
        self.numbers = np.zeros((self.count, 1), np.int64)  # (B, W) of the open beginnings in the trace
        if trace is not None:
            self.numbers[:, 0] = trace.begin(self.count)

    @property
    def last(self) -> Numbers:
        """What the model must read next, (R, 1)."""
        return np.ascontiguousarray(self.written[:, -1:])

    def extend(self, logs: Logs, tokens: Numbers) -> Numbers | None:
        """Write one token more, given the best n of each row (R, n).

        Comes back: how the model's rows must be reordered for it (None: they stay as they are).
        """
        self.place += 1
        candidates = self._continuations(logs, tokens)
        each = np.arange(len(self.sentences))[:, None]  # (B, 1)
        ends = candidates.tokens == self.end  # (B, n)
        last = self.limits <= self.place  # (B)
        over = (ends | last[:, None])[:, : self.size] & (candidates.totals[:, : self.size] > NOTHING)  # (B, size)
        going = ends.argsort(axis=1, kind="stable")[:, : self.size]  # (B, W') those that do not end, in their order
        opened = candidates.chosen(each, going)  # (B, W')
        opened.totals[opened.tokens == self.end] = NOTHING  # where too few go on, a place stays empty
        numbers = None if self.trace is None else self._told(self.trace, candidates, over, going, last)  # (B, n)
        if over.any():
            self._set_aside(candidates, over, numbers)
        done = last | self._cannot_win(opened.totals[:, 0])  # (B)
        if self.trace is not None and numbers is not None:
            self.trace.beat(numbers[done][numbers[done] >= 0].tolist())
            self.numbers = numbers[each, going]  # (B, W')
        return self._go_on(opened, ~done)

    def found(self) -> list[list[Hypothesis]]:
        """The best finished texts of every sentence."""
        texts: list[list[tuple[Hypothesis, int]]] = [[] for _ in range(self.count)]
        for step in self.finished:
            for sentence, tokens, logs, number in zip(*(part.tolist() for part in step), strict=True):
                texts[sentence].append((hypothesis(tokens, logs, self.end, self.alpha), number))
        if not all(texts):
            raise not_a_number()
        ranked = [sorted(some, key=lambda text: -text[0].score)[: self.best] for some in texts]
        if self.trace is not None:
            self.trace.winners = [[number for _, number in some] for some in ranked]
        return [[text for text, _ in some] for some in ranked]

    def _continuations(self, logs: Logs, tokens: Numbers) -> _Candidates:
        """The best 2 x size of each sentence; equal ones keep the order of their beginnings."""
        sentences, width = self.totals.shape
        each, count = np.arange(sentences)[:, None], logs.shape[1]
        logs = logs.reshape(sentences, width, count)[each, self.order].reshape(sentences, -1)  # (B, W n)
        tokens = tokens.reshape(sentences, width, count)[each, self.order].reshape(sentences, -1)
        totals = self.totals[each, self.order].repeat(count, axis=1) + logs  # (B, W n)
        places = (-totals).argsort(axis=1, kind="stable")[:, : 2 * self.size]  # (B, n)
        at = (each, places)
        return _Candidates(totals[at], self.order[each, places // count], tokens[at], logs[at])

    def _set_aside(self, candidates: _Candidates, over: Flags, numbers: Numbers | None) -> None:
        """Keep the texts that have finished, over (B, size), and their scores."""
        sentences, places = over.nonzero()  # (n), (n)
        new = candidates.chosen(sentences, places)
        rows = sentences * self.totals.shape[1] + new.parents
        tokens = np.concatenate((self.written[rows], new.tokens[:, None]), axis=1)  # (n, place)
        logs = np.concatenate((self.logs[rows], new.logs[:, None]), axis=1)  # (n, place)
        told = np.zeros_like(sentences) if numbers is None else numbers[sentences, places]  # (n)
        self.finished.append(_Finished(self.sentences[sentences], tokens, logs, told))
        scores = np.where(over, candidates.totals[:, : self.size] / self.divide_by(self.place), NOTHING)
        self.scores = np.sort(np.concatenate((self.scores, scores), axis=1), axis=1)[:, -self.best :]
        self.ended += over.sum(axis=1)

    def _cannot_win(self, totals: Logs) -> Flags:
        """Of which sentences (B) nothing that is open can win any more, given their best open beginnings."""
        done = self.scores[:, 0] >= totals / self.most  # free words up to the longest length
        return done if self.enough is None else done | (self.ended >= self.enough)

    def _go_on(self, opened: _Candidates, stay: Flags) -> Numbers | None:
        """Sentences that are done leave; the others have new open beginnings, in rows that move as little as can be."""
        sentences, width = self.totals.shape
        left = closed_up(stay)  # (B')
        each = left[:, None]
        order = _settled(opened.parents[left], width)  # (B', W') the row of each new beginning
        rank = order.argsort(axis=1)  # (B', W') which beginning each row holds
        new = opened.chosen(each, rank)  # (B', W')
        index = (each * width + new.parents).flatten()  # (R)
        self.sentences, self.limits, self.most = self.sentences[left], self.limits[left], self.most[left]
        self.scores, self.ended = self.scores[left], self.ended[left]
        self.order, self.totals = order, new.totals
        if self.trace is not None:
            self.numbers = self.numbers[each, rank]
        self.written = np.concatenate((self.written[index], new.tokens.reshape(-1, 1)), axis=1)  # (R, place)
        self.logs = np.concatenate((self.logs[index], new.logs.reshape(-1, 1)), axis=1)  # (R, place)
        same = index.size == sentences * width and bool((index == np.arange(index.size)).all())
        return None if same else index

    def _told(self, trace: Trace, candidates: _Candidates, over: Flags, going: Numbers, last: Flags) -> Numbers:
        """Tell a trace of all candidates; their numbers in it (B, n) come back, -1 for what is no candidate."""
        trace.see(np.where(self.totals > NOTHING, self.numbers, -1).flatten())
        numbers = np.full(candidates.tokens.shape, -1)
        for sentence, place in zip(*(candidates.totals > NOTHING).nonzero(), strict=True):
            finished = place < self.size and over[sentence, place]
            goes_on = not last[sentence] and candidates.tokens[sentence, place] != self.end
            fate = FINISHED if finished else OPEN if goes_on and place in going[sentence] else DROPPED
            parent = self.numbers[sentence, candidates.parents[sentence, place]]
            log, token = candidates.logs[sentence, place], candidates.tokens[sentence, place]
            numbers[sentence, place] = trace.consider(int(parent), int(token), float(log), self.alpha, fate)
        return numbers


def _settled(parents: Numbers, width: int) -> Numbers:
    """In which row each new beginning goes on, given the rows of the old ones that they continue, (B, W).

    The first that continues a row stays in it, the others take the rows that nobody continues: so little is copied.

    >>> _settled(np.array([[2, 2, 0, 2], [0, 1, 2, 3]]), 4).tolist()
    [[2, 1, 0, 3], [0, 1, 2, 3]]
    """
    if parents.shape[1] != width:  # there were fewer before: nothing can stay
        return np.arange(parents.shape[1])[None].repeat(len(parents), axis=0)
    equal = parents[:, :, None] == parents[:, None, :]  # (B, W, W)
    again = np.tril(equal, -1).any(axis=2)  # (B, W) an earlier one continues the same row
    free = ~(parents[:, None, :] == np.arange(width)[None, :, None]).any(axis=2)  # (B, W) rows that nobody continues
    settled = parents.copy()
    settled[again] = free.nonzero()[1]  # as many in every sentence, and in its order
    return settled
