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

import math
from collections.abc import Iterator, Sequence
from itertools import chain
from operator import itemgetter

import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.decode.beam import LOOKAHEAD
from regard.decode.length_penalty import LengthPenalty
from regard.decode.partial import FinishedHypotheses, PartialHypothesis, advance, next_logprobs
from regard.decode.protocol import NEG_INF, Hypothesis, S, Step, check_max_lengths, nan_error
from regard.decode.requirements import Requirement, Requirements, WordEdges
from regard.decode.topk import topk

TokenLogprobs = list[tuple[int, float]]  # tokens and their log-probabilities
Candidate = tuple[float, int, int, float]  # log p, index of the hypothesis that it extends, token, its log p


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
            row,
        )
        for row, (requirements, max_new_tokens) in enumerate(zip(required, max_lengths, strict=True))
    ]
    tokens = prompt
    for length in range(1, max(max_lengths) + 1):
        logprobs = next_logprobs(step, state, tokens, suppress_tokens)  # (R, V)
        forced_tokens = [tokens for search in searches for tokens in search.list_forced_tokens()]  # of each row
        rows = _read_rows(logprobs, forced_tokens, beam_size)
        for search in searches:
            search.extend(rows, length)
        open_hypotheses = [hypothesis for search in searches for hypothesis in search.open_hypotheses]
        if not open_hypotheses:
            break
        tokens = advance(state, open_hypotheses, prompt.device)
    return [search.collect_hypotheses() for search in searches]


def _read_rows(
    logprobs: Tensor, forced_tokens: Sequence[Sequence[int]], beam_size: int
) -> Iterator[tuple[TokenLogprobs, TokenLogprobs]]:
    """Yield the likeliest tokens of each row, best first, and its forced tokens."""
    values, best_tokens = topk(logprobs, min(2 * beam_size, logprobs.size(1)))  # (R, n)
    pairs = [(row, token) for row, tokens in enumerate(forced_tokens) for token in tokens if token < logprobs.size(1)]
    index = torch.tensor(pairs, dtype=torch.long, device=logprobs.device).reshape(-1, 2)
    forced_values = logprobs[index[:, 0], index[:, 1]]
    # the only synchronization with the device
    packed = torch.cat((values.double().flatten(), best_tokens.double().flatten(), forced_values.double())).tolist()
    (count, width), forced = values.shape, dict(zip(pairs, packed[2 * values.numel() :], strict=True))
    for row, tokens in enumerate(forced_tokens):
        start = row * width
        if math.isnan(packed[start]):  # NaN is the first of all values, and log_softmax spreads it over the row
            raise nan_error()
        row_tokens = map(int, packed[(count * width) + start : (count * width) + start + width])
        best = list(zip(row_tokens, packed[start : start + width], strict=True))
        yield best, [(token, forced.get((row, token), NEG_INF)) for token in tokens]


class _SentenceSearch:
    """The beam of one sentence."""

    def __init__(self, requirements: Requirements, beam_size: int, finished: FinishedHypotheses, row: int) -> None:
        self.requirements, self.beam_size = requirements, beam_size
        self.slots = max(beam_size, requirements.bank_count)
        self.finished, self.incomplete, self.incomplete_bank = finished, finished.copy_empty(), 0
        self.open_hypotheses, self.states = [PartialHypothesis(row)], [requirements.start]

    def list_forced_tokens(self) -> list[tuple[int, ...]]:
        """Return the tokens of each open hypothesis that are always candidates."""
        return [self.requirements.forced_tokens[state] for state in self.states]

    def extend(self, rows: Iterator[tuple[TokenLogprobs, TokenLogprobs]], length: int) -> None:
        """Extend every open hypothesis by one token, given the next rows."""
        if not self.open_hypotheses:
            return
        is_last, parents = length >= self.finished.max_new_tokens, self.open_hypotheses
        banks: dict[int, list[tuple[Candidate, int]]] = {}
        for candidate in self._propose(rows):
            _, parent, token, _ = candidate
            state = self.requirements.advance(self.states[parent], parents[parent].tokens[-1:], token)
            banks.setdefault(self.requirements.banks[state], []).append((candidate, state))
        for bank, entries in banks.items():
            ended = [
                parents[parent].extend(token, logprob)
                for (_, parent, token, logprob), _ in entries[: self.beam_size]
                if is_last or token == self.finished.eos
            ]
            self._finish(bank, ended)
            banks[bank] = [entry for entry in entries if entry[0][2] != self.finished.eos]
        chosen = [] if is_last else _allocate(banks, self.slots, self.requirements.bank_count)
        hypotheses = [parents[parent].extend(token, logprob) for (_, parent, token, logprob), _ in chosen]
        self.open_hypotheses, self.states = hypotheses, [state for _, state in chosen]
        if self.finished.is_settled(self._list_promising(length), length + LOOKAHEAD):
            self.open_hypotheses, self.states = [], []

    def collect_hypotheses(self) -> list[Hypothesis]:
        """Return the best finished hypotheses; the ones with the most progress if none satisfies everything."""
        return self.finished.hypotheses or self.incomplete.hypotheses

    def _list_promising(self, length: int) -> list[PartialHypothesis]:
        """Return the open hypotheses that may still win: those that lack a phrase only for LOOKAHEAD more tokens.

        They have not paid for the phrase yet, so the bound would let them go on long after the best hypothesis ended.
        """
        if length < max((len(hypothesis.tokens) for hypothesis in self.finished.hypotheses), default=0) + LOOKAHEAD:
            return self.open_hypotheses
        last_bank = self.requirements.bank_count - 1
        return [
            hypothesis
            for hypothesis, state in zip(self.open_hypotheses, self.states, strict=True)
            if not self.finished.hypotheses or self.requirements.banks[state] == last_bank
        ]

    def _propose(self, rows: Iterator[tuple[TokenLogprobs, TokenLogprobs]]) -> list[Candidate]:
        """Return the candidates of the step, best first."""
        likeliest, others = list[Candidate](), list[Candidate]()
        for parent, (hypothesis, (best, forced)) in enumerate(zip(self.open_hypotheses, rows, strict=False)):
            total = hypothesis.total
            likeliest += [(total + logprob, parent, token, logprob) for token, logprob in best if logprob > NEG_INF]
            others += [
                (total + logprob, parent, token, logprob)
                for token, logprob in chain(best[:1], forced)
                if logprob > NEG_INF
            ]
        likeliest.sort(key=itemgetter(0), reverse=True)
        return sorted(dict.fromkeys(likeliest[: 2 * self.slots] + others), key=itemgetter(0), reverse=True)

    def _finish(self, bank: int, hypotheses: list[PartialHypothesis]) -> None:
        if bank == self.requirements.bank_count - 1:
            self.finished.add(hypotheses)
        elif hypotheses and bank >= self.incomplete_bank:
            if bank > self.incomplete_bank:
                self.incomplete, self.incomplete_bank = self.finished.copy_empty(), bank
            self.incomplete.add(hypotheses)


def _allocate(
    banks: dict[int, list[tuple[Candidate, int]]], slots: int, bank_count: int
) -> list[tuple[Candidate, int]]:
    """Divide the slots evenly among the banks (the last one also has the remainder); the best others fill the rest."""
    size, remainder = divmod(slots, bank_count)
    chosen, others = list[tuple[Candidate, int]](), list[tuple[Candidate, int]]()
    for bank, entries in banks.items():
        count = size + remainder * (bank == bank_count - 1)
        chosen += entries[:count]
        others += entries[count:]
    others.sort(key=lambda entry: -entry[0][0])
    return chosen + others[: slots - len(chosen)]
