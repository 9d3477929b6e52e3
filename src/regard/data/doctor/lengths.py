"""Lengths: what is usual in this corpus, and the rules about lines that are far from it."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.data.doctor.rules import Finding
from regard.data.example import Example

_DEVIATIONS = 5
_LONG_ENOUGH = 500  # characters that nobody calls too long
_CUSHION = 15  # characters added to both sides, so that "Ja." for "Yes, it is." is no outlier
_LONG_WORD = re.compile(r"\S{101,}")


@dataclass(frozen=True, slots=True)
class Usual:
    """The lengths (in characters) and ratios of lengths (target over source) that this corpus holds for usual."""

    longest: tuple[float, ...]
    ratio: float = 1.0
    times: float = math.inf
    spaced: tuple[bool, ...] = (True, True)

    def too_long(self, example: Example) -> Finding | None:
        """Find a side that is far longer than the others in its column."""
        for name, text, longest in zip(
            ("source", "target"), (example.source, example.target), self.longest, strict=False
        ):
            if text is not None and len(text) > longest:
                return Finding("too-long", f"{name} has {len(text):,} characters; usual are up to {longest:,.0f}")
        return None

    def odd_ratio(self, example: Example) -> Finding | None:
        """Find a pair whose lengths are out of proportion."""
        target = example.target
        if target is None or not target or not example.source:
            return None
        ratio = (len(target) + _CUSHION) / (len(example.source) + _CUSHION)
        if self.ratio / self.times <= ratio <= self.ratio * self.times:
            return None
        return Finding(
            "ratio",
            f"{len(example.source):,} against {len(target):,} characters; "
            f"usual is {self.ratio:.2f} times as many, give or take a factor of {self.times:.1f}",
        )

    def long_word(self, example: Example) -> Finding | None:
        """Find a word that is too long to be one, in languages that put spaces between words."""
        spans = []
        for text, spaced in zip((example.source, example.target or ""), self.spaced, strict=True):
            long = len(text) > 100 and spaced
            spans.append(tuple(match.span() for match in _LONG_WORD.finditer(text)) if long else ())
        lengths = [end - start for side in spans for start, end in side]
        return Finding("long-word", f"{max(lengths):,} characters without a space", *spans) if lengths else None


def learn(sides: Sequence[Sequence[str]]) -> Usual:
    """What is usual, by medians: a few wild lines do not move them."""
    counts = [np.array([len(text) for text in texts if text.strip()] or [1], float) for texts in sides]
    longest = tuple(max(_LONG_ENOUGH, _far(np.log(count))) for count in counts)
    spaces = [
        sum(text.count(" ") for text in texts) / max(count.sum(), 1) for texts, count in zip(sides, counts, strict=True)
    ]
    spaced = tuple(share > 0.04 for share in (*spaces, *spaces)[:2])
    if len(sides) < 2:
        return Usual(longest, spaced=spaced)
    pairs = [(len(s) + _CUSHION, len(t) + _CUSHION) for s, t in zip(*sides, strict=True) if s.strip() and t.strip()]
    logs = np.array([math.log(target / source) for source, target in pairs] or [0.0])
    centre = float(np.median(logs))
    spread = 1.4826 * float(np.median(np.abs(logs - centre)))
    return Usual(longest, math.exp(centre), math.exp(max(math.log(2), _DEVIATIONS * spread)), spaced)


def _far(logs: NDArray[np.float64]) -> float:
    centre = float(np.median(logs))
    return math.exp(centre + _DEVIATIONS * max(1.4826 * float(np.median(np.abs(logs - centre))), 0.2))
