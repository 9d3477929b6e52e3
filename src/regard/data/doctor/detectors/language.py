"""Wrong and swapped languages, by profiles of character 4-grams that are learned from the corpus itself.

No list of languages is needed, and none can be missing: the doctor learns what each side reads like, leaves out the
lines that read otherwise, learns again, and then asks of each line how well it fits its own side and how much better
than the other one. Few wrong lines cannot spoil a profile of many right ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from regard.data.doctor.detectors.ngrams import SPACE, hash_ngrams, keep_letters, sum_ranges, to_code_points

Values = NDArray[np.float64]
_NGRAM_ORDER = 4
_TABLE_BITS = 18  # a table of 262,144 places holds the 4-grams of a language with few collisions
_SMOOTHING = 0.1  # what is added to each count
_MAX_DEVIATIONS = 4.25  # standard deviations below the usual
_MIN_LINES = 300  # lines to learn from
_MIN_LETTERS = 12  # letters to judge by


@dataclass(frozen=True, slots=True)
class LanguageJudgement:
    """Of texts on one side: which do not read like that side, and which read more like the other side."""

    is_wrong: NDArray[np.bool_]
    is_other_side: NDArray[np.bool_]


class LanguageJudge(Protocol):
    """Whoever can tell languages apart: the profiles here, or `lingua`."""

    def judge(self, side: int, texts: Sequence[str]) -> LanguageJudgement:
        """Judge texts of side 0 (source) or 1 (target)."""


@dataclass(frozen=True, slots=True)
class FitStatistics:
    """How well lines usually fit, by their number of letters: the fewer letters, the wider the spread."""

    centre: float
    fixed_variance: float
    variance_per_letter: float

    def deviations(self, fit: Values, letters: Values) -> Values:
        """How many standard deviations a fit lies above (or below) the usual."""
        return (fit - self.centre) / np.sqrt(self.fixed_variance + self.variance_per_letter / np.maximum(letters, 1))


@dataclass(frozen=True, slots=True)
class Profiles:
    """What the sides read like: log-probabilities of hashed 4-grams, and how well lines usually fit."""

    tables: tuple[NDArray[np.float32], ...]
    fit_statistics: tuple[FitStatistics, ...]

    def judge(self, side: int, texts: Sequence[str]) -> LanguageJudgement:
        """Which texts do not read like their side, and which read more like the other one."""
        fit, difference, letters = self._compute_fit(side, texts)
        is_long_enough = letters >= _MIN_LETTERS
        is_wrong = (self.fit_statistics[side].deviations(fit, letters) < -_MAX_DEVIATIONS) & is_long_enough
        return LanguageJudgement(is_wrong, (difference < 0) & is_long_enough)

    def _compute_fit(self, side: int, texts: Sequence[str]) -> tuple[Values, Values, Values]:
        indices, is_counted, starts, ends = _index_ngrams(texts)
        letters = sum_ranges(is_counted, starts, ends)
        own_logprobs, *other_logprobs = (
            sum_ranges(table[indices] * is_counted, starts, ends)
            for table in (self.tables[side], *self._get_other_tables(side))
        )
        letter_counts = np.maximum(letters, 1)
        difference = (own_logprobs - other_logprobs[0]) / letter_counts if other_logprobs else np.zeros(len(texts))
        return own_logprobs / letter_counts + difference, difference, letters

    def _get_other_tables(self, side: int) -> list[NDArray[np.float32]]:
        return [table for number, table in enumerate(self.tables) if number != side]


def learn_profiles(sides: Sequence[Sequence[str]]) -> Profiles | None:
    """Profiles of one or two sides, or None if there is too little text to learn from."""
    if not sides or min(len(texts) for texts in sides) < _MIN_LINES:
        return None
    profiles = _learn_once(sides, sides)
    for _ in range(2):  # learn again without what did not fit: the few wrong lines must not count as usual
        fitting = []
        for side, texts in enumerate(sides):
            judgement = profiles.judge(side, texts)
            is_odd = judgement.is_wrong | judgement.is_other_side
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
    fit_statistics = []
    for side, texts in enumerate(all_sides):
        fit, _, letters = unscaled._compute_fit(side, texts)
        fit_statistics.append(_estimate_fit(fit[letters >= _MIN_LETTERS], letters[letters >= _MIN_LETTERS]))
    return Profiles(tables, tuple(fit_statistics))


def _learn_table(texts: Sequence[str]) -> NDArray[np.float32]:
    indices, is_counted, _, _ = _index_ngrams(texts)
    # One less than it was: what occurs once may stand in the very line to be judged, which must not vouch for itself.
    counts = np.maximum(np.bincount(indices[is_counted], minlength=1 << _TABLE_BITS) - 1, 0) + _SMOOTHING
    return np.log(counts / counts.sum()).astype(np.float32)


def _estimate_fit(fit: Values, letters: Values) -> FitStatistics:
    """Medians, not means: wrong lines are in there too. The variance is fixed + shrinking / letters."""
    if len(fit) < 20:
        return FitStatistics(0.0, np.inf, 0.0)  # nothing to judge by, so nothing is judged
    centre = float(np.median(fit))
    squares = (1.4826 * np.abs(fit - centre)) ** 2
    groups = np.array_split(np.argsort(letters, kind="stable"), 10)
    inverse = np.array([np.mean(1 / letters[group]) for group in groups])
    spread = np.array([np.median(squares[group]) for group in groups])
    if np.ptp(inverse) < 1e-9:
        return FitStatistics(centre, max(float(spread.mean()), 1e-3), 0.0)
    slope, fixed = np.polyfit(inverse, spread, 1)
    return FitStatistics(centre, max(float(fixed), 1e-3), max(float(slope), 0.0))


def _index_ngrams(
    texts: Sequence[str],
) -> tuple[NDArray[np.uint32], NDArray[np.bool_], NDArray[np.int64], NDArray[np.int64]]:
    """Where in the table each 4-gram has its place, which of them count (a letter second), and each text's range."""
    code_points = to_code_points(texts, _NGRAM_ORDER)
    codes = keep_letters(code_points.codes)
    indices = hash_ngrams(codes, _NGRAM_ORDER) >> np.uint32(32 - _TABLE_BITS)
    is_counted = codes[1 : 1 + len(indices)] != SPACE
    return indices, is_counted, code_points.starts, code_points.ends - _NGRAM_ORDER + 1


