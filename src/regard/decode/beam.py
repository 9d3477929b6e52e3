"""Beam search: extend the best few hypotheses of each sentence at every step.

At every step the `beam_size` open hypotheses of a sentence have beam_size x V continuations, the candidates. A
candidate that ends with eos is finished if it is among the best `beam_size` candidates; otherwise it is dropped. The
best `beam_size` candidates without eos stay open. (So it is enough to rank the best 2 x beam_size candidates.) At the
maximum length the best `beam_size` candidates are finished, with or without eos.

Finished hypotheses are compared by score(y) = log p(y) / |y|^alpha, where alpha is the length penalty. |y| includes
eos, whose probability is in the sum (`regard.decode.length_penalty` also has GNMT's form). Without a penalty (alpha =
0) short sequences win, because every token lowers the probability. The open hypotheses of a sentence have the same
length, so they are ranked by log p.

The search of a sentence always stops at a maximum length T. With `stop_after` it also stops when n hypotheses are
finished, which may miss a better one (the rule in CTranslate2). There is also a bound. Log-probabilities are
never above 0, so a hypothesis with log p = s that ends at length L or before scores at most s / L^alpha. If that is not
above the score of the worst hypothesis in the n-best list, no open hypothesis that ends by L can enter the list.

    exact     L = T. The bound is proven: stopping never changes the result.
    default   L = t + LOOKAHEAD, where t is the current length. The bound only covers hypotheses that end within the
              next LOOKAHEAD tokens. Later ones rarely win, because every token lowers the probability;
              docs/reference/decoding.md counts the results that change and the steps that this saves.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.decode.length_penalty import LengthPenalty, as_function, describe_penalty
from regard.decode.protocol import NEG_INF, Hypothesis, S, Step, check_max_lengths, make_hypothesis, nan_error
from regard.decode.topk import BoolArray, FloatArray, IntArray, compact, to_numpy, topk_logprobs
from regard.decode.trace import DROPPED, FINISHED, OPEN, EndReason, Trace

LOOKAHEAD = 3  # tokens that an open hypothesis may add at no cost in the bound; Hugging Face's default is 0


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
    exact: bool = False,
    suppress_tokens: Tensor | None = None,
    trace: Trace | None = None,
) -> list[list[Hypothesis]]:
    """Return the `n_best` hypotheses of each sentence, best first; fewer where fewer were found.

    Ties go to the candidate that extends the better hypothesis. See `regard.decode.protocol` for the arguments shared
    by all searches.

    Args:
        beam_size: Number of open hypotheses per sentence.
        n_best: Number of hypotheses to return per sentence.
        stop_after: Stop a sentence when this number of hypotheses is finished, or by the exact bound.
        exact: Search until no open hypothesis of any length can enter the n-best list.
        trace: Records every candidate: the best 2 x beam_size of each sentence at each step.
    """
    check_max_lengths(max_lengths, prompt.size(0))
    if beam_size < 1 or n_best < 1 or (stop_after is not None and stop_after < 1):
        raise RegardError(
            "beam_size, n_best and stop_after must be at least 1, "
            f"got beam_size={beam_size}, n_best={n_best}, stop_after={stop_after}.",
            hint="Use 1 or more for each.",
        )
    search = _BeamState(beam_size, eos, length_penalty, n_best, stop_after, exact, max_lengths, trace)
    tokens = prompt
    for _ in range(max(max_lengths)):
        logits = step(tokens, state)[:, -1].float()  # (R, V)
        # Only a few numbers per row are left; on arrays this small numpy is faster than any device.
        index = search.extend(*to_numpy(*topk_logprobs(logits, min(2 * beam_size, logits.size(1)), suppress_tokens)))
        if not search.sentences.size:
            break
        if index is not None:
            state.reorder(torch.from_numpy(index))
        tokens = torch.from_numpy(search.last_tokens).to(prompt.device)  # (R, 1)
    return search.collect_hypotheses()


class _Candidates(NamedTuple):
    """Continuations of each sentence, best first: all (B, n)."""

    totals: FloatArray
    parents: IntArray  # which of the sentence's open hypotheses they extend
    tokens: IntArray
    logprobs: FloatArray

    def select(self, rows: IntArray, columns: IntArray) -> "_Candidates":
        """Return the candidates at these indices."""
        index = (rows, columns)
        return _Candidates(self.totals[index], self.parents[index], self.tokens[index], self.logprobs[index])


class _FinishedStep(NamedTuple):
    """The hypotheses that one step finished."""

    sentences: IntArray  # (n)
    tokens: IntArray  # (n, length)
    logprobs: FloatArray  # (n, length)
    trace_numbers: IntArray  # (n) in the trace


class _BeamState:
    """The unfinished sentences: B of them with W open hypotheses each, R = B W rows."""

    def __init__(
        self,
        beam_size: int,
        eos: int,
        length_penalty: LengthPenalty,
        n_best: int,
        stop_after: int | None,
        exact: bool,
        max_lengths: Sequence[int],
        trace: Trace | None,
    ) -> None:
        self.beam_size, self.n_best, self.stop_after = beam_size, n_best, stop_after
        # With `stop_after` the bound must not stop the search earlier, to match other tools with this rule.
        self.exact = exact or stop_after is not None
        self.eos, self.length_penalty = eos, length_penalty
        self.sentence_count, self.length = len(max_lengths), 0
        self.sentences = np.arange(self.sentence_count)  # (B)
        self.penalty_fn = as_function(length_penalty)
        self.max_lengths = np.array(max_lengths)  # (B)
        self.divisors = np.array(
            [self.penalty_fn(length) for length in range(1, max(max_lengths) + 1)]
        )  # (T) by length
        self.totals = np.zeros((self.sentence_count, 1))  # (B, W) log p; -inf where there is no hypothesis
        # (B, W) the row of the sentence that holds the best hypothesis, the second best, ...
        self.rank_to_row = np.zeros((self.sentence_count, 1), np.int64)
        self.tokens = np.empty((self.sentence_count, 0), np.int64)  # (R, length)
        self.logprobs = np.empty((self.sentence_count, 0))  # (R, length)
        self.scores = np.full((self.sentence_count, n_best), NEG_INF)  # (B, n_best) finished, worst first
        self.finished_counts = np.zeros(self.sentence_count, np.int64)  # (B)
        self.finished: list[_FinishedStep] = []
        self.trace = trace
        self.trace_numbers = np.zeros((self.sentence_count, 1), np.int64)  # (B, W) of the open hypotheses in the trace
        if trace is not None:
            self.trace_numbers[:, 0] = trace.start(
                self.sentence_count,
                search="beam",
                beam_size=beam_size,
                length_penalty=describe_penalty(length_penalty),
                n_best=n_best,
                stop_after=stop_after,
                exact=exact,
                max_lengths=list(max_lengths),
            )

    @property
    def last_tokens(self) -> IntArray:
        """The tokens that the model reads next, (R, 1)."""
        return np.ascontiguousarray(self.tokens[:, -1:])

    def extend(self, logprobs: FloatArray, tokens: IntArray) -> IntArray | None:
        """Extend all hypotheses by one token, given the best n tokens of each row (R, n).

        Returns:
            The index to reorder the model's rows by, (R); None if they do not change.
        """
        self.length += 1
        candidates = self._continuations(logprobs, tokens)
        sentence_index = np.arange(len(self.sentences))[:, None]  # (B, 1)
        eos_mask = candidates.tokens == self.eos  # (B, n)
        last_step_mask = self.max_lengths <= self.length  # (B)
        finished_mask = (eos_mask | last_step_mask[:, None])[:, : self.beam_size] & (
            candidates.totals[:, : self.beam_size] > NEG_INF
        )  # (B, beam_size)
        # (B, W') the candidates without eos, in their order
        open_columns = eos_mask.argsort(axis=1, kind="stable")[:, : self.beam_size]
        open_candidates = candidates.select(sentence_index, open_columns)  # (B, W')
        open_candidates.totals[open_candidates.tokens == self.eos] = NEG_INF  # too few candidates: an empty slot
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
            self._record_ends(self.trace, done_mask, last_step_mask, open_candidates.totals[:, 0])
            self.trace_numbers = trace_numbers[sentence_index, open_columns]  # (B, W')
        return self._advance(open_candidates, ~done_mask)

    def collect_hypotheses(self) -> list[list[Hypothesis]]:
        """Return the best finished hypotheses of every sentence."""
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
        """Return the best 2 x beam_size candidates of each sentence; equal ones keep the order of their parents."""
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
        """Store the finished hypotheses, given by a mask (B, beam_size), and their scores."""
        sentences, columns = finished_mask.nonzero()  # (n), (n)
        selected = candidates.select(sentences, columns)
        rows = sentences * self.totals.shape[1] + selected.parents
        tokens = np.concatenate((self.tokens[rows], selected.tokens[:, None]), axis=1)  # (n, length)
        logprobs = np.concatenate((self.logprobs[rows], selected.logprobs[:, None]), axis=1)  # (n, length)
        finished_numbers = (
            np.zeros_like(sentences) if trace_numbers is None else trace_numbers[sentences, columns]
        )  # (n)
        self.finished.append(_FinishedStep(self.sentences[sentences], tokens, logprobs, finished_numbers))
        scores = np.where(finished_mask, candidates.totals[:, : self.beam_size] / self.penalty_fn(self.length), NEG_INF)
        self.scores = np.sort(np.concatenate((self.scores, scores), axis=1), axis=1)[:, -self.n_best :]
        self.finished_counts += finished_mask.sum(axis=1)

    def _is_settled(self, totals: FloatArray) -> BoolArray:
        """Return the sentences (B) whose search may stop, given log p of their best open hypotheses (B)."""
        done_mask = self._is_bounded(totals)
        return done_mask if self.stop_after is None else done_mask | (self.finished_counts >= self.stop_after)

    def _is_bounded(self, totals: FloatArray) -> BoolArray:
        """Return the sentences (B) that no open hypothesis can improve: the bound of the module docstring."""
        lengths = self.max_lengths if self.exact else np.minimum(self.max_lengths, self.length + LOOKAHEAD)  # (B)
        return self.scores[:, 0] >= totals / self.divisors[lengths - 1]

    def _record_ends(self, trace: Trace, done_mask: BoolArray, last_step_mask: BoolArray, totals: FloatArray) -> None:
        """Record why the search of each sentence ended."""
        bounded_mask = self._is_bounded(totals)
        for row in done_mask.nonzero()[0].tolist():
            reason: EndReason = "stop_after"
            if last_step_mask[row]:
                reason = "max_new_tokens"
            elif bounded_mask[row]:
                reason = "bound"
            trace.ends[int(self.sentences[row])] = reason

    def _advance(self, open_candidates: _Candidates, keep_mask: BoolArray) -> IntArray | None:
        """Drop finished sentences and assign the new hypotheses of the others to rows, moving as few as possible."""
        sentence_count, beam_width = self.totals.shape
        kept_sentences = compact(keep_mask)  # (B')
        sentence_index = kept_sentences[:, None]
        rank_to_row = _assign_rows(open_candidates.parents[kept_sentences], beam_width)  # (B', W') of each hypothesis
        row_to_rank = rank_to_row.argsort(axis=1)  # (B', W') the hypothesis of each row
        selected = open_candidates.select(sentence_index, row_to_rank)  # (B', W')
        index = (sentence_index * beam_width + selected.parents).flatten()  # (R)
        self.sentences, self.max_lengths = self.sentences[kept_sentences], self.max_lengths[kept_sentences]
        self.scores, self.finished_counts = self.scores[kept_sentences], self.finished_counts[kept_sentences]
        self.rank_to_row, self.totals = rank_to_row, selected.totals
        if self.trace is not None:
            self.trace_numbers = self.trace_numbers[sentence_index, row_to_rank]
        self.tokens = np.concatenate((self.tokens[index], selected.tokens.reshape(-1, 1)), axis=1)  # (R, length)
        self.logprobs = np.concatenate((self.logprobs[index], selected.logprobs.reshape(-1, 1)), axis=1)  # (R, length)
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
        """Add all candidates to a trace and return their numbers in it, (B, n); -1 for impossible ones."""
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
    """Return the row of each new hypothesis, given the rows of the hypotheses that they extend, (B, W).

    The first hypothesis that extends a row stays in it. The others take unused rows, so few rows are copied.

    >>> _assign_rows(np.array([[2, 2, 0, 2], [0, 1, 2, 3]]), 4).tolist()
    [[2, 1, 0, 3], [0, 1, 2, 3]]
    """
    if parents.shape[1] != beam_width:  # the first steps: the beam grows, so that every row is new
        return np.arange(parents.shape[1])[None].repeat(len(parents), axis=0)
    equal = parents[:, :, None] == parents[:, None, :]  # (B, W, W)
    is_duplicate = np.tril(equal, -1).any(axis=2)  # (B, W) an earlier hypothesis extends the same row
    is_extended = (parents[:, None, :] == np.arange(beam_width)[None, :, None]).any(axis=2)  # (B, W)
    rows = parents.copy()
    rows[is_duplicate] = (~is_extended).nonzero()[1]  # every sentence has as many free rows as duplicates
    return rows
