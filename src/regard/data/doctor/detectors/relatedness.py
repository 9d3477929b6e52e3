"""Check whether the two sides of a corpus belong together, or whether one of them was shuffled or sorted.

Two signs show that a target belongs to its source: their lengths correlate, and words on both sides co-occur. The
second is tested on pairs that were not used to count: a source must agree with its own target more often than with the
target of another row. Only if both signs are missing do the sides count as unrelated.
"""

import re
from collections import Counter
from collections.abc import Sequence
from enum import Enum
from itertools import product

import numpy as np

_MIN_PAIRS = 100  # pairs needed for any statement
_MIN_PAIRS_TO_REFUSE = 500  # with fewer, pairs that are loosely related (questions and answers) may look unrelated
_MAX_PAIRS = 4000  # pairs that are used
_MIN_SPREAD = 0.2  # standard deviation of log-lengths on both sides: equal lengths carry no information
_MAX_LENGTH_SCORE, _MAX_FEATURE_SCORE = 4.0, 3.0  # standard deviations above chance
_MAX_FEATURES = 20  # words of a text that are used
_MAX_SHARE = 0.2  # more frequent words carry no information
_ALPHANUMERIC = re.compile(r"\w+")


class Relation(Enum):
    """Whether the sides belong together. DOUBTFUL: they seem unrelated, but there are too few pairs to be sure."""

    RELATED = "related"
    UNKNOWN = "unknown"
    DOUBTFUL = "doubtful"
    UNRELATED = "unrelated"


def judge_relation(sources: Sequence[str], targets: Sequence[str]) -> Relation:
    """Judge whether the targets belong to the sources, from an even sample of the corpus."""
    pairs = [pair for pair in zip(sources, targets, strict=True) if pair[0].strip() and pair[1].strip()]
    if len(pairs) < _MIN_PAIRS:
        return Relation.UNKNOWN
    pairs = pairs[:: -(-len(pairs) // _MAX_PAIRS)]
    log_lengths = np.log(np.array([[len(source), len(target)] for source, target in pairs], float) + 5)
    if log_lengths.std(axis=0).min() < _MIN_SPREAD:
        return Relation.UNKNOWN
    correlation = float(np.corrcoef(log_lengths.T)[0, 1])
    if correlation * len(pairs) ** 0.5 > _MAX_LENGTH_SCORE or _score_features(pairs) > _MAX_FEATURE_SCORE:
        return Relation.RELATED
    return Relation.UNRELATED if len(pairs) >= _MIN_PAIRS_TO_REFUSE else Relation.DOUBTFUL


def _score_features(pairs: Sequence[tuple[str, str]]) -> float:
    """How often a source agrees with its own target rather than another one: standard deviations above chance."""
    features = [tuple(map(set, sides)) for sides in zip(*map(_split_side, zip(*pairs, strict=True)), strict=True)]
    counted, tested = features[::2], features[1::2]
    frequencies = [Counter(feature for sides in counted for feature in sides[side]) for side in (0, 1)]
    max_count = max(2, _MAX_SHARE * len(counted))
    useful = [{name for name, count in side.items() if 2 <= count <= max_count} for side in frequencies]
    joint_counts: Counter[tuple[str, str]] = Counter()
    for source, target in counted:
        joint_counts.update(product(_select(source, useful[0]), _select(target, useful[1])))

    def score(source: set[str], target: set[str]) -> float:
        total = float(len({name for name in source & target if frequencies[0][name] <= max_count}))
        left_features = _select(source, useful[0])
        for right in _select(target, useful[1]):
            total += max(
                (
                    2 * joint_counts[left, right] / (frequencies[0][left] + frequencies[1][right])
                    for left in left_features
                    if joint_counts[left, right] > 1
                ),
                default=0.0,
            )
        return total

    offset = len(tested) // 2
    wins = losses = 0
    for row, (source, target) in enumerate(tested):
        own, distant = score(source, target), score(source, tested[(row + offset) % len(tested)][1])
        wins, losses = wins + (own > distant), losses + (own < distant)
    return (wins - losses) / max(wins + losses, 1) ** 0.5


def _split_side(texts: Sequence[str]) -> list[list[str]]:
    """The words of each text, or its character pairs if the texts are single words."""
    words = [_ALPHANUMERIC.findall(text.lower()) for text in texts]
    if np.median([len(items) for items in words]) >= 3:
        return words
    return [[text[index : index + 2] for index in range(max(len(text) - 1, 1))] for text in map(str.lower, texts)]


def _select(features: set[str], useful: set[str]) -> list[str]:
    return sorted(features & useful)[:_MAX_FEATURES]
