"""Is one system really better than another, or was it luck? Paired bootstrap (Koehn 2004).

The test set is drawn anew many times, with replacement, and both systems are scored on each drawing. The sums of every
sentence and the p-value are sacreBLEU's. Its own paired test tells no interval of the difference and lets the
environment choose the seed, so the drawing is done here; a test holds the two against each other.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from regard.base.errors import RegardError
from regard.measure.edits import ter_metric
from regard.measure.overlap import bleu_metric, chrf_metric
from regard.measure.score import References, check_pairs, streams

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric

Numbers = NDArray[np.float64]
METRICS: dict[str, Callable[[], "Metric"]] = {"bleu": bleu_metric, "chrf": chrf_metric, "ter": ter_metric}


@dataclass(frozen=True)
class Comparison:
    """One score of two systems on the same texts; `other` minus `one` is the difference."""

    metric: str
    one: float
    other: float
    difference: float
    low: float
    """95 % of the drawn differences lie between `low` and `high`."""
    high: float
    p: float
    """How often luck alone gives a difference as large."""
    signature: str

    @property
    def clear(self) -> bool:
        """Whether p is below 0.05 and 0 lies outside the interval: a few texts may pass the one and not the other."""
        return self.p < 0.05 and not self.low <= 0 <= self.high


def paired_bootstrap(
    one: Sequence[str],
    other: Sequence[str],
    references: References,
    metric: str = "bleu",
    samples: int = 1000,
    seed: int = 12345,
) -> Comparison:
    """Compare two systems by "bleu", "chrf" or "ter"; the same seed gives the same numbers.

    >>> texts = ["a b c d e", "f g h i j", "k l m n o", "p q r s t"]
    >>> found = paired_bootstrap(["a b c d x", "f g h i x", "k l m n x", "p q r s x"], texts, texts, samples=200)
    >>> found.other, found.difference > 0, found.clear
    (100.0, True, True)
    """
    check_pairs(one, references)
    check_pairs(other, references)
    if metric not in METRICS or samples < 1:
        raise RegardError(
            f"No test of {samples} drawings by '{metric}'.", fix=f"Use one of {', '.join(METRICS)}, and 1 or more."
        )
    judge = METRICS[metric]()
    first, firsts = _drawn(judge, one, references, samples, seed)
    second, seconds = _drawn(judge, other, references, samples, seed)
    differences = seconds - firsts  # (samples)
    low, high = np.quantile(differences, (0.025, 0.975))
    # as sacreBLEU (and Moses before it) counts: how often a drawn difference exceeds the mean one by the real one
    sizes = np.abs(differences)
    beyond = int((sizes - sizes.mean() > abs(second - first)).sum())
    p = (beyond + 1) / (samples + 1) if second != first else 1.0  # sacreBLEU calls a system clearly unlike itself
    signature = f"{judge.get_signature()}|bs:{samples}|seed:{seed}"
    return Comparison(metric, first, second, second - first, float(low), float(high), p, signature)


def _drawn(
    judge: "Metric", texts: Sequence[str], references: References, samples: int, seed: int
) -> tuple[float, Numbers]:
    """The score of a system, and its scores on all drawings (samples)."""
    sums = np.array(judge._extract_corpus_statistics(texts, streams(references)), np.float64)  # type: ignore[arg-type]
    places = np.random.default_rng(seed).choice(len(texts), size=(samples, len(texts)), replace=True)
    drawn = np.stack([np.bincount(row, minlength=len(texts)) @ sums for row in places])  # (samples, sums)
    scores = [_capped(judge, row) for row in (sums.sum(axis=0), *drawn)]
    return scores[0], np.array(scores[1:])


def _capped(judge: "Metric", sums: Numbers) -> float:
    value = float(judge._compute_score_from_stats(sums.tolist()).score)
    return value if judge.__class__.__name__ == "TER" else min(value, 100.0)
