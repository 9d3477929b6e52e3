"""Rules about lengths: limits learned from the corpus, and checks for lines far outside them."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.data.doctor.rules.rule import Finding
from regard.data.example import Example

_MAX_DEVIATIONS = 5
_NEVER_TOO_LONG = 500  # characters; a shorter text is never too long
_SMOOTHING = 15  # characters added to both sides, so that "Ja." for "Yes, it is." is not an outlier
_LONG_RUN = re.compile(r"\S{101,}")


@dataclass(frozen=True, slots=True)
class LengthStatistics:
    """The usual lengths (in characters) and length ratios (target over source) of this corpus."""

    max_lengths: tuple[float, ...]
    ratio: float = 1.0
    ratio_factor: float = math.inf
    has_spaces: tuple[bool, ...] = (True, True)

    def check_too_long(self, example: Example) -> Finding | None:
        """Find a text that is far longer than the others of its side."""
        for name, text, max_length in zip(
            ("source", "target"), (example.source, example.target), self.max_lengths, strict=False
        ):
            if text is not None and len(text) > max_length:
                return Finding("too-long", f"the {name} has {len(text):,} characters; the limit is {max_length:,.0f}")
        return None

    def check_ratio(self, example: Example) -> Finding | None:
        """Find a pair with an unusual length ratio."""
        target = example.target
        if target is None or not target or not example.source:
            return None
        ratio = (len(target) + _SMOOTHING) / (len(example.source) + _SMOOTHING)
        if self.ratio / self.ratio_factor <= ratio <= self.ratio * self.ratio_factor:
            return None
        return Finding(
            "ratio",
            f"source {len(example.source):,}, target {len(target):,} characters; "
            f"usual ratio {self.ratio:.2f}, within a factor of {self.ratio_factor:.1f}",
        )

    def check_long_run(self, example: Example) -> Finding | None:
        """Find a word of more than 100 characters, in languages with spaces between words."""
        spans = []
        for text, has_spaces in zip((example.source, example.target or ""), self.has_spaces, strict=True):
            should_search = len(text) > 100 and has_spaces
            spans.append(tuple(match.span() for match in _LONG_RUN.finditer(text)) if should_search else ())
        lengths = [end - start for side in spans for start, end in side]
        return Finding("long-word", f"{max(lengths):,} characters without a space", *spans) if lengths else None


def learn_lengths(sides: Sequence[Sequence[str]]) -> LengthStatistics:
    """Learn the limits from medians, which a few outliers do not move."""
    lengths = [np.array([len(text) for text in texts if text.strip()] or [1], float) for texts in sides]
    max_lengths = tuple(max(_NEVER_TOO_LONG, _compute_outlier_limit(np.log(side_lengths))) for side_lengths in lengths)
    space_shares = [
        sum(text.count(" ") for text in texts) / max(side_lengths.sum(), 1)
        for texts, side_lengths in zip(sides, lengths, strict=True)
    ]
    has_spaces = tuple(share > 0.04 for share in (*space_shares, *space_shares)[:2])
    if len(sides) < 2:
        return LengthStatistics(max_lengths, has_spaces=has_spaces)
    pairs = [(len(s) + _SMOOTHING, len(t) + _SMOOTHING) for s, t in zip(*sides, strict=True) if s.strip() and t.strip()]
    log_ratios = np.array([math.log(target / source) for source, target in pairs] or [0.0])
    center = float(np.median(log_ratios))
    spread = 1.4826 * float(np.median(np.abs(log_ratios - center)))
    return LengthStatistics(
        max_lengths, math.exp(center), math.exp(max(math.log(2), _MAX_DEVIATIONS * spread)), has_spaces
    )


def _compute_outlier_limit(log_lengths: NDArray[np.float64]) -> float:
    center = float(np.median(log_lengths))
    return math.exp(center + _MAX_DEVIATIONS * max(1.4826 * float(np.median(np.abs(log_lengths - center))), 0.2))
