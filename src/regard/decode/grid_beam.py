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
from regard.decode.phrases import ROOT, PhraseTrie
from regard.decode.protocol import Hypothesis, S, Step, check_max_lengths
from regard.decode.topk import topk

TokenLogprob = tuple[int, float]  # a token and its log-probability


@dataclass(frozen=True)
class _PhraseProgress:
    """How far a beginning is: the phrases it has, and its node in the trie of all."""

    completed: frozenset[int] = frozenset()
    node: int = ROOT


def grid_beam(
    step: Step[S],
    state: S,
    prompt: Tensor,
    *,
    required: Sequence[Sequence[Sequence[int]]],
    beam_size: int,
    eos: int,
    max_lengths: Sequence[int],
    length_penalty: LengthPenalty = 1.0,
    n_best: int = 1,
    suppressed: Tensor | None = None,
) -> list[list[Hypothesis]]:
    """The `best` hypotheses of each sentence with all its `required` phrases, best first.

    The other arguments are those of `regard.decode.beam`. At the longest length only texts count that have all phrases.
    """
    check_max_lengths(max_lengths, prompt.size(0))
    if len(required) != len(max_lengths) or beam_size < 1 or n_best < 1:
        raise RegardError(
            f"{len(required)} lists of phrases for {len(max_lengths)} sentences, size {beam_size}, best {n_best}.",
            fix="Give one list for each sentence, perhaps empty; size and best of 1 or more.",
        )
    grids = [
        _Grid(phrases, beam_size, eos, max_length, length_penalty, n_best, row)
        for row, (phrases, max_length) in enumerate(zip(required, max_lengths, strict=True))
    ]
    special_tokens = sorted({eos}.union(*(phrase for grid in grids for phrase in grid.trie.phrases)))
    tokens = prompt
    for length in range(1, max(max_lengths) + 1):
        logprobs = next_logprobs(step, state, tokens, suppressed)  # (R, V)
        candidate_tokens = _candidate_tokens(logprobs, special_tokens, beam_size)
        for grid in grids:
            grid.extend(candidate_tokens, length)
        open_hypotheses = [hypothesis for grid in grids for hypothesis in grid.open_hypotheses]
        if not open_hypotheses:
            break
        tokens, moved = advance(state, open_hypotheses, prompt.device)
        remaining = iter(moved)
        for grid in grids:
            grid.open_hypotheses = {next(remaining): progress for progress in grid.open_hypotheses.values()}
    return [grid.collect_hypotheses() for grid in grids]


def _candidate_tokens(logprobs: Tensor, special_tokens: list[int], beam_size: int) -> list[list[TokenLogprob]]:
    """The words of each row that can matter: the special ones, and enough others to fill a beam."""
    k = min(beam_size + len(special_tokens), logprobs.size(1))
    values, tokens = topk(logprobs, k)  # (R, n)
    special_index = torch.tensor(
        [token for token in special_tokens if 0 <= token < logprobs.size(1)], dtype=torch.long, device=logprobs.device
    )
    values = torch.cat((values, logprobs[:, special_index]), dim=1).double()
    tokens = torch.cat((tokens, special_index.expand(logprobs.size(0), -1)), dim=1)
    packed = torch.stack((tokens.double(), values), dim=2).tolist()  # the one wait for the device
    for row in packed:
        check_finite([value for _, value in row])
    return [list({int(token): value for token, value in row}.items()) for row in packed]


class _Grid:
    """The beams of one sentence."""

    def __init__(
        self,
        phrases: Sequence[Sequence[int]],
        beam_size: int,
        eos: int,
        max_length: int,
        length_penalty: LengthPenalty,
        n_best: int,
        row: int,
    ) -> None:
        self.trie = PhraseTrie(list(dict.fromkeys(tuple(phrase) for phrase in phrases)))
        self.all_phrases = frozenset(range(len(self.trie.phrases)))
        if any(eos in phrase for phrase in self.trie.phrases):
            raise RegardError("A required phrase holds END.", fix="Leave it out: texts end by themselves.")
        self.beam_size, self.eos, self.max_length = beam_size, eos, max_length
        self.finished = FinishedHypotheses(eos, max_length, length_penalty, n_best)
        self.open_hypotheses = {
            PartialHypothesis(row): _PhraseProgress()
        }  # in order: the fewest required tokens first, then the best

    def extend(self, candidate_tokens: list[list[TokenLogprob]], length: int) -> None:
        """Write one token more of every open beginning."""
        beams: dict[int, list[tuple[PartialHypothesis, _PhraseProgress]]] = {}
        for hypothesis, progress in self.open_hypotheses.items():
            for token, logprob in candidate_tokens[hypothesis.row]:
                if logprob == NEG_INF:
                    continue
                new_progress = self._advance_progress(progress, token)
                beams.setdefault(self._count_covered(new_progress), []).append(
                    (hypothesis.extend(token, logprob), new_progress)
                )
        self.open_hypotheses = {}
        for _, candidates in sorted(beams.items()):
            ranked = dict(sorted(candidates, key=lambda pair: -pair[0].total))
            is_complete = next(iter(ranked.values())).completed == self.all_phrases
            finished, open_hypotheses = split_finished(
                list(ranked), self.beam_size, self.eos, is_last=length >= self.max_length
            )
            if is_complete:
                self.finished.add(finished)
            self.open_hypotheses |= {partial: ranked[partial] for partial in open_hypotheses}
        if self.finished.is_settled(list(self.open_hypotheses)):
            self.open_hypotheses = {}

    def collect_hypotheses(self) -> list[Hypothesis]:
        """The best finished texts."""
        if not self.finished.hypotheses:
            raise RegardError(
                f"No text of up to {self.max_length} tokens with all of {self.trie.phrases} can be written.",
                fix="Give a larger `longest`, or require less.",
            )
        return self.finished.hypotheses

    def _advance_progress(self, progress: _PhraseProgress, token: int) -> _PhraseProgress:
        if not self.all_phrases:
            return progress
        node = self.trie.step(progress.node, token)
        return _PhraseProgress(progress.completed | self.trie.phrases_ending[node], node)

    def _count_covered(self, progress: _PhraseProgress) -> int:
        """How many required tokens are written."""
        completed_count = sum(len(self.trie.phrases[phrase_id]) for phrase_id in progress.completed)
        return completed_count + (
            self.trie.matched_length(progress.node, progress.completed) if progress.completed != self.all_phrases else 0
        )
