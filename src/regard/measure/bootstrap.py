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
from regard.measure.bleu_chrf import make_bleu_metric, make_chrf_metric
from regard.measure.error_rate import make_ter_metric
from regard.measure.score import References, check_pairs, reference_streams

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric

FloatArray = NDArray[np.float64]
METRICS: dict[str, Callable[[], "Metric"]] = {
    "bleu": make_bleu_metric,
    "chrf": make_chrf_metric,
    "ter": make_ter_metric,
}


@dataclass(frozen=True)
class Comparison:
    """One score of two systems on the same texts; `other` minus `one` is the difference."""

    metric: str
    baseline: float
    candidate: float
    difference: float
    low: float
    """95 % of the drawn differences lie between `low` and `high`."""
    high: float
    p: float
    """How often luck alone gives a difference as large."""
    signature: str

    @property
    def is_significant(self) -> bool:
        """Whether p is below 0.05 and 0 lies outside the interval: a few texts may pass the one and not the other."""
        return self.p < 0.05 and not self.low <= 0 <= self.high


def paired_bootstrap(
    baseline: Sequence[str],
    candidate: Sequence[str],
    references: References,
    metric: str = "bleu",
    samples: int = 1000,
    seed: int = 12345,
) -> Comparison:
    """Compare two systems by "bleu", "chrf" or "ter"; the same seed gives the same numbers.

    >>> texts = ["a b c d e", "f g h i j", "k l m n o", "p q r s t"]
    >>> found = paired_bootstrap(["a b c d x", "f g h i x", "k l m n x", "p q r s x"], texts, texts, samples=200)
    >>> found.candidate, found.difference > 0, found.is_significant
    (100.0, True, True)
    """
    check_pairs(baseline, references)
    check_pairs(candidate, references)
    if metric not in METRICS or samples < 1:
        raise RegardError(
            f"No test of {samples} drawings by '{metric}'.", fix=f"Use one of {', '.join(METRICS)}, and 1 or more."
        )
    scorer = METRICS[metric]()
    baseline_score, baseline_samples = _resample(scorer, baseline, references, samples, seed)
    candidate_score, candidate_samples = _resample(scorer, candidate, references, samples, seed)
    differences = candidate_samples - baseline_samples  # (samples)
    low, high = np.quantile(differences, (0.025, 0.975))
    # as sacreBLEU (and Moses before it) counts: how often a drawn difference exceeds the mean one by the real one
    magnitudes = np.abs(differences)
    exceeding = int((magnitudes - magnitudes.mean() > abs(candidate_score - baseline_score)).sum())
    p = (
        (exceeding + 1) / (samples + 1) if candidate_score != baseline_score else 1.0
    )  # sacreBLEU calls a system clearly unlike itself
    signature = f"{scorer.get_signature()}|bs:{samples}|seed:{seed}"
    return Comparison(
        metric, baseline_score, candidate_score, candidate_score - baseline_score, float(low), float(high), p, signature
    )


def _resample(
    scorer: "Metric", texts: Sequence[str], references: References, samples: int, seed: int
) -> tuple[float, FloatArray]:
    """The score of a system, and its scores on all drawings (samples)."""
    statistics = np.array(scorer._extract_corpus_statistics(texts, reference_streams(references)), np.float64)  # type: ignore[arg-type]
    indices = np.random.default_rng(seed).choice(len(texts), size=(samples, len(texts)), replace=True)
    resampled = np.stack([np.bincount(row, minlength=len(texts)) @ statistics for row in indices])  # (samples, sums)
    scores = [_compute_score(scorer, row) for row in (statistics.sum(axis=0), *resampled)]
    return scores[0], np.array(scores[1:])


def _compute_score(scorer: "Metric", statistics: FloatArray) -> float:
    value = float(scorer._compute_score_from_stats(statistics.tolist()).score)
    return value if scorer.__class__.__name__ == "TER" else min(value, 100.0)
