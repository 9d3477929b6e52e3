"""Grid beam search: beam search with required phrases (Hokamp and Liu 2017).

Ordinary beam search would drop a hypothesis that has just generated an unlikely phrase in favor of one that has not.
Hypotheses therefore compete only with hypotheses of equal progress: there is one beam of `beam_size` hypotheses for
every number c of required tokens generated so far. Candidates are the likeliest tokens, and always eos and the tokens
of the phrases. Only hypotheses with all phrases may end. Otherwise it works like `regard.decode.beam`; without phrases
it is beam search.

An incomplete phrase counts only while it is at the end of the hypothesis: an interrupted phrase must start over. The
model may also generate a phrase without being forced, and phrases may overlap.

Limits: C required tokens need C + 1 beams, so the search costs C + 1 times as much. Phrases are token sequences: they
are not inflected, and a phrase may appear in addition to the word it should replace. If the maximum length is close to
C, hypotheses contain little else.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.decode.length_penalty import LengthPenalty
from regard.decode.partial import FinishedHypotheses, PartialHypothesis, advance, next_logprobs, split_finished
from regard.decode.phrases import ROOT, PhraseTrie
from regard.decode.protocol import NEG_INF, Hypothesis, S, Step, check_max_lengths, check_not_nan
from regard.decode.topk import topk

TokenLogprob = tuple[int, float]  # a token and its log-probability


@dataclass(frozen=True)
class _PhraseProgress:
    """The progress of a hypothesis: its completed phrases, and its node in the trie of all phrases."""

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
    suppress_tokens: Tensor | None = None,
) -> list[list[Hypothesis]]:
    """Return the `n_best` hypotheses of each sentence that contain all its `required` phrases, best first.

    See `regard.decode.protocol` for the arguments shared by all searches.

    Args:
        required: For each sentence its phrases, each a sequence of token ids without eos; the list may be empty.
        beam_size: Number of open hypotheses per sentence and number of required tokens generated.

    Raises:
        RegardError: An argument is invalid, no hypothesis within the maximum length has all phrases, or the logits
            are NaN.
    """
    check_max_lengths(max_lengths, prompt.size(0))
    if len(required) != len(max_lengths) or beam_size < 1 or n_best < 1:
        raise RegardError(
            f"{len(required)} lists of required phrases for {len(max_lengths)} sentences, "
            f"with beam_size={beam_size} and n_best={n_best}.",
            hint="Pass one list per sentence (it may be empty), and a beam_size and n_best of at least 1.",
        )
    grids = [
        _Grid(phrases, beam_size, eos, max_new_tokens, length_penalty, n_best, row)
        for row, (phrases, max_new_tokens) in enumerate(zip(required, max_lengths, strict=True))
    ]
    mandatory_tokens = sorted({eos}.union(*(phrase for grid in grids for phrase in grid.trie.phrases)))
    tokens = prompt
    for length in range(1, max(max_lengths) + 1):
        logprobs = next_logprobs(step, state, tokens, suppress_tokens)  # (R, V)
        candidate_tokens = _candidate_tokens(logprobs, mandatory_tokens, beam_size)
        for grid in grids:
            grid.extend(candidate_tokens, length)
        open_hypotheses = [hypothesis for grid in grids for hypothesis in grid.open_hypotheses]
        if not open_hypotheses:
            break
        tokens = advance(state, open_hypotheses, prompt.device)
    return [grid.collect_hypotheses() for grid in grids]


def _candidate_tokens(logprobs: Tensor, mandatory_tokens: list[int], beam_size: int) -> list[list[TokenLogprob]]:
    """Return the tokens of each row that can enter a beam: `mandatory_tokens`, and enough others to fill it."""
    k = min(beam_size + len(mandatory_tokens), logprobs.size(1))
    values, tokens = topk(logprobs, k)  # (R, n)
    mandatory_index = torch.tensor(
        [token for token in mandatory_tokens if 0 <= token < logprobs.size(1)], dtype=torch.long, device=logprobs.device
    )
    values = torch.cat((values, logprobs[:, mandatory_index]), dim=1).double()
    tokens = torch.cat((tokens, mandatory_index.expand(logprobs.size(0), -1)), dim=1)
    packed = torch.stack((tokens.double(), values), dim=2).tolist()  # the only synchronization with the device
    check_not_nan(value for row in packed for _, value in row)
    return [list({int(token): value for token, value in row}.items()) for row in packed]


class _Grid:
    """The beams of one sentence."""

    def __init__(
        self,
        phrases: Sequence[Sequence[int]],
        beam_size: int,
        eos: int,
        max_new_tokens: int,
        length_penalty: LengthPenalty,
        n_best: int,
        row: int,
    ) -> None:
        self.trie = PhraseTrie(list(dict.fromkeys(tuple(phrase) for phrase in phrases)))
        self.all_phrases = frozenset(range(len(self.trie.phrases)))
        if any(eos in phrase for phrase in self.trie.phrases):
            raise RegardError("A required phrase contains eos.", hint="Remove it: the search ends hypotheses itself.")
        self.beam_size, self.eos, self.max_new_tokens = beam_size, eos, max_new_tokens
        self.finished = FinishedHypotheses(eos, max_new_tokens, length_penalty, n_best)
        # sorted by the number of required tokens generated, then best first
        self.open_hypotheses = {PartialHypothesis(row): _PhraseProgress()}

    def extend(self, candidate_tokens: list[list[TokenLogprob]], length: int) -> None:
        """Extend every open hypothesis by one token."""
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
                list(ranked), self.beam_size, self.eos, is_last=length >= self.max_new_tokens
            )
            if is_complete:
                self.finished.add(finished)
            self.open_hypotheses |= {partial: ranked[partial] for partial in open_hypotheses}
        if self.finished.is_settled(list(self.open_hypotheses)):
            self.open_hypotheses = {}

    def collect_hypotheses(self) -> list[Hypothesis]:
        """Return the best finished hypotheses."""
        if not self.finished.hypotheses:
            raise RegardError(
                f"No hypothesis of up to {self.max_new_tokens} tokens contains all phrases {self.trie.phrases}.",
                hint="Use larger max_lengths, or require fewer phrases.",
            )
        return self.finished.hypotheses

    def _advance_progress(self, progress: _PhraseProgress, token: int) -> _PhraseProgress:
        if not self.all_phrases:
            return progress
        node = self.trie.step(progress.node, token)
        return _PhraseProgress(progress.completed | self.trie.phrases_ending[node], node)

    def _count_covered(self, progress: _PhraseProgress) -> int:
        """Count the required tokens that are generated."""
        completed_count = sum(len(self.trie.phrases[phrase_id]) for phrase_id in progress.completed)
        return completed_count + (
            self.trie.matched_length(progress.node, progress.completed) if progress.completed != self.all_phrases else 0
        )
