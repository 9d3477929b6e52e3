"""All scores of labeled texts with their 95% intervals, and the comparison of two systems, by bootstrap resampling.

A labeled text is a sequence of labels: one for a classified text, one per word for a tagged one. Whole texts are
resampled, because the tags of one sentence depend on each other.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.base.errors import RegardError
from regard.measure.bootstrap import Comparison, compare_samples, confidence_interval, resample_texts
from regard.measure.classification import (
    Confusion,
    ConfusionMatrix,
    LabelScore,
    encode_labels,
)
from regard.measure.entities import count_sentence, f1_from_counts, has_entities, score_entity_kinds
from regard.measure.metric import Score

LabeledTexts = Sequence[Sequence[str]]


@dataclass(frozen=True)
class LabelReport:
    """Scores of predicted labels. All are in percent, except Matthews correlation (-1 to 1)."""

    texts: int
    labels: int
    """Number of labels: texts, or words."""
    scores: dict[str, Score]
    """accuracy, macro_f1 and matthews; entity_f1 if the labels mark entities."""
    intervals: dict[str, tuple[float, float]]
    """95% interval of each score; empty without bootstrap samples."""
    majority_label: str
    majority_accuracy: float
    """Accuracy of always predicting `majority_label`, in percent."""
    by_label: list[LabelScore]
    by_entity: list[LabelScore]
    """Scores of each type of entity; empty if the labels mark none."""
    confusions: list[Confusion]
    """Every kind of error, most frequent first."""
    matrix: ConfusionMatrix


def score_labels(
    predicted: LabeledTexts, expected: LabeledTexts, samples: int = 1000, seed: int = 12345
) -> LabelReport:
    """Score predicted labels.

    Args:
        predicted: The labels of each text: one, or one per word.
        expected: The correct labels.
        samples: Number of bootstrap samples for the intervals; 0 computes none.
        seed: Random seed; the same seed gives the same intervals.

    >>> report = score_labels([["yes"], ["no"]], [["yes"], ["yes"]], samples=0)
    >>> report.scores["accuracy"]
    Score(value=50.0, signature='accuracy|labels:2|n:2')
    """
    statistics = _Statistics(predicted, expected)
    resampled = statistics.resample(samples, seed) if samples else None
    matrix = statistics.matrix()
    label, majority = matrix.majority
    return LabelReport(
        texts=len(expected),
        labels=matrix.total,
        scores={
            name: Score(float(value), statistics.signature(name))
            for name, value in zip(statistics.names, statistics.scores(), strict=True)
        },
        intervals={}
        if resampled is None
        else {name: confidence_interval(resampled[:, index]) for index, name in enumerate(statistics.names)},
        majority_label=label,
        majority_accuracy=100 * majority,
        by_label=matrix.by_label(),
        by_entity=score_entity_kinds(predicted, expected) if statistics.entities is not None else [],
        confusions=matrix.most_confused(),
        matrix=matrix,
    )


def compare_labels(
    baseline: LabeledTexts, candidate: LabeledTexts, expected: LabeledTexts, samples: int = 1000, seed: int = 12345
) -> list[Comparison]:
    """Compare two systems by paired bootstrap resampling, one comparison per score.

    >>> expected = [["a"], ["b"]] * 20
    >>> accuracy, *_ = compare_labels([["a"]] * 40, expected, expected, samples=100)
    >>> accuracy.difference, accuracy.is_significant
    (50.0, True)
    """
    systems = [_Statistics(predicted, expected) for predicted in (baseline, candidate)]
    resampled = [system.resample(samples, seed) for system in systems]
    names = [name for name in systems[0].names if name in systems[1].names]
    comparisons = []
    for name in names:
        columns = [system.names.index(name) for system in systems]
        baseline_score, candidate_score = (
            system.scores()[column] for system, column in zip(systems, columns, strict=True)
        )
        left, right = (values[:, column] for values, column in zip(resampled, columns, strict=True))
        signature = f"{systems[1].signature(name)}|bs:{samples}|seed:{seed}"
        comparisons.append(compare_samples(name, baseline_score, candidate_score, left, right, signature))
    return comparisons


class _Statistics:
    """Per-text counts, from which the scores of any sample can be computed."""

    def __init__(self, predicted: LabeledTexts, expected: LabeledTexts) -> None:
        lengths = [len(labels) for labels in expected]
        if [len(labels) for labels in predicted] != lengths:
            raise RegardError(
                "The numbers of predicted and expected labels differ.",
                hint="Pass one predicted label per text, or one per word of each text.",
            )
        self.label_names, self._codes = encode_labels(*([*_flatten(side)] for side in (predicted, expected)))
        self._text_of_label = np.repeat(np.arange(len(expected)), lengths)
        self._texts = len(expected)
        self.entities: NDArray[np.int64] | None = None  # (texts, 3): correct, predicted, expected
        if has_entities(self.label_names):
            counts = [count_sentence(*pair) for pair in zip(predicted, expected, strict=True)]
            self.entities = np.array(counts, dtype=np.int64)
        self.names = ("accuracy", "macro_f1", "matthews", *(("entity_f1",) if self.entities is not None else ()))

    def matrix(self, weights: NDArray[np.int64] | None = None) -> ConfusionMatrix:
        """Return the confusion matrix of all texts, or of a sample."""
        size = len(self.label_names)
        label_weights = None if weights is None else weights[self._text_of_label]
        counts = np.bincount(self._codes, label_weights, minlength=size * size).reshape(size, size)
        return ConfusionMatrix(self.label_names, counts.astype(np.int64))

    def scores(self, weights: NDArray[np.int64] | None = None) -> list[float]:
        """Return the score of each name."""
        matrix = self.matrix(weights)
        values = [100 * matrix.accuracy, 100 * matrix.macro_f1, matrix.matthews]
        if self.entities is not None:
            sums = self.entities.sum(axis=0) if weights is None else weights @ self.entities
            values.append(100 * f1_from_counts(*map(int, sums)))
        return values

    def resample(self, samples: int, seed: int) -> NDArray[np.float64]:
        """Return the scores of bootstrap samples, (samples, names)."""
        return np.array([self.scores(weights) for weights in resample_texts(self._texts, samples, seed)])

    def signature(self, name: str) -> str:
        """Return how a score was computed."""
        if name == "entity_f1" and self.entities is not None:
            return f"entity_f1|average:micro|malformed:seqeval|n:{self.entities[:, 2].sum()}"
        return f"{name}|labels:{len(self.label_names)}|n:{len(self._codes)}"


def _flatten(texts: LabeledTexts) -> list[str]:
    return [label for labels in texts for label in labels]
