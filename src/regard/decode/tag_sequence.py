"""The best sequence of entity tags that a tag scheme allows (Viterbi 1967).

A tagger predicts a separate distribution for every word, so the most probable tags may be inconsistent: in BIO,
I-PER continues an entity and cannot follow O or B-LOC. `TagScheme.decode` finds the sequence with the highest sum of
log-probabilities among those that the scheme allows.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

OUTSIDE = "O"
_MARKED = re.compile(r"([BIES])-(.+)", re.DOTALL)


@dataclass(frozen=True)
class TagScheme:
    """Which tag may follow which, by index."""

    starts: NDArray[np.bool_]
    """Whether a sentence may begin with a tag, (K)."""
    follows: NDArray[np.bool_]
    """Whether a tag (row) may be followed by another (column), (K, K)."""
    ends: NDArray[np.bool_]
    """Whether a sentence may end with a tag, (K)."""

    @classmethod
    def from_labels(cls, labels: Sequence[str]) -> "TagScheme | None":
        """Return the scheme of BIO or BIOES labels; None for other labels, which have no constraints.

        Of each type, I and E need a B: where a type has none (IOB1), I may begin an entity, and None is returned. A
        type without E may end with B or I, as in BIO.

        >>> TagScheme.from_labels(["O", "B-PER", "I-PER"]).follows.astype(int)
        array([[1, 1, 0],
               [1, 1, 1],
               [1, 1, 1]])
        >>> TagScheme.from_labels(["NOUN", "VERB"]) is None, TagScheme.from_labels(["O", "I-PER"]) is None
        (True, True)
        """
        marked = {label: match.groups() for label in labels if (match := _MARKED.fullmatch(label))}
        if OUTSIDE not in labels or len(marked) != len(labels) - 1 or not marked:
            return None
        kinds = set(marked.values())
        if any(mark in "IE" and ("B", kind) not in kinds for mark, kind in kinds):
            return None
        marks = [marked.get(label, (OUTSIDE, "")) for label in labels]
        opens = np.array([mark not in "IE" for mark, _ in marks])  # O, B and S need no open entity
        closes = np.array([mark not in "BI" or ("E", kind) not in kinds for mark, kind in marks])
        continues = np.array(
            [
                [mark in "BI" and next_mark in "IE" and kind == next_kind for next_mark, next_kind in marks]
                for mark, kind in marks
            ]
        )
        return cls(opens, continues | (closes[:, None] & opens), closes)

    def allows(self, tags: Sequence[int]) -> bool:
        """Whether a sequence of tags, by index, fits the scheme."""
        if not tags:
            return True
        fits = bool(self.starts[tags[0]] and self.ends[tags[-1]])
        return fits and all(self.follows[pair] for pair in pairwise(tags))

    def decode(self, logprobs: NDArray[np.floating[Any]]) -> list[int]:
        """Return the best allowed sequence for the log-probabilities of each word's tags, (words, K)."""
        if not len(logprobs):
            return []
        forbidden = np.where(self.follows, 0.0, -np.inf)  # (K, K)
        scores = np.where(self.starts, logprobs[0], -np.inf)  # (K): of the best sequence that ends with each tag
        pointers = []
        for row in logprobs[1:]:
            totals = scores[:, None] + forbidden  # (K, K)
            pointers.append(totals.argmax(axis=0))
            scores = totals.max(axis=0) + row
        tags = [int(np.where(self.ends, scores, -np.inf).argmax())]
        for pointer in reversed(pointers):
            tags.append(int(pointer[tags[-1]]))
        return tags[::-1]
