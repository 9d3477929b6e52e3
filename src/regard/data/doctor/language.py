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

from regard.data.doctor.ngrams import SPACE, characters, grams, letters_only, sums

Values = NDArray[np.float64]
_ORDER = 4
_BITS = 18  # a table of 262,144 places holds the 4-grams of a language with few collisions
_UNSEEN = 0.1  # what is added to each count
_LIMIT = 4.25  # standard deviations below the usual
_FEWEST = 300  # lines to learn from
_SHORTEST = 12  # letters to judge by


@dataclass(frozen=True, slots=True)
class Judgement:
    """Of texts on one side: which do not read like that side, and which read more like the other side."""

    wrong: NDArray[np.bool_]
    other: NDArray[np.bool_]


class Judge(Protocol):
    """Whoever can tell languages apart: the profiles here, or `lingua`."""

    def judge(self, side: int, texts: Sequence[str]) -> Judgement:
        """Judge texts of side 0 (source) or 1 (target)."""


@dataclass(frozen=True, slots=True)
class Usual:
    """How well lines usually fit, by their number of letters: the fewer letters, the wider the spread."""

    centre: float
    fixed: float
    shrinking: float

    def deviations(self, fit: Values, letters: Values) -> Values:
        """How many standard deviations a fit lies above (or below) the usual."""
        return (fit - self.centre) / np.sqrt(self.fixed + self.shrinking / np.maximum(letters, 1))


@dataclass(frozen=True, slots=True)
class Profiles:
    """What the sides read like: log-probabilities of hashed 4-grams, and how well lines usually fit."""

    tables: tuple[NDArray[np.float32], ...]
    usual: tuple[Usual, ...]

    def judge(self, side: int, texts: Sequence[str]) -> Judgement:
        """Which texts do not read like their side, and which read more like the other one."""
        fit, difference, letters = self._fit(side, texts)
        enough = letters >= _SHORTEST
        wrong = (self.usual[side].deviations(fit, letters) < -_LIMIT) & enough
        return Judgement(wrong, (difference < 0) & enough)

    def _fit(self, side: int, texts: Sequence[str]) -> tuple[Values, Values, Values]:
        places, counted, starts, ends = _places(texts)
        letters = sums(counted, starts, ends)
        own, *others = (
            sums(table[places] * counted, starts, ends) for table in (self.tables[side], *self._without(side))
        )
        number = np.maximum(letters, 1)
        difference = (own - others[0]) / number if others else np.zeros(len(texts))
        return own / number + difference, difference, letters

    def _without(self, side: int) -> list[NDArray[np.float32]]:
        return [table for number, table in enumerate(self.tables) if number != side]


def learn(sides: Sequence[Sequence[str]]) -> Profiles | None:
    """Profiles of one or two sides, or None if there is too little text to learn from."""
    if not sides or min(len(texts) for texts in sides) < _FEWEST:
        return None
    profiles = _learn(sides, sides)
    for _ in range(2):  # learn again without what did not fit: the few wrong lines must not count as usual
        kept = []
        for side, texts in enumerate(sides):
            judgement = profiles.judge(side, texts)
            odd = judgement.wrong | judgement.other
            kept.append([text for text, out in zip(texts, odd, strict=True) if not out] if odd.mean() < 0.5 else texts)
        profiles = _learn(kept, sides)
    return profiles


def _learn(sides: Sequence[Sequence[str]], judged: Sequence[Sequence[str]]) -> Profiles:
    tables = tuple(_table(texts) for texts in sides)
    bare = Profiles(tables, ())
    usual = []
    for side, texts in enumerate(judged):
        fit, _, letters = bare._fit(side, texts)
        usual.append(_usual(fit[letters >= _SHORTEST], letters[letters >= _SHORTEST]))
    return Profiles(tables, tuple(usual))


def _table(texts: Sequence[str]) -> NDArray[np.float32]:
    places, counted, _, _ = _places(texts)
    # One less than it was: what occurs once may stand in the very line to be judged, which must not vouch for itself.
    counts = np.maximum(np.bincount(places[counted], minlength=1 << _BITS) - 1, 0) + _UNSEEN
    return np.log(counts / counts.sum()).astype(np.float32)


def _usual(fit: Values, letters: Values) -> Usual:
    """Medians, not means: wrong lines are in there too. The variance is fixed + shrinking / letters."""
    if len(fit) < 20:
        return Usual(0.0, np.inf, 0.0)  # nothing to judge by, so nothing is judged
    centre = float(np.median(fit))
    squares = (1.4826 * np.abs(fit - centre)) ** 2
    groups = np.array_split(np.argsort(letters, kind="stable"), 10)
    inverse = np.array([np.mean(1 / letters[group]) for group in groups])
    spread = np.array([np.median(squares[group]) for group in groups])
    if np.ptp(inverse) < 1e-9:
        return Usual(centre, max(float(spread.mean()), 1e-3), 0.0)
    slope, fixed = np.polyfit(inverse, spread, 1)
    return Usual(centre, max(float(fixed), 1e-3), max(float(slope), 0.0))


def _places(texts: Sequence[str]) -> tuple[NDArray[np.uint32], NDArray[np.bool_], NDArray[np.int64], NDArray[np.int64]]:
    """Where in the table each 4-gram has its place, which of them count (a letter second), and each text's range."""
    text = characters(texts, _ORDER)
    codes = letters_only(text.codes)
    places = grams(codes, _ORDER) >> np.uint32(32 - _BITS)
    counted = codes[1 : 1 + len(places)] != SPACE
    return places, counted, text.starts, text.ends - _ORDER + 1


@dataclass(frozen=True, slots=True)
class Verdict:
    """Of the rows of a batch: which are swapped, and on which side (source, target) which are wrong."""

    swapped: NDArray[np.bool_]
    wrong: tuple[NDArray[np.bool_], ...]


def verdict(judge: Judge, sides: Sequence[Sequence[str]]) -> Verdict:
    """Judge rows of one or two sides.

    A row that looks wrong is judged again without the words that both sides share: names are foreign everywhere.
    """
    judgements = [judge.judge(side, texts) for side, texts in enumerate(sides)]
    if len(sides) < 2:
        return Verdict(np.zeros(len(sides[0]), bool), (judgements[0].wrong,))
    swapped = judgements[0].other & judgements[1].other
    wrong = [judgement.wrong & ~swapped for judgement in judgements]
    doubtful = np.flatnonzero(wrong[0] | wrong[1])
    if len(doubtful):
        bare = [_unshared(sides[0][row], sides[1][row]) for row in doubtful.tolist()]
        for side in (0, 1):
            wrong[side][doubtful] &= judge.judge(side, [texts[side] for texts in bare]).wrong
    return Verdict(swapped, tuple(wrong))


def _unshared(source: str, target: str) -> tuple[str, str]:
    """Both texts without the words they share, unless most of a text is shared: then it is a copy, not names."""
    ours, theirs = source.split(), target.split()
    shared = set(ours) & set(theirs)
    left = (
        " ".join(word for word in ours if word not in shared),
        " ".join(word for word in theirs if word not in shared),
    )
    mostly = len(left[0]) < len(source) / 2 or len(left[1]) < len(target) / 2
    return (source, target) if mostly else left
