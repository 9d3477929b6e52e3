"""Find misaligned stretches of a parallel corpus: where the lengths of source and target are unrelated.

A translation is about as long as its source: the difference of the logarithms of the two lengths has a small deviation
where lines are aligned, and that of two random lines where they are not (Gale and Church 1993 align by this). Each line
votes by the log-likelihood ratio of "unrelated" to "aligned". A stretch is a range in which the cumulative sum of the
votes rises, from its minimum to its maximum. The shift of a stretch is the one at which its lines are aligned again.
The lengths of a stretch must also not correlate: in a sorted word list, runs of similar entries have another ratio but
are aligned.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
_SMOOTHING = 5.0  # characters added to every length, so that very short lines get little weight
_WINDOW = 50
MIN_LINES = 2 * _WINDOW  # lines needed
_MAX_SHIFT = 20  # lines; the range of shifts to test
_MIN_EVIDENCE = 25.0  # nats of evidence to report a stretch; random text reaches it at one in 10^10 positions
_MAX_VOTE = 3.0  # nats; the limit of one line's vote
_MIN_ROWS = 10  # lines of a stretch
_MAX_CORRELATION = 0.25  # of the lengths of a misaligned stretch; more if lengths correlate strongly in this corpus
_MAX_WINDOWS = 2000  # windows, evenly spread, from which the statistics of aligned lines are estimated


@dataclass(frozen=True, slots=True)
class MisalignedStretch:
    """A misaligned stretch of rows; the target of row n is in row n + `shift`, or `shift` is None if none fits."""

    first_row: int
    last_row: int
    shift: int | None

    @property
    def row_count(self) -> int:
        """The number of rows."""
        return self.last_row - self.first_row + 1


@dataclass(frozen=True, slots=True)
class Alignment:
    """The alignment of a corpus, judged by lengths.

    `correlations` are those of the log-lengths in windows of 50 lines. `is_informative` is False if aligned lines are
    no more similar in length than random ones, so that lengths cannot show misalignment: a word list, or two files that
    are not parallel.
    """

    correlations: Values
    misaligned: tuple[MisalignedStretch, ...]
    is_informative: bool


def align(source: NDArray[np.uint32], target: NDArray[np.uint32]) -> Alignment:
    """Find misaligned stretches from the lengths of the texts of both sides."""
    log_source, log_target = np.log(source + _SMOOTHING), np.log(target + _SMOOTHING)
    correlations = _compute_correlations(log_source, log_target)
    if len(log_source) < MIN_LINES:
        return Alignment(correlations, (), is_informative=False)
    unrelated_deviation = float(np.sqrt(_robust_deviation(log_source) ** 2 + _robust_deviation(log_target) ** 2))
    center, aligned_deviation = _estimate_aligned(log_source, log_target)
    # Each window uses its best shift, which makes even unrelated lines look similar: compare with random lines.
    _, random_deviation = _estimate_aligned(log_source, np.random.default_rng(1).permutation(log_target))
    if not aligned_deviation < min(0.7 * unrelated_deviation, 0.85 * random_deviation):
        return Alignment(correlations, (), is_informative=False)
    votes = _compute_votes(log_target - log_source - center, aligned_deviation, unrelated_deviation)
    stretches = [
        MisalignedStretch(first_row, last_row, _find_shift(log_source, log_target, center, first_row, last_row))
        for first_row, last_row in _find_stretches(votes)
    ]
    max_correlation = max(float(np.median(correlations)) / 2, _MAX_CORRELATION)
    misaligned = tuple(
        stretch for stretch in stretches if _correlate(log_source, log_target, stretch) <= max_correlation
    )
    return Alignment(correlations, misaligned, is_informative=True)


def _correlate(log_source: Values, log_target: Values, stretch: MisalignedStretch) -> float:
    """The correlation of the lengths of a stretch; 0 if they do not vary."""
    rows = slice(stretch.first_row, stretch.last_row + 1)
    left, right = log_source[rows] - log_source[rows].mean(), log_target[rows] - log_target[rows].mean()
    scale = float(np.sqrt((left**2).sum() * (right**2).sum()))
    return float((left * right).sum()) / scale if scale > 0 else 0.0


def _compute_votes(difference: Values, aligned_deviation: float, unrelated_deviation: float) -> Values:
    """Log-likelihood ratios of "unrelated" to "aligned", for each line."""
    votes = np.log(aligned_deviation / unrelated_deviation) + difference**2 / 2 * (
        1 / aligned_deviation**2 - 1 / unrelated_deviation**2
    )
    return np.minimum(votes, _MAX_VOTE)


def _find_stretches(votes: Values) -> Iterator[tuple[int, int]]:
    """Ranges with a high sum of votes: from a minimum of the cumulative sum to the maximum after it."""
    cumulative = np.concatenate([[0.0], np.cumsum(votes)]).tolist()
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
    """The center and deviation of the differences of aligned lines, even if most of the file is misaligned.

    Every window uses the shift at which it fits best, so a file that is shifted from early on still yields the
    statistics of aligned lines.
    """
    window_count = len(log_source) // _WINDOW
    count = min(window_count, _MAX_WINDOWS)
    first_rows = np.linspace(0, window_count - 1, count).astype(np.int64) * _WINDOW
    rows = first_rows[:, None] + np.arange(_WINDOW)
    best_deviation = np.full(count, np.inf)
    centers = np.zeros(count)
    for shift in range(-_MAX_SHIFT, _MAX_SHIFT + 1):
        windows = log_target[(rows + shift) % len(log_target)] - log_source[rows]
        medians = np.median(windows, axis=1)
        deviations = 1.4826 * np.median(np.abs(windows - medians[:, None]), axis=1)
        is_better = deviations < best_deviation
        best_deviation[is_better], centers[is_better] = deviations[is_better], medians[is_better]
    return float(np.median(centers)), max(float(np.median(best_deviation)), 0.05)


def _find_shift(log_source: Values, log_target: Values, center: float, first_row: int, last_row: int) -> int | None:
    """The shift at which a stretch fits far better than without a shift; None if there is none."""
    rows = np.arange(first_row, min(last_row + 1, first_row + 2000))
    scores = {}
    for shift in range(-_MAX_SHIFT, _MAX_SHIFT + 1):
        valid_rows = rows[(rows + shift >= 0) & (rows + shift < len(log_target))]
        if len(valid_rows) >= _MIN_ROWS:
            scores[shift] = float(np.median(np.abs(log_target[valid_rows + shift] - log_source[valid_rows] - center)))
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
