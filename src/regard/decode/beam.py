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

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.base.errors import RegardError
from regard.decode.step import Hypothesis, S, Step, check_longest, hypothesis, not_a_number
from regard.decode.top import top

NOTHING = float("-inf")
Logs = NDArray[np.float64]
Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]


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
    search = _Search(size, end, alpha, best, enough, longest)
    tokens = first
    for _ in range(max(longest)):
        log_probabilities = step(tokens, state)[:, -1].float().log_softmax(dim=-1)  # (R, V)
        if never is not None:
            log_probabilities.index_fill_(1, never, NOTHING)
        logs, words = top(log_probabilities, min(2 * size, log_probabilities.size(1)))  # (R, n)
        # A few numbers of each row decide everything else: they come to Python in one piece, the one wait for the
        # device, and numpy is quicker with small arrays than any device is.
        seen = torch.cat((logs.double(), words.double()), dim=1).cpu().numpy()
        index = search.extend(seen[:, : logs.size(1)], seen[:, logs.size(1) :].astype(np.int64))
        if not search.sentences.size:
            break
        if index is not None:
            state.reorder(torch.from_numpy(index).to(first.device))
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


class _Search:
    """All that is known of the sentences that are not done: B of them with W open beginnings each, R = B W rows."""

    def __init__(
        self, size: int, end: int, alpha: float, best: int, enough: int | None, longest: Sequence[int]
    ) -> None:
        self.size, self.end, self.alpha, self.best, self.enough = size, end, alpha, best, enough
        self.count, self.place = len(longest), 0
        self.sentences = np.arange(self.count)  # (B)
        self.limits = np.array(longest)  # (B)
        self.totals = np.zeros((self.count, 1))  # (B, W) log p; -inf for a place that is empty
        self.written = np.empty((self.count, 0), np.int64)  # (R, place)
        self.logs = np.empty((self.count, 0))  # (R, place)
        self.scores = np.full((self.count, best), NOTHING)  # (B, best) of finished texts, the worst first
        self.ended = np.zeros(self.count, np.int64)  # (B) how many texts are finished
        self.finished: list[_Finished] = []

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
        opened = candidates.chosen(each, ends.argsort(axis=1, kind="stable")[:, : self.size])  # (B, W')
        opened.totals[opened.tokens == self.end] = NOTHING  # where too few go on, a place stays empty
        if over.any():
            self._set_aside(candidates, over)
        done = last | self._cannot_win(opened.totals[:, 0])  # (B)
        return self._go_on(opened, ~done)

    def found(self) -> list[list[Hypothesis]]:
        """The best finished texts of every sentence."""
        texts: list[list[Hypothesis]] = [[] for _ in range(self.count)]
        for step in self.finished:
            for sentence, tokens, logs in zip(*(part.tolist() for part in step), strict=True):
                texts[sentence].append(hypothesis(tokens, logs, self.end, self.alpha))
        if not all(texts):
            raise not_a_number()
        return [sorted(some, key=lambda text: -text.score)[: self.best] for some in texts]

    def _continuations(self, logs: Logs, tokens: Numbers) -> _Candidates:
        """The best 2 x size of each sentence; equal ones keep their order."""
        sentences, width = self.totals.shape
        each = logs.shape[1]
        logs, tokens = logs.reshape(sentences, width * each), tokens.reshape(sentences, width * each)
        totals = self.totals.repeat(each, axis=1) + logs  # (B, W n)
        places = (-totals).argsort(axis=1, kind="stable")[:, : 2 * self.size]  # (B, n)
        at = (np.arange(sentences)[:, None], places)
        return _Candidates(totals[at], places // each, tokens[at], logs[at])

    def _set_aside(self, candidates: _Candidates, over: Flags) -> None:
        """Keep the texts that have finished, over (B, size), and their scores."""
        sentences, places = over.nonzero()  # (n), (n)
        new = candidates.chosen(sentences, places)
        rows = sentences * self.totals.shape[1] + new.parents
        tokens = np.concatenate((self.written[rows], new.tokens[:, None]), axis=1)  # (n, place)
        logs = np.concatenate((self.logs[rows], new.logs[:, None]), axis=1)  # (n, place)
        self.finished.append(_Finished(self.sentences[sentences], tokens, logs))
        scores = np.where(over, candidates.totals[:, : self.size] / self.place**self.alpha, NOTHING)
        self.scores = np.sort(np.concatenate((self.scores, scores), axis=1), axis=1)[:, -self.best :]
        self.ended += over.sum(axis=1)

    def _cannot_win(self, totals: Logs) -> Flags:
        """Of which sentences (B) nothing that is open can win any more, given their best open beginnings."""
        done = self.scores[:, 0] >= totals / self.limits**self.alpha  # free words up to the longest length
        return done if self.enough is None else done | (self.ended >= self.enough)

    def _go_on(self, opened: _Candidates, stay: Flags) -> Numbers | None:
        """Sentences that are done leave; the others have new open beginnings."""
        sentences, width = self.totals.shape
        index = (np.arange(sentences)[:, None] * width + opened.parents)[stay].flatten()  # (R)
        self.sentences, self.limits = self.sentences[stay], self.limits[stay]
        self.totals, self.scores, self.ended = opened.totals[stay], self.scores[stay], self.ended[stay]
        self.written = np.concatenate((self.written[index], opened.tokens[stay].reshape(-1, 1)), axis=1)  # (R, place)
        self.logs = np.concatenate((self.logs[index], opened.logs[stay].reshape(-1, 1)), axis=1)  # (R, place)
        same = index.size == sentences * width and bool((index == np.arange(index.size)).all())
        return None if same else index
