"""Beam search: the best few beginnings are written on together.

At every step the `size` open beginnings of a sentence have size x V continuations. The best `size` of those that do not
end stay open; those that end, and are among the best `size` of all, are finished. (So both are found among the best
2 x size.) At the longest length the best `size` are finished as they are.

Finished texts are compared by score(y) = log p(y) / |y|^alpha, where |y| counts END, too: its probability is in the
sum (`regard.decode.length_penalty` has GNMT's form, too). Without this (alpha = 0) short texts win, because every word more
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
from regard.decode.length_penalty import LengthPenalty, as_function
from regard.decode.protocol import Hypothesis, S, Step, check_max_lengths, make_hypothesis, nan_error
from regard.decode.rows import BoolArray, FloatArray, IntArray, compact, to_numpy
from regard.decode.topk import topk_logprobs as best_words
from regard.decode.trace import DROPPED, FINISHED, OPEN, Trace

NEG_INF = float("-inf")


def beam(
    step: Step[S],
    state: S,
    prompt: Tensor,
    *,
    beam_size: int,
    eos: int,
    max_lengths: Sequence[int],
    length_penalty: LengthPenalty = 1.0,
    n_best: int = 1,
    stop_after: int | None = None,
    suppressed: Tensor | None = None,
    trace: Trace | None = None,
) -> list[list[Hypothesis]]:
    """The `best` hypotheses of each sentence, best first; fewer where fewer were found.

    `first` (B, k) is what is read before anything is written: [begin], or [begin] and a prefix. At most `longest`
    tokens of each sentence are written, END included. Words in `never` (n) are not written; what the model thinks of
    the others stays as it is. Between equal candidates the one of the better beginning wins. A `trace` is told every
    candidate: the best 2 x size of each sentence at each step.
    """
    check_max_lengths(max_lengths, prompt.size(0))
    if beam_size < 1 or n_best < 1 or (stop_after is not None and stop_after < 1):
        raise RegardError(
            f"No beam of size {beam_size}, with the best {n_best} and {stop_after} finished texts.",
            fix="Use 1 or more for each.",
        )
    search = _Search(beam_size, eos, length_penalty, n_best, stop_after, max_lengths, trace)
    tokens = prompt
    for _ in range(max(max_lengths)):
        logits = step(tokens, state)[:, -1].float()  # (R, V)
        # A few numbers of each row decide everything else; numpy is quicker with small arrays than any device is.
        index = search.extend(*to_numpy(*best_words(logits, min(2 * beam_size, logits.size(1)), suppressed)))
        if not search.sentences.size:
            break
        if index is not None:
            state.reorder(torch.from_numpy(index))
        tokens = torch.from_numpy(search.last_tokens).to(prompt.device)  # (R, 1)
    return search.collect_hypotheses()


class _Candidates(NamedTuple):
    """Continuations of each sentence, best first: all (B, n)."""

    totals: FloatArray
    parents: IntArray  # which of the sentence's open beginnings they continue
    tokens: IntArray
    logprobs: FloatArray

    def select(self, rows: IntArray, columns: IntArray) -> "_Candidates":
        """Some of them."""
        index = (rows, columns)
        return _Candidates(self.totals[index], self.parents[index], self.tokens[index], self.logprobs[index])


class _FinishedStep(NamedTuple):
    """Texts that were finished at one step."""

    sentences: IntArray  # (n)
    tokens: IntArray  # (n, place)
    logprobs: FloatArray  # (n, place)
    trace_numbers: IntArray  # (n) in the trace


class _Search:
    """All that is known of the sentences that are not done: B of them with W open beginnings each, R = B W rows."""

    def __init__(
        self,
        beam_size: int,
        eos: int,
        length_penalty: LengthPenalty,
        n_best: int,
        stop_after: int | None,
        max_lengths: Sequence[int],
        trace: Trace | None,
    ) -> None:
        self.beam_size, self.eos, self.length_penalty, self.n_best, self.stop_after = (
            beam_size,
            eos,
            length_penalty,
            n_best,
            stop_after,
        )
        self.sentence_count, self.length = len(max_lengths), 0
        self.sentences = np.arange(self.sentence_count)  # (B)
        self.penalty_fn = as_function(length_penalty)
        self.max_lengths = np.array(max_lengths)  # (B)
        self.max_divisors = np.array(
            [self.penalty_fn(length) for length in max_lengths]
        )  # (B) what the longest text is divided by
        self.totals = np.zeros((self.sentence_count, 1))  # (B, W) log p; -inf for a place that is empty
        self.rank_to_row = np.zeros(
            (self.sentence_count, 1), np.int64
        )  # (B, W) which of the sentence's rows is the best, the second
        self.tokens = np.empty((self.sentence_count, 0), np.int64)  # (R, place)
        self.logprobs = np.empty((self.sentence_count, 0))  # (R, place)
        self.scores = np.full((self.sentence_count, n_best), NEG_INF)  # (B, best) of finished texts, the worst first
        self.finished_counts = np.zeros(self.sentence_count, np.int64)  # (B) how many texts are finished
        self.finished: list[_FinishedStep] = []
        self.trace = trace
        self.trace_numbers = np.zeros((self.sentence_count, 1), np.int64)  # (B, W) of the open beginnings in the trace
        if trace is not None:
            self.trace_numbers[:, 0] = trace.start(self.sentence_count)

    @property
    def last_tokens(self) -> IntArray:
        """What the model must read next, (R, 1)."""
        return np.ascontiguousarray(self.tokens[:, -1:])

    def extend(self, logprobs: FloatArray, tokens: IntArray) -> IntArray | None:
        """Write one token more, given the best n of each row (R, n).

        Comes back: how the model's rows must be reordered for it (None: they stay as they are).
        """
        self.length += 1
        candidates = self._continuations(logprobs, tokens)
        sentence_index = np.arange(len(self.sentences))[:, None]  # (B, 1)
        eos_mask = candidates.tokens == self.eos  # (B, n)
        last_step_mask = self.max_lengths <= self.length  # (B)
        finished_mask = (eos_mask | last_step_mask[:, None])[:, : self.beam_size] & (
            candidates.totals[:, : self.beam_size] > NEG_INF
        )  # (B, size)
        open_columns = eos_mask.argsort(axis=1, kind="stable")[
            :, : self.beam_size
        ]  # (B, W') those that do not end, in their order
        open_candidates = candidates.select(sentence_index, open_columns)  # (B, W')
        open_candidates.totals[open_candidates.tokens == self.eos] = NEG_INF  # where too few go on, a place stays empty
        trace_numbers = (
            None
            if self.trace is None
            else self._record(self.trace, candidates, finished_mask, open_columns, last_step_mask)
        )  # (B, n)
        if finished_mask.any():
            self._finish(candidates, finished_mask, trace_numbers)
        done_mask = last_step_mask | self._is_settled(open_candidates.totals[:, 0])  # (B)
        if self.trace is not None and trace_numbers is not None:
            self.trace.mark_beaten(trace_numbers[done_mask][trace_numbers[done_mask] >= 0].tolist())
            self.trace_numbers = trace_numbers[sentence_index, open_columns]  # (B, W')
        return self._advance(open_candidates, ~done_mask)

    def collect_hypotheses(self) -> list[list[Hypothesis]]:
        """The best finished texts of every sentence."""
        hypotheses_by_sentence: list[list[tuple[Hypothesis, int]]] = [[] for _ in range(self.sentence_count)]
        for finished_step in self.finished:
            for sentence, tokens, logprobs, trace_number in zip(
                *(array.tolist() for array in finished_step), strict=True
            ):
                hypotheses_by_sentence[sentence].append(
                    (make_hypothesis(tokens, logprobs, self.eos, self.length_penalty), trace_number)
                )
        if not all(hypotheses_by_sentence):
            raise nan_error()
        ranked = [
            sorted(hypotheses, key=lambda entry: -entry[0].score)[: self.n_best]
            for hypotheses in hypotheses_by_sentence
        ]
        if self.trace is not None:
            self.trace.winners = [[trace_number for _, trace_number in hypotheses] for hypotheses in ranked]
        return [[entry for entry, _ in hypotheses] for hypotheses in ranked]

    def _continuations(self, logprobs: FloatArray, tokens: IntArray) -> _Candidates:
        """The best 2 x size of each sentence; equal ones keep the order of their beginnings."""
        sentence_count, beam_width = self.totals.shape
        sentence_index, count = np.arange(sentence_count)[:, None], logprobs.shape[1]
        logprobs = logprobs.reshape(sentence_count, beam_width, count)[sentence_index, self.rank_to_row].reshape(
            sentence_count, -1
        )  # (B, W n)
        tokens = tokens.reshape(sentence_count, beam_width, count)[sentence_index, self.rank_to_row].reshape(
            sentence_count, -1
        )
        totals = self.totals[sentence_index, self.rank_to_row].repeat(count, axis=1) + logprobs  # (B, W n)
        columns = (-totals).argsort(axis=1, kind="stable")[:, : 2 * self.beam_size]  # (B, n)
        index = (sentence_index, columns)
        return _Candidates(
            totals[index], self.rank_to_row[sentence_index, columns // count], tokens[index], logprobs[index]
        )

    def _finish(self, candidates: _Candidates, finished_mask: BoolArray, trace_numbers: IntArray | None) -> None:
        """Keep the texts that have finished, over (B, size), and their scores."""
        sentences, columns = finished_mask.nonzero()  # (n), (n)
        selected = candidates.select(sentences, columns)
        rows = sentences * self.totals.shape[1] + selected.parents
        tokens = np.concatenate((self.tokens[rows], selected.tokens[:, None]), axis=1)  # (n, place)
        logprobs = np.concatenate((self.logprobs[rows], selected.logprobs[:, None]), axis=1)  # (n, place)
        finished_numbers = (
            np.zeros_like(sentences) if trace_numbers is None else trace_numbers[sentences, columns]
        )  # (n)
        self.finished.append(_FinishedStep(self.sentences[sentences], tokens, logprobs, finished_numbers))
        scores = np.where(finished_mask, candidates.totals[:, : self.beam_size] / self.penalty_fn(self.length), NEG_INF)
        self.scores = np.sort(np.concatenate((self.scores, scores), axis=1), axis=1)[:, -self.n_best :]
        self.finished_counts += finished_mask.sum(axis=1)

    def _is_settled(self, totals: FloatArray) -> BoolArray:
        """Of which sentences (B) nothing that is open can win any more, given their best open beginnings."""
        done_mask = self.scores[:, 0] >= totals / self.max_divisors  # free words up to the longest length
        return done_mask if self.stop_after is None else done_mask | (self.finished_counts >= self.stop_after)

    def _advance(self, open_candidates: _Candidates, keep_mask: BoolArray) -> IntArray | None:
        """Sentences that are done leave; the others have new open beginnings, in rows that move as little as can be."""
        sentence_count, beam_width = self.totals.shape
        kept_sentences = compact(keep_mask)  # (B')
        sentence_index = kept_sentences[:, None]
        rank_to_row = _assign_rows(
            open_candidates.parents[kept_sentences], beam_width
        )  # (B', W') the row of each new beginning
        row_to_rank = rank_to_row.argsort(axis=1)  # (B', W') which beginning each row holds
        selected = open_candidates.select(sentence_index, row_to_rank)  # (B', W')
        index = (sentence_index * beam_width + selected.parents).flatten()  # (R)
        self.sentences, self.max_lengths, self.max_divisors = (
            self.sentences[kept_sentences],
            self.max_lengths[kept_sentences],
            self.max_divisors[kept_sentences],
        )
        self.scores, self.finished_counts = self.scores[kept_sentences], self.finished_counts[kept_sentences]
        self.rank_to_row, self.totals = rank_to_row, selected.totals
        if self.trace is not None:
            self.trace_numbers = self.trace_numbers[sentence_index, row_to_rank]
        self.tokens = np.concatenate((self.tokens[index], selected.tokens.reshape(-1, 1)), axis=1)  # (R, place)
        self.logprobs = np.concatenate((self.logprobs[index], selected.logprobs.reshape(-1, 1)), axis=1)  # (R, place)
        is_identity = index.size == sentence_count * beam_width and bool((index == np.arange(index.size)).all())
        return None if is_identity else index

    def _record(
        self,
        trace: Trace,
        candidates: _Candidates,
        finished_mask: BoolArray,
        open_columns: IntArray,
        last_step_mask: BoolArray,
    ) -> IntArray:
        """Tell a trace of all candidates; their numbers in it (B, n) come back, -1 for what is no candidate."""
        trace.record_step(np.where(self.totals > NEG_INF, self.trace_numbers, -1).flatten())
        trace_numbers = np.full(candidates.tokens.shape, -1)
        for sentence, column in zip(*(candidates.totals > NEG_INF).nonzero(), strict=True):
            is_finished = column < self.beam_size and finished_mask[sentence, column]
            is_continued = not last_step_mask[sentence] and candidates.tokens[sentence, column] != self.eos
            status = FINISHED if is_finished else OPEN if is_continued and column in open_columns[sentence] else DROPPED
            parent = self.trace_numbers[sentence, candidates.parents[sentence, column]]
            logprob, token = candidates.logprobs[sentence, column], candidates.tokens[sentence, column]
            trace_numbers[sentence, column] = trace.add(
                int(parent), int(token), float(logprob), self.length_penalty, status
            )
        return trace_numbers


def _assign_rows(parents: IntArray, beam_width: int) -> IntArray:
    """In which row each new beginning goes on, given the rows of the old ones that they continue, (B, W).

    The first that continues a row stays in it, the others take the rows that nobody continues: so little is copied.

    >>> _assign_rows(np.array([[2, 2, 0, 2], [0, 1, 2, 3]]), 4).tolist()
    [[2, 1, 0, 3], [0, 1, 2, 3]]
    """
    if parents.shape[1] != beam_width:  # there were fewer before: nothing can stay
        return np.arange(parents.shape[1])[None].repeat(len(parents), axis=0)
    equal = parents[:, :, None] == parents[:, None, :]  # (B, W, W)
    is_duplicate = np.tril(equal, -1).any(axis=2)  # (B, W) an earlier one continues the same row
    is_free = ~(parents[:, None, :] == np.arange(beam_width)[None, :, None]).any(
        axis=2
    )  # (B, W) rows that nobody continues
    rows = parents.copy()
    rows[is_duplicate] = is_free.nonzero()[1]  # as many in every sentence, and in its order
    return rows
