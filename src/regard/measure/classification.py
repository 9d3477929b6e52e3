"""Scores of predicted labels: accuracy, macro F1, Matthews correlation, and the confusion matrix they come from."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.base.errors import RegardError

IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class LabelScore:
    """Precision, recall and F1 of one label, in percent."""

    label: str
    precision: float
    recall: float
    f1: float
    expected: int
    """How often the label occurs in the references."""
    predicted: int


@dataclass(frozen=True)
class Confusion:
    """How often one label was predicted where another was expected."""

    expected: str
    predicted: str
    count: int


@dataclass(frozen=True)
class ConfusionMatrix:
    """Counts of (expected, predicted) labels. The labels are sorted and include all labels from both sides."""

    labels: tuple[str, ...]
    counts: IntArray
    """(expected, predicted)."""

    @property
    def total(self) -> int:
        """Number of labeled texts or words."""
        return int(self.counts.sum())

    @property
    def accuracy(self) -> float:
        """Fraction of correct labels, from 0 to 1."""
        return float(np.trace(self.counts) / self.total)

    @property
    def macro_f1(self) -> float:
        """Mean F1 over the labels that occur, from 0 to 1; a rare label counts as much as a frequent one."""
        occurs = (self.counts.sum(axis=0) + self.counts.sum(axis=1)) > 0  # in a resample some labels may not occur
        return float(self.f1[occurs].mean())

    @cached_property
    def f1(self) -> NDArray[np.float64]:
        """F1 of each label, from 0 to 1."""
        sums = self.counts.sum(axis=0) + self.counts.sum(axis=1)
        return 2 * np.diag(self.counts) / np.maximum(sums, 1)

    @property
    def matthews(self) -> float:
        """Matthews correlation for any number of labels (Gorodkin 2004), from -1 to 1; 0 if one side is constant."""
        expected, predicted = self.counts.sum(axis=1).astype(float), self.counts.sum(axis=0).astype(float)
        total = float(self.total)
        covariance = float(np.trace(self.counts)) * total - expected @ predicted
        variances = (total**2 - expected @ expected) * (total**2 - predicted @ predicted)
        return float(covariance / np.sqrt(variances)) if variances > 0 else 0.0

    @property
    def majority(self) -> tuple[str, float]:
        """The most frequent expected label, and the accuracy of always predicting it."""
        expected = self.counts.sum(axis=1)
        index = int(expected.argmax())
        return self.labels[index], float(expected[index] / self.total)

    def by_label(self) -> list[LabelScore]:
        """Return the scores of each label; 0 where a label is never predicted or never expected."""
        correct, expected, predicted = np.diag(self.counts), self.counts.sum(axis=1), self.counts.sum(axis=0)
        precision, recall = 100 * correct / np.maximum(predicted, 1), 100 * correct / np.maximum(expected, 1)
        columns = (precision, recall, 100 * self.f1, expected, predicted)
        rows = zip(self.labels, *(column.tolist() for column in columns), strict=True)
        return [LabelScore(*row) for row in rows]

    def most_confused(self, count: int | None = None) -> list[Confusion]:
        """Return the most frequent errors, most frequent first.

        >>> make_confusion_matrix(["a", "b", "b"], ["a", "a", "a"]).most_confused()
        [Confusion(expected='a', predicted='b', count=2)]
        """
        errors = self.counts.copy()
        np.fill_diagonal(errors, 0)
        rows, columns = errors.nonzero()
        order = np.argsort(-errors[rows, columns], kind="stable")[:count]
        return [
            Confusion(self.labels[row], self.labels[column], int(errors[row, column]))
            for row, column in zip(rows[order], columns[order], strict=True)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return labels and counts for JSON."""
        return {"labels": list(self.labels), "counts": self.counts.tolist()}


def make_confusion_matrix(predicted: Sequence[str], expected: Sequence[str]) -> ConfusionMatrix:
    """Count pairs of labels.

    Raises:
        RegardError: If the numbers of labels differ or are 0.

    >>> matrix = make_confusion_matrix(["yes", "no", "yes"], ["yes", "no", "no"])
    >>> matrix.counts.tolist(), round(matrix.accuracy, 4), round(matrix.macro_f1, 4), round(matrix.matthews, 4)
    ([[1, 1], [0, 1]], 0.6667, 0.6667, 0.5)
    """
    labels, codes = encode_labels(predicted, expected)
    size = len(labels)
    counts = np.bincount(codes, minlength=size * size).reshape(size, size)
    return ConfusionMatrix(labels, counts)


def encode_labels(predicted: Sequence[str], expected: Sequence[str]) -> tuple[tuple[str, ...], IntArray]:
    """Return the sorted labels of both sides, and expected index * number of labels + predicted index of each pair."""
    if len(predicted) != len(expected) or not expected:
        raise RegardError(
            f"There are {len(predicted):,} predicted and {len(expected):,} expected labels.",
            hint="Pass one predicted label per expected label, and at least one.",
        )
    labels = tuple(sorted({*predicted, *expected}))
    index = {label: number for number, label in enumerate(labels)}
    codes = [index[right] * len(labels) + index[left] for left, right in zip(predicted, expected, strict=True)]
    return labels, np.array(codes, dtype=np.int64)
