"""Beam search with required phrases and dynamic beam allocation (Post and Vilar 2018).

Ordinary beam search drops a hypothesis that has just generated an unlikely phrase in favor of one that has not.
Candidates therefore compete only with candidates of equal progress (`regard.decode.requirements`): they form banks by
the number of required tokens generated so far, and the beam is divided evenly among the banks. Slots that a bank cannot
fill go to the best candidates of the others. Candidates are the likeliest continuations of the whole beam, the
likeliest one of each hypothesis, and the tokens that continue a required phrase. Only hypotheses with all phrases may
end. If none does within the maximum length, the hypothesis with the most progress is returned: the caller checks it.

The beam has `beam_size` slots, or one for each bank if that is more. The cost is that of a beam search of this size
(grid beam search needs `beam_size` slots for each bank: Hokamp and Liu 2017). Without phrases it is
`regard.decode.beam`.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.decode.beam import LOOKAHEAD
from regard.decode.length_penalty import LengthPenalty
from regard.decode.partial import FinishedHypotheses, PartialHypothesis, advance, next_logprobs
from regard.decode.protocol import NEG_INF, Hypothesis, S, Step, check_max_lengths, check_not_nan
from regard.decode.requirements import Progress, Requirement, Requirements, WordEdges
from regard.decode.topk import topk


class _Candidate(NamedTuple):
    total: float
    parent: int  # among the open hypotheses
    token: int
    logprob: float
    progress: Progress


def constrained_beam(
    step: Step[S],
    state: S,
    prompt: Tensor,
    *,
    required: Sequence[Sequence[Requirement]],
    beam_size: int,
    eos: int,
    max_lengths: Sequence[int],
    length_penalty: LengthPenalty = 1.0,
    n_best: int = 1,
    suppress_tokens: Tensor | None = None,
    edges: WordEdges | None = None,
) -> list[list[Hypothesis]]:
    """Return the `n_best` hypotheses of each sentence that satisfy its requirements, best first.

    See `regard.decode.protocol` for the arguments shared by all searches.

    Args:
        required: For each sentence its requirements, each a list of alternative phrases (token ids without eos).
        beam_size: Number of open hypotheses per sentence.
        edges: Word boundaries; None lets phrases be parts of words.

    Raises:
        RegardError: An argument is invalid, or the logits are NaN.
    """
    check_max_lengths(max_lengths, prompt.size(0))
    if len(required) != len(max_lengths) or beam_size < 1 or n_best < 1:
        raise RegardError(
            f"{len(required)} lists of required phrases for {len(max_lengths)} sentences, "
            f"with beam_size={beam_size} and n_best={n_best}.",
            hint="Pass one list per sentence (it may be empty), and a beam_size and n_best of at least 1.",
        )
    searches = [
        _SentenceSearch(
            Requirements(requirements, edges, eos),
            beam_size,
            FinishedHypotheses(eos, max_new_tokens, length_penalty, n_best),
            PartialHypothesis(row),
        )
        for row, (requirements, max_new_tokens) in enumerate(zip(required, max_lengths, strict=True))
    ]
    phrase_tokens = sorted({eos}.union(*(phrase for search in searches for phrase in search.requirements.trie.phrases)))
    tokens = prompt
    for length in range(1, max(max_lengths) + 1):
        logprobs = next_logprobs(step, state, tokens, suppress_tokens)  # (R, V)
        rows = _read_rows(logprobs, phrase_tokens, beam_size)
        for search in searches:
            search.extend(rows, length)
        open_hypotheses = [hypothesis for search in searches for hypothesis in search.open_hypotheses]
        if not open_hypotheses:
            break
        tokens = advance(state, open_hypotheses, prompt.device)
    return [search.collect_hypotheses() for search in searches]


class _Row(NamedTuple):
    """The log-probabilities of one row that the search needs."""

    best: list[tuple[int, float]]  # the likeliest tokens, best first
    phrase_tokens: dict[int, float]


def _read_rows(logprobs: Tensor, phrase_tokens: Sequence[int], beam_size: int) -> list[_Row]:
    values, tokens = topk(logprobs, min(2 * beam_size, logprobs.size(1)))  # (R, n)
    known = [token for token in phrase_tokens if 0 <= token < logprobs.size(1)]
    index = torch.tensor(known, dtype=torch.long, device=logprobs.device)
    # the only synchronization with the device
    packed = torch.cat((tokens.double(), values.double(), logprobs[:, index].double()), dim=1).tolist()
    count, rows = values.size(1), []
    for row in packed:
        check_not_nan(row[count:])
        best = [(int(token), value) for token, value in zip(row[:count], row[count : 2 * count], strict=True)]
        rows.append(_Row(best, dict(zip(known, row[2 * count :], strict=True))))
    return rows


@dataclass
class _SentenceSearch:
    """The beam of one sentence."""

    requirements: Requirements
    beam_size: int
    finished: FinishedHypotheses
    start: PartialHypothesis
    open_hypotheses: dict[PartialHypothesis, Progress] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.open_hypotheses = {self.start: Progress()}
        self.slots = max(self.beam_size, self.requirements.bank_count)
        self.incomplete, self.incomplete_bank = self.finished.copy_empty(), 0

    def extend(self, rows: Sequence[_Row], length: int) -> None:
        """Extend every open hypothesis by one token."""
        if not self.open_hypotheses:
            return
        parents, is_last = list(self.open_hypotheses.items()), length >= self.finished.max_new_tokens
        banks: dict[int, list[_Candidate]] = {}
        for candidate in self._propose(parents, rows):
            banks.setdefault(self.requirements.count_tokens(candidate.progress), []).append(candidate)
        for bank, candidates in banks.items():
            ended = [
                parents[candidate.parent][0].extend(candidate.token, candidate.logprob)
                for candidate in candidates[: self.beam_size]
                if is_last or candidate.token == self.finished.eos
            ]
            self._finish(bank, ended)
            banks[bank] = [candidate for candidate in candidates if candidate.token != self.finished.eos]
        chosen = [] if is_last else _allocate(banks, self.slots, self.requirements.bank_count)
        self.open_hypotheses = {
            parents[candidate.parent][0].extend(candidate.token, candidate.logprob): candidate.progress
            for candidate in chosen
        }
        if self.finished.is_settled(list(self.open_hypotheses), length + LOOKAHEAD):
            self.open_hypotheses = {}

    def collect_hypotheses(self) -> list[Hypothesis]:
        """Return the best finished hypotheses; the ones with the most progress if none satisfies everything."""
        return self.finished.hypotheses or self.incomplete.hypotheses

    def _propose(self, parents: Sequence[tuple[PartialHypothesis, Progress]], rows: Sequence[_Row]) -> list[_Candidate]:
        """Return the candidates of the step, best first."""
        likeliest = heapq.nlargest(
            2 * self.slots,
            (
                (hypothesis.total + logprob, -number, token, logprob)
                for number, (hypothesis, _) in enumerate(parents)
                for token, logprob in rows[hypothesis.row].best
            ),
        )
        proposals = {(-number, token): logprob for _, number, token, logprob in likeliest}
        for number, (hypothesis, progress) in enumerate(parents):
            row = rows[hypothesis.row]
            token, logprob = row.best[0]
            proposals.setdefault((number, token), logprob)
            for token in {self.finished.eos, *self.requirements.continuing_tokens(progress)}:
                proposals.setdefault((number, token), row.phrase_tokens.get(token, NEG_INF))
        candidates = []
        for (number, token), logprob in proposals.items():
            if logprob > NEG_INF:
                hypothesis, progress = parents[number]
                last_token = hypothesis.tokens[-1] if hypothesis.tokens else None
                new_progress = self.requirements.advance(progress, last_token, token)
                candidates.append(_Candidate(hypothesis.total + logprob, number, token, logprob, new_progress))
        return sorted(candidates, key=lambda candidate: -candidate.total)

    def _finish(self, bank: int, hypotheses: list[PartialHypothesis]) -> None:
        if bank == self.requirements.bank_count - 1:
            self.finished.add(hypotheses)
        elif hypotheses and bank >= self.incomplete_bank:
            if bank > self.incomplete_bank:
                self.incomplete, self.incomplete_bank = self.finished.copy_empty(), bank
            self.incomplete.add(hypotheses)


def _allocate(banks: dict[int, list[_Candidate]], slots: int, bank_count: int) -> list[_Candidate]:
    """Divide the slots evenly among the banks (the last one also has the remainder); the best others fill the rest."""
    size, remainder = divmod(slots, bank_count)
    chosen, others = list[_Candidate](), list[_Candidate]()
    for bank, candidates in banks.items():
        count = size + remainder * (bank == bank_count - 1)
        chosen += candidates[:count]
        others += candidates[count:]
    return chosen + heapq.nlargest(slots - len(chosen), others, key=lambda candidate: candidate.total)
