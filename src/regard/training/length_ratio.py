"""Maximum length of a translation relative to its source, from corpus statistics.

The ratio limits the search: beam search stops when no open hypothesis can win even at the maximum length, so a ratio
ten times too large makes every search about ten times slower. The ratio is therefore robust to a few misaligned pairs.
"""

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from regard.config.inputs import MelConfig, PatchesConfig
from regard.data.mel import count_frames
from regard.data.shards.shard import Shards

LIMIT = 1000.0  # as in the settings
# The 99.9th percentile cuts almost no target, but one odd pair in a thousand decides it. So it is at most 1.5 times the
# 99th and 4 times the median: in Multi30k, Europarl, Tatoeba, CMUdict and SCAN it is at most 1.5 and 3.7 times.
QUANTILE = 0.999
MAX_FACTORS = {0.99: 1.5, 0.5: 4.0}


def compute_max_length_ratio(pairs: Shards, media: MelConfig | PatchesConfig | None = None) -> float:
    """Return a ratio of target to source tokens, eos included, that very few pairs exceed.

    The frames of an audio clip and the vectors of an image count as source tokens; `media` gives their number.
    """
    sources = (_count_source(shard.lengths[0], media) for shard in pairs.shards)
    targets = (shard.lengths[1] + 1.0 for shard in pairs.shards)
    return estimate_max_length_ratio(target / source for target, source in zip(targets, sources, strict=True))


def _count_source(lengths: NDArray[np.uint32], media: MelConfig | PatchesConfig | None) -> NDArray[np.integer]:
    if isinstance(media, MelConfig):
        return count_frames(lengths, media)
    if isinstance(media, PatchesConfig):
        return lengths // (media.channels * media.patch**2) + int(media.class_token)
    return lengths + 1


def estimate_max_length_ratio(ratios: Iterable[NDArray[np.float64]]) -> float:
    """Return a high quantile of the ratios that is robust to outliers, rounded up to one decimal.

    >>> normal = np.linspace(0.8, 1.6, 9980)
    >>> estimate_max_length_ratio([normal]), estimate_max_length_ratio([normal, np.full(20, 60.0)])
    (1.6, 2.4)
    """
    all_ratios = np.concatenate(list(ratios))
    high, *typical = np.quantile(all_ratios, [QUANTILE, *MAX_FACTORS]).tolist()
    bounds = (factor * value for factor, value in zip(MAX_FACTORS.values(), typical, strict=True))
    return min(LIMIT, math.ceil(10 * min(high, *bounds)) / 10)
