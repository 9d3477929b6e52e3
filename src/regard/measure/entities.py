"""Entities in tag sequences (BIO, BIOES), and their precision, recall and F1, equal to seqeval's.

An entity is correct if its type and boundaries are correct. Invalid sequences are handled as in seqeval and conlleval:
I-PER after O or another type starts an entity.
"""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from regard.base.errors import RegardError
from regard.measure.classification import LabelScore

_SCHEME = re.compile(r"[BIES]-.+")


class Entity(NamedTuple):
    """A span of words."""

    kind: str
    first: int
    last: int
    """Position of its last word."""


@dataclass(frozen=True)
class EntityCounts:
    """Numbers of entities: correct, predicted and expected."""

    correct: int
    predicted: int
    expected: int

    @property
    def precision(self) -> float:
        """Fraction of predicted entities that are correct, from 0 to 1."""
        return self.correct / self.predicted if self.predicted else 0.0

    @property
    def recall(self) -> float:
        """Fraction of expected entities that were found, from 0 to 1."""
        return self.correct / self.expected if self.expected else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall, from 0 to 1."""
        return f1_from_counts(self.correct, self.predicted, self.expected)


def f1_from_counts(correct: float, predicted: float, expected: float) -> float:
    """Compute F1 from counts; 0 if there are none."""
    return 2 * correct / (predicted + expected) if predicted + expected else 0.0


def has_entities(labels: Collection[str]) -> bool:
    """Whether labels mark entities: all are O or B-type, I-type, E-type, S-type, and some are not O.

    >>> has_entities(["O", "B-person", "I-person"]), has_entities(["NOUN", "O"]), has_entities(["O"])
    (True, False, False)
    """
    marked = [label for label in labels if label != "O"]
    return bool(marked) and all(_SCHEME.fullmatch(label) for label in marked)


def find_entities(tags: Sequence[str]) -> list[Entity]:
    """Find the entities of one sentence.

    >>> find_entities(["B-PER", "I-PER", "O", "I-LOC", "B-LOC"])
    [Entity(kind='PER', first=0, last=1), Entity(kind='LOC', first=3, last=3), Entity(kind='LOC', first=4, last=4)]
    """
    entities: list[Entity] = []
    kind, first = "", None  # of the entity that is open
    previous = "O"
    for position, tag in enumerate([*tags, "O"]):
        mark, tag_kind = tag[:1], tag[1:].split("-", 1)[-1] or "_"
        is_inside = mark in ("I", "E") and tag_kind == kind and previous in ("B", "I")
        if first is not None and not is_inside:
            entities.append(Entity(kind, first, position - 1))
            first = None
        if first is None and mark in ("B", "I", "E", "S"):
            kind, first = tag_kind, position
        previous = mark
    return entities


def count_entities(predicted: Sequence[Sequence[str]], expected: Sequence[Sequence[str]]) -> EntityCounts:
    """Count the entities of all sentences (micro average).

    >>> count_entities([["B-PER", "O"]], [["B-PER", "B-LOC"]]).f1
    0.6666666666666666
    """
    counts = [count_sentence(*pair) for pair in _pair_sentences(predicted, expected)]
    return EntityCounts(*(sum(column) for column in zip(*counts, strict=True)))


def count_sentence(predicted: Sequence[str], expected: Sequence[str]) -> tuple[int, int, int]:
    """Return the numbers of correct, predicted and expected entities of one sentence."""
    left, right = set(find_entities(predicted)), set(find_entities(expected))
    return len(left & right), len(left), len(right)


def score_entity_kinds(predicted: Sequence[Sequence[str]], expected: Sequence[Sequence[str]]) -> list[LabelScore]:
    """Score each entity type separately."""
    correct: Counter[str] = Counter()
    predicted_counts: Counter[str] = Counter()
    expected_counts: Counter[str] = Counter()
    for left, right in _pair_sentences(predicted, expected):
        predicted_entities, expected_entities = set(find_entities(left)), set(find_entities(right))
        predicted_counts.update(entity.kind for entity in predicted_entities)
        expected_counts.update(entity.kind for entity in expected_entities)
        correct.update(entity.kind for entity in predicted_entities & expected_entities)
    scores = []
    for kind in sorted(predicted_counts.keys() | expected_counts.keys()):
        counts = EntityCounts(correct[kind], predicted_counts[kind], expected_counts[kind])
        percents = (100 * counts.precision, 100 * counts.recall, 100 * counts.f1)
        scores.append(LabelScore(kind, *percents, counts.expected, counts.predicted))
    return scores


def _pair_sentences(
    predicted: Sequence[Sequence[str]], expected: Sequence[Sequence[str]]
) -> list[tuple[Sequence[str], Sequence[str]]]:
    lengths = [[len(tags) for tags in side] for side in (predicted, expected)]
    if lengths[0] != lengths[1] or not expected:
        raise RegardError(
            "The predicted and the expected tags differ in number, or there are none.",
            hint="Pass one predicted tag per word.",
        )
    return list(zip(predicted, expected, strict=True))
