"""Search traces: a record of every candidate that a search considered, as data that can be stored or plotted.

    trace = Trace()
    beam(step, state, prompt, beam_size=4, eos=EOS, max_lengths=[20], trace=trace)
    json.dumps(trace.to_dict())

Every candidate has a number and the number of its parent, the candidate that it extends. The roots come first: number s
is the empty hypothesis of sentence s. A search without a trace has no overhead.

A search sees logits only. To record attention as well, pass `read_attention`. The trace calls it after every step of
the model; it returns the attention of each row, (R, ...), which is stored under the candidate that the row has read.
"""

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from regard.decode.length_penalty import LengthPenalty, as_function
from regard.decode.topk import IntArray

OPEN, FINISHED, DROPPED, BEATEN = "open", "finished", "dropped", "beaten"
EndReason = Literal["eos", "max_new_tokens", "bound", "stop_after"]
AttentionReader = Callable[[], NDArray[np.floating[Any]]]


@dataclass
class TraceCandidate:
    """A hypothesis that a search considered: its last token and its parent."""

    number: int
    sentence: int
    length: int
    """Number of tokens, this one included; 0 for a root."""
    parent: int
    """The number of the candidate that it extends; its own number for a root."""
    token: int
    """Token id; -1 for a root."""
    logprob: float
    """The token's log-probability."""
    total: float
    """The log-probability of all tokens."""
    score: float
    """total / length ** length_penalty, by which finished hypotheses are compared."""
    status: str
    """open: extended further. finished: eos or the maximum length. dropped: not among the best. beaten: open when the
    search of its sentence stopped, because it could no longer win or `stop_after` hypotheses were finished."""


@dataclass
class Trace:
    """The record of one search."""

    candidates_per_step: int = 5
    """Number of candidates per step that greedy search records, its choice first; beam search records all."""
    read_attention: AttentionReader | None = None
    """Returns each row's attention in the model's last step, (R, ...); None: attention is not recorded."""
    candidates: list[TraceCandidate] = field(default_factory=list)
    winners: list[list[int]] = field(default_factory=list)
    """For each sentence the numbers of the hypotheses that the search returned, best first."""
    attention_rows: dict[int, NDArray[np.floating[Any]]] = field(default_factory=dict)
    """The attention in the step that read a candidate, by the candidate's number."""
    settings: dict[str, Any] = field(default_factory=dict)
    """The settings of the search: its name, beam_size, length_penalty, max_lengths, n_best, stop_after, exact."""
    ends: list[EndReason | None] = field(default_factory=list)
    """Why the search of each sentence ended. eos: greedy search generated it. max_new_tokens: the maximum length.
    bound: no open hypothesis could win within a few tokens. stop_after: this many hypotheses were finished."""

    def start(self, sentence_count: int, **settings: Any) -> IntArray:
        """Create the roots of the sentences and return their numbers; `settings` describe the search."""
        self.settings, self.ends = settings, [None] * sentence_count
        self.candidates = [
            TraceCandidate(sentence, sentence, 0, sentence, -1, 0.0, 0.0, 0.0, OPEN)
            for sentence in range(sentence_count)
        ]
        self.winners, self.attention_rows = [[] for _ in range(sentence_count)], {}
        return np.arange(sentence_count)

    def record_step(self, numbers: IntArray) -> None:
        """Store the attention of the model's last step.

        Args:
            numbers: The candidate that each row has just read, (R); -1 for a row without one.
        """
        if self.read_attention is not None:
            rows = zip(numbers.tolist(), self.read_attention(), strict=True)
            self.attention_rows |= {number: row for number, row in rows if number >= 0}

    def add(self, parent: int, token: int, logprob: float, length_penalty: LengthPenalty, status: str) -> int:
        """Add a candidate and return its number."""
        parent_candidate = self.candidates[parent]
        total, length = parent_candidate.total + logprob, parent_candidate.length + 1
        number = len(self.candidates)
        score = total / as_function(length_penalty)(length)
        self.candidates.append(
            TraceCandidate(
                number, parent_candidate.sentence, length, parent, int(token), float(logprob), total, score, status
            )
        )
        return number

    def mark_beaten(self, numbers: Iterable[int]) -> None:
        """Set the status of open candidates to "beaten"."""
        for number in numbers:
            if self.candidates[number].status == OPEN:
                self.candidates[number].status = BEATEN

    def lineage(self, number: int) -> list[TraceCandidate]:
        """Return a candidate and all its ancestors, the root first.

        >>> trace = Trace()
        >>> roots = trace.start(1)
        >>> number = trace.add(trace.add(0, 7, -0.5, 1.0, OPEN), 9, -0.25, 1.0, FINISHED)
        >>> [candidate.token for candidate in trace.lineage(number)], trace.candidates[number].score
        ([-1, 7, 9], -0.375)
        """
        path = [self.candidates[number]]
        while path[-1].length:
            path.append(self.candidates[path[-1].parent])
        return path[::-1]

    def attention(self, number: int) -> NDArray[np.floating[Any]]:
        """Return the attention from which each token of a candidate was predicted, (length, ...)."""
        return np.stack([self.attention_rows[candidate.number] for candidate in self.lineage(number)[:-1]])

    def to_dict(self) -> dict[str, Any]:
        """Return the trace as lists, numbers and strings, ready for JSON."""
        return {
            "candidates": [asdict(candidate) for candidate in self.candidates],
            "winners": self.winners,
            "settings": self.settings,
            "ends": self.ends,
            "attention": {str(number): row.tolist() for number, row in self.attention_rows.items()},
        }


@dataclass(frozen=True)
class SamplingTraceStep:
    """How one token of one row was drawn: the winner of an exponential race between the remaining tokens.

    Every token i draws a waiting time E_i, exponential with mean 1, and the largest p_i / E_i wins. This samples token
    i with probability p_i.
    """

    logprobs: NDArray[np.float32]  # (V) of the model, before any filter
    allowed: NDArray[np.float32]  # (V) without suppressed tokens, after the penalties of the history
    history: tuple[int, ...]  # the tokens before this one, prompt included
    tokens: NDArray[np.int64]  # (n) the tokens in the race
    probabilities: NDArray[np.float32]  # (n) after all filters
    waiting_times: NDArray[np.float32]  # (n) E; empty at temperature 0, which draws nothing
    token: int  # the token that won


@dataclass
class SamplingTrace:
    """The record of sampling: for each row of the prompt its steps."""

    rows: list[list[SamplingTraceStep]] = field(default_factory=list)