@dataclass(frozen=True, slots=True)
class LanguageVerdict:
    """Of the rows of a batch: which are swapped, and on which side (source, target) which are wrong."""

    is_swapped: NDArray[np.bool_]
    is_wrong: tuple[NDArray[np.bool_], ...]


def judge_rows(judge: LanguageJudge, sides: Sequence[Sequence[str]]) -> LanguageVerdict:
    """Judge rows of one or two sides.

    A row that looks wrong is judged again without the words that both sides share: names are foreign everywhere.
    """
    judgements = [judge.judge(side, texts) for side, texts in enumerate(sides)]
    if len(sides) < 2:
        return LanguageVerdict(np.zeros(len(sides[0]), bool), (judgements[0].is_wrong,))
    is_swapped = judgements[0].is_other_side & judgements[1].is_other_side
    is_wrong = [judgement.is_wrong & ~is_swapped for judgement in judgements]
    doubtful_rows = np.flatnonzero(is_wrong[0] | is_wrong[1])
    if len(doubtful_rows):
        unshared_texts = [_remove_shared_words(sides[0][row], sides[1][row]) for row in doubtful_rows.tolist()]
        for side in (0, 1):
            is_wrong[side][doubtful_rows] &= judge.judge(side, [texts[side] for texts in unshared_texts]).is_wrong
    return LanguageVerdict(is_swapped, tuple(is_wrong))


def _remove_shared_words(source: str, target: str) -> tuple[str, str]:
    """Both texts without the words they share, unless most of a text is shared: then it is a copy, not names."""
    source_words, target_words = source.split(), target.split()
    shared_words = set(source_words) & set(target_words)
    remaining = (
        " ".join(word for word in source_words if word not in shared_words),
        " ".join(word for word in target_words if word not in shared_words),
    )
    is_mostly_shared = len(remaining[0]) < len(source) / 2 or len(remaining[1]) < len(target) / 2
    return (source, target) if is_mostly_shared else remaining
