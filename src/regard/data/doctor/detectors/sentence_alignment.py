"""Misaligned stretches: where the lengths of the two sides stop having to do with each other.

A translation is about as long as its source: the difference of the logarithms of the two lengths spreads little where
lines belong together, and as widely as two strangers' where they do not (Gale and Church 1993 align by this). Each line
votes for "strangers" or "belong together" by its log-likelihood ratio; a stretch is where the votes pile up, from where
they start to rise to where they are highest. How far the file slipped is the shift that makes the lines fit again.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
_SMOOTHING = 5.0  # characters added to every length, so that very short lines do not shout
_WINDOW = 50
MIN_LINES = 2 * _WINDOW  # lines to judge by
_MAX_SHIFT = 20  # lines by which a slip is searched
_MIN_EVIDENCE = 25.0  # nats of evidence to report a stretch; chance gives one in 10^10 places
_MAX_VOTE = 3.0  # the most that one line may say for a stretch
_MIN_ROWS = 10  # lines


@dataclass(frozen=True, slots=True)
class MisalignedStretch:
    """A misaligned stretch of rows, `first` to `last`; the source of a row has its target `shift` rows further on."""

    first_row: int
    last_row: int
    shift: int | None

    @property
    def row_count(self) -> int:
        """How many rows it has."""
        return self.last_row - self.first_row + 1


@dataclass(frozen=True, slots=True)
class Alignment:
    """What the lengths say about the alignment of a corpus.

    `windows` are correlations of the lengths over windows of 50 lines. `telling` is False where lines belong together
    no more closely than strangers do, so that lengths say nothing: a word list, or two files that are not parallel.
    """

    correlations: Values
    misaligned: tuple[MisalignedStretch, ...]
    is_informative: bool


def align(source: NDArray[np.uint32], target: NDArray[np.uint32]) -> Alignment:
    """Look for misaligned stretches in the lengths of the two sides."""
    log_source, log_target = np.log(source + _SMOOTHING), np.log(target + _SMOOTHING)
    correlations = _compute_correlations(log_source, log_target)
    if len(log_source) < MIN_LINES:
        return Alignment(correlations, (), is_informative=False)
    unrelated_deviation = float(np.sqrt(_robust_deviation(log_source) ** 2 + _robust_deviation(log_target) ** 2))
    centre, aligned_deviation = _estimate_aligned(log_source, log_target)
    if not aligned_deviation < 0.7 * unrelated_deviation:
        return Alignment(correlations, (), is_informative=False)
    votes = _compute_votes(log_target - log_source - centre, aligned_deviation, unrelated_deviation)
    misaligned = tuple(
        MisalignedStretch(first_row, last_row, _find_shift(log_source, log_target, centre, first_row, last_row))
        for first_row, last_row in _find_stretches(votes)
    )
    return Alignment(correlations, misaligned, is_informative=True)


def _compute_votes(difference: Values, aligned_deviation: float, unrelated_deviation: float) -> Values:
    """Log-likelihood ratios of "strangers" to "belong together", for each line."""
    votes = np.log(aligned_deviation / unrelated_deviation) + difference**2 / 2 * (
        1 / aligned_deviation**2 - 1 / unrelated_deviation**2
    )
    return np.minimum(votes, _MAX_VOTE)


def _find_stretches(votes: Values) -> Iterator[tuple[int, int]]:
    """Ranges whose sum of votes is high: each begins after a low of the running sum and ends at the high after it."""
    cumulative = np.concatenate([[0.0], np.cumsum(votes)])
    low = high = 0
    for position in range(1, len(cumulative)):
        value = cumulative[position]
        if value > cumulative[high]:
            high = position
        elif cumulative[high] - value > _MIN_EVIDENCE or value < cumulative[low]:
            if cumulative[high] - cumulative[low] > _MIN_EVIDENCE and high - low >= _MIN_ROWS:
                yield low, high - 1
            low = high = position
    if cumulative[high] - cumulative[low] > _MIN_EVIDENCE and high - low >= _MIN_ROWS:
        yield low, high - 1


def _estimate_aligned(log_source: Values, log_target: Values) -> tuple[float, float]:
    """The centre and spread of the differences where lines do belong together, even if most of the file slipped.

    Every window may choose the shift at which it fits best, so a file that slipped early on still shows what
    belonging together looks like here.
    """
    count = len(log_source) // _WINDOW
    best_deviation = np.full(count, np.inf)
    centres = np.zeros(count)
    for shift in range(-_MAX_SHIFT, _MAX_SHIFT + 1):
        difference = np.roll(log_target, -shift) - log_source
        windows = difference[: count * _WINDOW].reshape(count, _WINDOW)
        medians = np.median(windows, axis=1)
        deviations = 1.4826 * np.median(np.abs(windows - medians[:, None]), axis=1)
        is_better = deviations < best_deviation
        best_deviation[is_better], centres[is_better] = deviations[is_better], medians[is_better]
    return float(np.median(centres)), max(float(np.median(best_deviation)), 0.05)


def _find_shift(log_source: Values, log_target: Values, centre: float, first_row: int, last_row: int) -> int | None:
    """The shift at which a stretch fits, if there is one at which it fits far better than as it is."""
    rows = np.arange(first_row, min(last_row + 1, first_row + 2000))
    scores = {}
    for shift in range(-_MAX_SHIFT, _MAX_SHIFT + 1):
        valid_rows = rows[(rows + shift >= 0) & (rows + shift < len(log_target))]
        if len(valid_rows) >= _MIN_ROWS:
            scores[shift] = float(np.median(np.abs(log_target[valid_rows + shift] - log_source[valid_rows] - centre)))
    best_shift = min(scores, key=lambda shift: (scores[shift], abs(shift)))
    return best_shift if best_shift and scores[best_shift] < 0.6 * scores[0] else None


def _robust_deviation(values: Values) -> float:
    return 1.4826 * float(np.median(np.abs(values - np.median(values))))


def _compute_correlations(log_source: Values, log_target: Values) -> Values:
    count = len(log_source) // _WINDOW
    left = log_source[: count * _WINDOW].reshape(count, _WINDOW)
    right = log_target[: count * _WINDOW].reshape(count, _WINDOW)
    left = left - left.mean(axis=1, keepdims=True)
    right = right - right.mean(axis=1, keepdims=True)
    scale = np.sqrt((left**2).sum(axis=1) * (right**2).sum(axis=1))
    return np.divide((left * right).sum(axis=1), scale, out=np.zeros(count), where=scale > 0)
