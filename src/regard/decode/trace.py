"""What a search considered, written down while it happens: plain data, to be drawn or stored.

    trace = Trace()
    beam(step, state, first, size=4, end=END, longest=[20], trace=trace)
    json.dumps(trace.plain())

Every candidate has a number, and names the candidate that it continues: the beginnings of the sentences come first,
number s for sentence s, and every lineage ends in one of them. Without a trace a search does none of this.

A search knows no attention. Whoever wants it recorded gives `look`, which is called after every step of the model and
tells what each row has just looked at, (R, ...): it is kept under the number of the candidate that the row had read.
"""

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.decode.length_penalty import LengthPenalty, as_function

OPEN, FINISHED, DROPPED, BEATEN = "open", "finished", "dropped", "beaten"
AttentionReader = Callable[[], NDArray[np.floating[Any]]]
IntArray = NDArray[np.int64]


@dataclass
class Candidate:
    """A text that a search has considered: its last token, and whose continuation it is."""

    number: int
    sentence: int
    length: int
    """How many tokens were written with this one; 0 for a beginning."""
    parent: int
    """The number of the candidate that it continues; its own for a beginning."""
    token: int
    """-1 for a beginning."""
    logprob: float
    """The token's log-probability."""
    total: float
    """The log-probability of all its tokens."""
    score: float
    """total / place^alpha, by which finished texts are compared."""
    status: str
    """open: it was continued. finished: END or the longest length. dropped: others were better. beaten: it was open
    when the sentence was done, because nothing could win any more or enough texts were finished."""


@dataclass
class Trace:
    """A search's notebook; `shown` is how many candidates of a step greedy search writes down (its choice is first)."""

    candidates_per_step: int = 5
    read_attention: AttentionReader | None = None
    candidates: list[Candidate] = field(default_factory=list)
    winners: list[list[int]] = field(default_factory=list)
    """For each sentence the numbers of what the search gave back, best first."""
    attention_rows: dict[int, NDArray[np.floating[Any]]] = field(default_factory=dict)
    """What was looked at by the row that had read a candidate, by its number."""

    def start(self, sentence_count: int) -> IntArray:
        """The beginnings of so many sentences; their numbers come back."""
        self.candidates = [
            Candidate(sentence, sentence, 0, sentence, -1, 0.0, 0.0, 0.0, OPEN) for sentence in range(sentence_count)
        ]
        self.winners, self.attention_rows = [[] for _ in range(sentence_count)], {}
        return np.arange(sentence_count)

    def record_step(self, numbers: IntArray) -> None:
        """The model has taken a step; `read` (R) are the candidates that its rows have just read, -1 for nobody's."""
        if self.read_attention is not None:
            rows = zip(numbers.tolist(), self.read_attention(), strict=True)
            self.attention_rows |= {number: row for number, row in rows if number >= 0}

    def add(self, parent: int, token: int, logprob: float, length_penalty: LengthPenalty, status: str) -> int:
        """One candidate more; its number comes back."""
        parent_candidate = self.candidates[parent]
        total, length = parent_candidate.total + logprob, parent_candidate.length + 1
        number = len(self.candidates)
        score = total / as_function(length_penalty)(length)
        self.candidates.append(
            Candidate(
                number, parent_candidate.sentence, length, parent, int(token), float(logprob), total, score, status
            )
        )
        return number

    def mark_beaten(self, numbers: Iterable[int]) -> None:
        """These were open, and their sentence is done."""
        for number in numbers:
            if self.candidates[number].status == OPEN:
                self.candidates[number].status = BEATEN

    def lineage(self, number: int) -> list[Candidate]:
        """A candidate and all before it, from the beginning on.

        >>> trace = Trace()
        >>> begun = trace.start(1)
        >>> cat = trace.add(trace.add(0, 7, -0.5, 1.0, OPEN), 9, -0.25, 1.0, FINISHED)
        >>> [one.token for one in trace.lineage(cat)], trace.candidates[cat].score
        ([-1, 7, 9], -0.375)
        """
        path = [self.candidates[number]]
        while path[-1].length:
            path.append(self.candidates[path[-1].parent])
        return path[::-1]

    def attention(self, number: int) -> NDArray[np.floating[Any]]:
        """What was looked at to write each token of a candidate, (place, ...): the rows of all that it continues."""
        return np.stack([self.attention_rows[candidate.number] for candidate in self.lineage(number)[:-1]])

    def to_dict(self) -> dict[str, Any]:
        """All of it in lists, numbers and words: JSON holds it."""
        attention_lists = {str(number): row.tolist() for number, row in self.attention_rows.items()}
        return {
            "candidates": [asdict(candidate) for candidate in self.candidates],
            "winners": self.winners,
            "attention": attention_lists,
        }
