"""Rule about truncated texts: one side stops in the middle of its sentence.

Three patterns are found, each relative to the statistics of the corpus. A single text is truncated if it is much
shorter than usual for its partner and lacks the final punctuation that its partner has. A whole side is truncated if
most of its texts lack final punctuation and stop inside words or after words that end no sentence. An export with a
maximum length leaves many texts of exactly that length.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.data.doctor.rules.rule import Finding
from regard.data.example import Example

_FINAL = frozenset(".!?…:;。！？．：；؟؛۔।॥։።॥។៕။")  # noqa: RUF001 - punctuation of other scripts
_CLOSING = "\"'”’“‘»«›‹)]}」』）】>*_ \t\u00a0\u200b\u200f"  # noqa: RUF001
_ALPHANUMERIC = re.compile(r"\w+")
_SMOOTHING = 15  # characters added to both sides, as for the length ratio
_MAX_SHARE_OF_USUAL = 0.75  # a truncated text has at most this share of its usual length
_MIN_TEXTS = 30  # texts with final punctuation that are needed to learn whether their partners have it, too
_MIN_AGREEMENT = 0.5  # of texts with final punctuation, the share whose partners have it, too
_MIN_CUT = 0.2  # of the texts of a truncated side, the share that stops inside a word or after a frequent one
_FREQUENT_COUNT = 12  # the most frequent words of a side: articles, prepositions, conjunctions
_MIN_FREQUENCY = 0.05  # of the texts contain a frequent word
_MAX_SAME_ENDING = 0.3  # of the suspects end with the same word
_MIN_PROSE = 0.97  # of the characters of prose are letters, digits, spaces and usual punctuation
_PROSE_PUNCTUATION = " .,;:!?…'\"-‐–—‘’‚“”„«»¿¡。、，！？；：「」।॥؟،"  # noqa: RUF001
_MAX_PROSE_TEXTS = 1000
_MIN_WITHOUT_FINAL = 0.4  # of the suspects have no final punctuation inside, either
_MIN_SPIKE = 10  # texts of exactly the maximum length
_SPIKE_FACTOR = 5  # times as many texts of the maximum length as of each length shortly below

_UNITS: dict[str, Callable[[str], int]] = {"characters": len, "words": lambda text: len(text.split())}


@dataclass(frozen=True, slots=True)
class SideTruncation:
    """How texts of one side are truncated in this corpus.

    `is_checked`: single texts can be judged. `is_systematic`: most texts of the side are truncated.
    `limits` are maximum lengths at which texts are cut, as (unit, length).
    """

    is_checked: bool = False
    is_systematic: bool = False
    limits: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class TruncationStatistics:
    """The usual length ratio (target over source), and how the texts of each side are truncated."""

    ratio: float = 1.0
    sides: tuple[SideTruncation, SideTruncation] = (SideTruncation(), SideTruncation())

    def check(self, example: Example) -> Finding | None:
        """Find a text that stops in the middle of its sentence."""
        if example.target is None:
            return None
        source, target = example.source.strip(), example.target.strip()
        if not source or not target:
            return None
        for name, text, partner, ratio, side in (
            ("target", target, source, self.ratio, self.sides[1]),
            ("source", source, target, 1 / self.ratio, self.sides[0]),
        ):
            for unit, limit in side.limits:
                if _UNITS[unit](text) == limit and not ends_sentence(text):
                    return Finding("truncated", f"the {name} has {limit} {unit}, the maximum, and no final punctuation")
            if not (side.is_checked or side.is_systematic) or ends_sentence(text) or not ends_sentence(partner):
                continue
            share = (len(text) + _SMOOTHING) / (len(partner) + _SMOOTHING) / ratio
            if side.is_systematic or share < _MAX_SHARE_OF_USUAL:
                return Finding("truncated", f"the {name} stops without final punctuation; {len(text):,} characters")
        return None


def ends_sentence(text: str) -> bool:
    """Whether a text ends with final punctuation, perhaps inside quotation marks or brackets.

    >>> ends_sentence('He said: "Go!"'), ends_sentence("He said that the")
    (True, False)
    """
    stripped = text.rstrip(_CLOSING)
    return bool(stripped) and stripped[-1] in _FINAL


def learn_truncation(sides: Sequence[Sequence[str]]) -> TruncationStatistics:
    """Learn from a sample of pairs; without pairs, truncation cannot be detected."""
    if len(sides) < 2:
        return TruncationStatistics()
    pairs = [(source.strip(), target.strip()) for source, target in zip(*sides, strict=True)]
    pairs = [pair for pair in pairs if all(pair)]
    if len(pairs) < _MIN_TEXTS:
        return TruncationStatistics()
    sources, targets = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    lengths = np.array([[len(source), len(target)] for source, target in pairs]) + _SMOOTHING
    ratio = float(np.median(lengths[:, 1] / lengths[:, 0]))
    return TruncationStatistics(ratio, (_learn_side(sources, targets), _learn_side(targets, sources)))


def _learn_side(texts: list[str], partners: list[str]) -> SideTruncation:
    has_end = np.array([ends_sentence(text) for text in texts])
    partner_has_end = np.array([ends_sentence(partner) for partner in partners])
    limits = tuple(_find_limits(texts, partners, has_end))
    if partner_has_end.sum() < _MIN_TEXTS:
        return SideTruncation(limits=limits)
    agreement = float(has_end[partner_has_end].mean())
    if agreement >= _MIN_AGREEMENT:
        return SideTruncation(is_checked=True, limits=limits)
    suspects = [text for text, ends, expected in zip(texts, has_end, partner_has_end, strict=True) if expected > ends]
    is_systematic = bool(
        partner_has_end.mean() >= 0.5
        and min(_measure_prose(texts), _measure_prose(partners)) >= _MIN_PROSE
        and np.mean([_FINAL.isdisjoint(text) for text in suspects]) >= _MIN_WITHOUT_FINAL
        and _measure_cut(texts, suspects) >= _MIN_CUT
    )
    return SideTruncation(is_systematic=is_systematic, limits=limits)


def _measure_prose(texts: list[str]) -> float:
    """The share of letters, digits, spaces and punctuation of prose; code and formulas have other characters, too."""
    characters = Counter("".join(texts[:_MAX_PROSE_TEXTS]))
    prose = sum(
        count for character, count in characters.items() if character.isalnum() or character in _PROSE_PUNCTUATION
    )
    return prose / max(characters.total(), 1)


def _measure_cut(texts: list[str], suspects: list[str]) -> float:
    """The share of suspects that stop inside a word, or after one of the most frequent words."""
    items = [_ALPHANUMERIC.findall(text.lower()) for text in texts]
    counts = Counter(item for text_items in items for item in text_items[:-1])
    frequent = {item for item, count in counts.most_common(_FREQUENT_COUNT) if count >= _MIN_FREQUENCY * len(texts)}
    prefixes = {item[:length] for item in counts for length in range(2, len(item))}
    endings = Counter(next(reversed(_ALPHANUMERIC.findall(text.lower())), "") for text in suspects)
    if max(endings.values(), default=0) > _MAX_SAME_ENDING * len(suspects):
        return 0.0  # an ending that most texts share belongs to their format
    cut = sum(
        count
        for ending, count in endings.items()
        if ending in frequent or (ending not in counts and ending in prefixes)
    )
    return cut / max(len(suspects), 1)


def _find_limits(texts: list[str], partners: list[str], has_end: NDArray[np.bool_]) -> list[tuple[str, int]]:
    """The maximum lengths that many texts have exactly, though their partners vary and are long."""
    limits = []
    for unit, measure in _UNITS.items():
        lengths, partner_lengths = (np.array([measure(text) for text in side]) for side in (texts, partners))
        limit = int(lengths.max())
        is_at_limit = lengths == limit
        count = int(is_at_limit.sum())
        first_below = int(0.8 * limit)
        below = ((lengths >= first_below) & ~is_at_limit).sum() / max(limit - first_below, 1)
        if limit < 5 or count < max(_MIN_SPIKE, 0.01 * len(texts)) or count <= _SPIKE_FACTOR * below:
            continue
        at_partner_limit = (partner_lengths[is_at_limit] == partner_lengths.max()).mean()
        is_short = np.median(lengths[is_at_limit] / partner_lengths[is_at_limit]) < np.median(lengths / partner_lengths)
        usual_end = float(has_end[~is_at_limit].mean()) if count < len(texts) else 0.0
        lacks_end = has_end[is_at_limit].mean() < 0.5 * max(usual_end, 0.1)
        if count < 0.5 * len(texts) and at_partner_limit < 0.5 and is_short and lacks_end:
            limits.append((unit, limit))
    return limits
