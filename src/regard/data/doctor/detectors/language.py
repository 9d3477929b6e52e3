"""Detect wrong and swapped languages by character 4-gram profiles learned from the corpus itself.

This works for any language without a list of languages. The detector learns a profile of each side, drops the lines
that do not fit, learns again, and then scores how well each line fits its own side, and how much better than the other
side. A few wrong lines do not distort a profile of many correct ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from regard.data.doctor.detectors.ngrams import SPACE, hash_ngrams, keep_letters, sum_ranges, to_code_points

Values = NDArray[np.float64]
_NGRAM_ORDER = 4
_TABLE_BITS = 18  # a table of 262,144 entries holds the 4-grams of a language with few collisions
_SMOOTHING = 0.1  # added to each count
_MAX_DEVIATIONS = 4.25  # standard deviations below the center
_MIN_LINES = 300  # lines needed to learn a profile
_MIN_LETTERS = 12  # letters needed to classify a text
_MIN_DIFFERENCE = (
    1.0  # nats per letter; two languages differ by 3 to 7, two texts in the same language by less than 0.5
)


@dataclass(frozen=True, slots=True)
class LanguageResult:
    """For the texts of one side: which do not fit that side, and which fit the other side better."""

    is_wrong: NDArray[np.bool_]
    is_other_side: NDArray[np.bool_]


class LanguageClassifier(Protocol):
    """Classifies the language of texts: `Profiles`, or `LinguaClassifier`."""

    def classify(self, side: int, texts: Sequence[str]) -> LanguageResult:
        """Classify texts of side 0 (source) or 1 (target)."""


@dataclass(frozen=True, slots=True)
class FitStatistics:
    """The distribution of the fit of lines; its variance grows as lines get shorter."""

    center: float
    fixed_variance: float
    variance_per_letter: float

    def deviations(self, fit: Values, letters: Values) -> Values:
        """The deviation of each fit from the center, in standard deviations."""
        return (fit - self.center) / np.sqrt(self.fixed_variance + self.variance_per_letter / np.maximum(letters, 1))


@dataclass(frozen=True, slots=True)
class Profiles:
    """The profile of each side: log-probabilities of hashed 4-grams, and the distribution of the fit of its lines."""

    tables: tuple[NDArray[np.float32], ...]
    fit_statistics: tuple[FitStatistics, ...]
    are_distinct: bool = True
    """Whether the sides are in two languages; if they are in one, no text can be said to belong to the other side."""

    def classify(self, side: int, texts: Sequence[str]) -> LanguageResult:
        """Which texts do not fit their side, and which fit the other side better."""
        fit, difference, letters = self._compute_fit(side, texts)
        is_long_enough = letters >= _MIN_LETTERS
        is_wrong = (self.fit_statistics[side].deviations(fit, letters) < -_MAX_DEVIATIONS) & is_long_enough
        return LanguageResult(is_wrong, (difference < 0) & is_long_enough & self.are_distinct)

    def _compute_fit(self, side: int, texts: Sequence[str]) -> tuple[Values, Values, Values]:
        indices, is_counted, starts, ends = _index_ngrams(texts)
        letters = sum_ranges(is_counted, starts, ends)
        own_logprobs, *other_logprobs = (
            sum_ranges(table[indices] * is_counted, starts, ends)
            for table in (self.tables[side], *self.tables[:side], *self.tables[side + 1 :])
        )
        letter_counts = np.maximum(letters, 1)
        difference = (own_logprobs - other_logprobs[0]) / letter_counts if other_logprobs else np.zeros(len(texts))
        return own_logprobs / letter_counts + difference, difference, letters


def learn_profiles(sides: Sequence[Sequence[str]]) -> Profiles | None:
    """Learn profiles of one or two sides; None if there are too few lines."""
    if not sides or min(len(texts) for texts in sides) < _MIN_LINES:
        return None
    profiles = _learn_once(sides, sides)
    for _ in range(2):  # learn again without the lines that did not fit
        fitting = []
        for side, texts in enumerate(sides):
            judgment = profiles.classify(side, texts)
            is_odd = judgment.is_wrong | judgment.is_other_side
            fitting.append(
                [text for text, is_out in zip(texts, is_odd, strict=True) if not is_out]
                if is_odd.mean() < 0.5
                else texts
            )
        profiles = _learn_once(fitting, sides)
    return profiles


def _learn_once(sides: Sequence[Sequence[str]], all_sides: Sequence[Sequence[str]]) -> Profiles:
    tables = tuple(_learn_table(texts) for texts in sides)
    unscaled = Profiles(tables, ())
    fit_statistics, are_distinct = [], True
    for side, texts in enumerate(all_sides):
        fit, difference, letters = unscaled._compute_fit(side, texts)
        is_long_enough = letters >= _MIN_LETTERS
        fit_statistics.append(_estimate_fit(fit[is_long_enough], letters[is_long_enough]))
        if is_long_enough.any():
            are_distinct &= float(np.median(np.abs(difference[is_long_enough]))) >= _MIN_DIFFERENCE
    return Profiles(tables, tuple(fit_statistics), are_distinct)


def _learn_table(texts: Sequence[str]) -> NDArray[np.float32]:
    indices, is_counted, _, _ = _index_ngrams(texts)
    # Subtract one: a 4-gram that occurs once may come from the judged line itself, which must not support itself.
    counts = np.maximum(np.bincount(indices[is_counted], minlength=1 << _TABLE_BITS) - 1, 0) + _SMOOTHING
    return np.log(counts / counts.sum()).astype(np.float32)


def _estimate_fit(fit: Values, letters: Values) -> FitStatistics:
    """Estimate center and variance (fixed + per_letter / letters) by medians, because wrong lines are included."""
    if len(fit) < 20:
        return FitStatistics(0.0, np.inf, 0.0)  # too few texts: flag nothing
    center = float(np.median(fit))
    squares = (1.4826 * np.abs(fit - center)) ** 2
    groups = np.array_split(np.argsort(letters, kind="stable"), 10)
    inverse = np.array([np.mean(1 / letters[group]) for group in groups])
    spread = np.array([np.median(squares[group]) for group in groups])
    if np.ptp(inverse) < 1e-9:
        return FitStatistics(center, max(float(spread.mean()), 1e-3), 0.0)
    slope, fixed = np.polyfit(inverse, spread, 1)
    return FitStatistics(center, max(float(fixed), 1e-3), max(float(slope), 0.0))


def _index_ngrams(
    texts: Sequence[str],
) -> tuple[NDArray[np.uint32], NDArray[np.bool_], NDArray[np.int64], NDArray[np.int64]]:
    """The table index of each 4-gram, which 4-grams count (a letter second), and the range of each text."""
    code_points = to_code_points(texts, _NGRAM_ORDER)
    codes = keep_letters(code_points.codes)
    indices = hash_ngrams(codes, _NGRAM_ORDER) >> np.uint32(32 - _TABLE_BITS)
    is_counted = codes[1 : 1 + len(indices)] != SPACE
    return indices, is_counted, code_points.starts, code_points.ends - _NGRAM_ORDER + 1


@dataclass(frozen=True, slots=True)
class RowLanguages:
    """For the rows of a batch: which are swapped, and for each side which texts are in the wrong language."""

    is_swapped: NDArray[np.bool_]
    is_wrong: tuple[NDArray[np.bool_], ...]


def classify_rows(language_classifier: LanguageClassifier, sides: Sequence[Sequence[str]]) -> RowLanguages:
    """Judge rows of one or two sides.

    A row that looks wrong is judged again without the words that both sides share, which are usually names.
    """
    judgments = [language_classifier.classify(side, texts) for side, texts in enumerate(sides)]
    if len(sides) < 2:
        return RowLanguages(np.zeros(len(sides[0]), bool), (judgments[0].is_wrong,))
    is_swapped = judgments[0].is_other_side & judgments[1].is_other_side
    is_wrong = [judgment.is_wrong & ~is_swapped for judgment in judgments]
    doubtful_rows = np.flatnonzero(is_wrong[0] | is_wrong[1])
    if len(doubtful_rows):
        unshared_texts = [_remove_shared(sides[0][row], sides[1][row]) for row in doubtful_rows.tolist()]
        for side in (0, 1):
            is_wrong[side][doubtful_rows] &= language_classifier.classify(
                side, [texts[side] for texts in unshared_texts]
            ).is_wrong
    return RowLanguages(is_swapped, tuple(is_wrong))


def _remove_shared(source: str, target: str) -> tuple[str, str]:
    """Remove the words that both texts share, unless they make up most of a text: then it is a copy."""
    source_set, target_set = source.split(), target.split()
    shared = set(source_set) & set(target_set)
    remaining = (
        " ".join(word for word in source_set if word not in shared),
        " ".join(word for word in target_set if word not in shared),
    )
    is_mostly_shared = len(remaining[0]) < len(source) / 2 or len(remaining[1]) < len(target) / 2
    return (source, target) if is_mostly_shared else remaining
