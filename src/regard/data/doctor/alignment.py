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
_CUSHION = 5.0  # characters added to every length, so that very short lines do not shout
_WINDOW = 50
FEWEST = 2 * _WINDOW  # lines to judge by
_FARTHEST = 20  # lines by which a slip is searched
_ENOUGH = 25.0  # nats of evidence to report a stretch; chance gives one in 10^10 places
_VOTE = 3.0  # the most that one line may say for a stretch
_SHORTEST = 10  # lines


@dataclass(frozen=True, slots=True)
class Slip:
    """A misaligned stretch of rows, `first` to `last`; the source of a row has its target `shift` rows further on."""

    first: int
    last: int
    shift: int | None

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return self.last - self.first + 1


@dataclass(frozen=True, slots=True)
class Alignment:
    """What the lengths say about the alignment of a corpus.

    `windows` are correlations of the lengths over windows of 50 lines. `telling` is False where lines belong together
    no more closely than strangers do, so that lengths say nothing: a word list, or two files that are not parallel.
    """

    windows: Values
    slips: tuple[Slip, ...]
    telling: bool


def align(source: NDArray[np.uint32], target: NDArray[np.uint32]) -> Alignment:
    """Look for misaligned stretches in the lengths of the two sides."""
    ours, theirs = np.log(source + _CUSHION), np.log(target + _CUSHION)
    windows = _correlations(ours, theirs)
    if len(ours) < FEWEST:
        return Alignment(windows, (), telling=False)
    apart = float(np.sqrt(_spread(ours) ** 2 + _spread(theirs) ** 2))
    centre, together = _aligned(ours, theirs)
    if not together < 0.7 * apart:
        return Alignment(windows, (), telling=False)
    votes = _votes(theirs - ours - centre, together, apart)
    slips = tuple(Slip(first, last, _shift(ours, theirs, centre, first, last)) for first, last in _stretches(votes))
    return Alignment(windows, slips, telling=True)


def _votes(difference: Values, together: float, apart: float) -> Values:
    """Log-likelihood ratios of "strangers" to "belong together", for each line."""
    votes = np.log(together / apart) + difference**2 / 2 * (1 / together**2 - 1 / apart**2)
    return np.minimum(votes, _VOTE)


def _stretches(votes: Values) -> Iterator[tuple[int, int]]:
    """Ranges whose sum of votes is high: each begins after a low of the running sum and ends at the high after it."""
    running = np.concatenate([[0.0], np.cumsum(votes)])
    low = high = 0
    for place in range(1, len(running)):
        value = running[place]
        if value > running[high]:
            high = place
        elif running[high] - value > _ENOUGH or value < running[low]:
            if running[high] - running[low] > _ENOUGH and high - low >= _SHORTEST:
                yield low, high - 1
            low = high = place
    if running[high] - running[low] > _ENOUGH and high - low >= _SHORTEST:
        yield low, high - 1


def _aligned(ours: Values, theirs: Values) -> tuple[float, float]:
    """The centre and spread of the differences where lines do belong together, even if most of the file slipped.

    Every window may choose the shift at which it fits best, so a file that slipped early on still shows what
    belonging together looks like here.
    """
    count = len(ours) // _WINDOW
    best = np.full(count, np.inf)
    centres = np.zeros(count)
    for shift in range(-_FARTHEST, _FARTHEST + 1):
        moved = np.roll(theirs, -shift) - ours
        cut = moved[: count * _WINDOW].reshape(count, _WINDOW)
        middle = np.median(cut, axis=1)
        spread = 1.4826 * np.median(np.abs(cut - middle[:, None]), axis=1)
        better = spread < best
        best[better], centres[better] = spread[better], middle[better]
    return float(np.median(centres)), max(float(np.median(best)), 0.05)


def _shift(ours: Values, theirs: Values, centre: float, first: int, last: int) -> int | None:
    """The shift at which a stretch fits, if there is one at which it fits far better than as it is."""
    rows = np.arange(first, min(last + 1, first + 2000))
    scores = {}
    for shift in range(-_FARTHEST, _FARTHEST + 1):
        inside = rows[(rows + shift >= 0) & (rows + shift < len(theirs))]
        if len(inside) >= _SHORTEST:
            scores[shift] = float(np.median(np.abs(theirs[inside + shift] - ours[inside] - centre)))
    best = min(scores, key=lambda shift: (scores[shift], abs(shift)))
    return best if best and scores[best] < 0.6 * scores[0] else None


def _spread(values: Values) -> float:
    return 1.4826 * float(np.median(np.abs(values - np.median(values))))


def _correlations(ours: Values, theirs: Values) -> Values:
    count = len(ours) // _WINDOW
    left = ours[: count * _WINDOW].reshape(count, _WINDOW)
    right = theirs[: count * _WINDOW].reshape(count, _WINDOW)
    left = left - left.mean(axis=1, keepdims=True)
    right = right - right.mean(axis=1, keepdims=True)
    scale = np.sqrt((left**2).sum(axis=1) * (right**2).sum(axis=1))
    return np.divide((left * right).sum(axis=1), scale, out=np.zeros(count), where=scale > 0)
