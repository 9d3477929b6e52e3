"""Paired bootstrap resampling (Koehn 2004): is one system significantly better than another?

The test set is resampled with replacement many times, and both systems are scored on every sample. The sentence
statistics and the definition of the p-value are sacreBLEU's. sacreBLEU's paired test does not report a confidence
interval for the difference and reads the seed from the environment, so the resampling is implemented here; a test
compares the two.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from regard.base.errors import RegardError
from regard.measure.bleu_chrf import make_bleu_metric, make_chrf_metric
from regard.measure.error_rate import make_ter_metric
from regard.measure.metric import References, check_pairs, reference_streams

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
    """A metric of two systems on the same texts; `difference` is candidate minus baseline."""

    metric: str
    baseline: float
    candidate: float
    difference: float
    low: float
    """95% of the resampled differences lie between `low` and `high`."""
    high: float
    p: float
    """The p-value: the probability of a difference this large between equally good systems."""
    signature: str

    @property
    def is_significant(self) -> bool:
        """Whether p < 0.05 and the interval excludes 0; with few texts one may hold without the other."""
        return self.p < 0.05 and not self.low <= 0 <= self.high


def paired_bootstrap(
    baseline: Sequence[str],
    candidate: Sequence[str],
    references: References,
    metric: str = "bleu",
    samples: int = 1000,
    seed: int = 12345,
) -> Comparison:
    """Compare two systems by paired bootstrap resampling.

    Args:
        baseline: The translations of the first system.
        candidate: The translations of the second system.
        references: One reference per text, or several.
        metric: "bleu", "chrf" or "ter".
        samples: The number of bootstrap samples.
        seed: Random seed; the same seed gives the same result.

    Raises:
        RegardError: If the numbers of texts differ, or the metric is unknown.

    >>> texts = ["a b c d e", "f g h i j", "k l m n o", "p q r s t"]
    >>> result = paired_bootstrap(["a b c d x", "f g h i x", "k l m n x", "p q r s x"], texts, texts, samples=200)
    >>> result.candidate, result.difference > 0, result.is_significant
    (100.0, True, True)
    """
    check_pairs(baseline, references)
    check_pairs(candidate, references)
    if metric not in METRICS or samples < 1:
        raise RegardError(
            f"Cannot compare by '{metric}' with {samples} samples.",
            hint=f"Use one of {', '.join(METRICS)}, and at least 1 sample.",
        )
    scorer = METRICS[metric]()
    baseline_score, baseline_samples = _resample(scorer, baseline, references, samples, seed)
    candidate_score, candidate_samples = _resample(scorer, candidate, references, samples, seed)
    signature = f"{scorer.get_signature()}|bs:{samples}|seed:{seed}"
    return compare_samples(metric, baseline_score, candidate_score, baseline_samples, candidate_samples, signature)


def compare_samples(
    metric: str,
    baseline: float,
    candidate: float,
    baseline_samples: FloatArray,
    candidate_samples: FloatArray,
    signature: str,
) -> Comparison:
    """Compare two scores, given the scores of both systems on the same bootstrap samples, (samples) each."""
    differences = candidate_samples - baseline_samples
    low, high = confidence_interval(differences)
    # As in sacreBLEU and Moses: the fraction of sampled differences that exceed their mean by the observed difference.
    magnitudes = np.abs(differences)
    exceeding = int((magnitudes - magnitudes.mean() > abs(candidate - baseline)).sum())
    # Equal scores give p = 1; with sacreBLEU's formula a system would differ significantly from itself.
    p = (exceeding + 1) / (len(differences) + 1) if candidate != baseline else 1.0
    return Comparison(metric, baseline, candidate, candidate - baseline, low, high, p, signature)


def confidence_interval(samples: FloatArray) -> tuple[float, float]:
    """Return the bounds of the central 95% of the resampled values."""
    low, high = np.quantile(samples, (0.025, 0.975))
    return float(low), float(high)


def resample_texts(texts: int, samples: int, seed: int) -> Iterator[NDArray[np.int64]]:
    """Yield the number of occurrences of each text in each bootstrap sample, (texts)."""
    random = np.random.default_rng(seed)
    for _ in range(samples):
        yield np.bincount(random.integers(0, texts, size=texts), minlength=texts)


def _resample(
    scorer: "Metric", texts: Sequence[str], references: References, samples: int, seed: int
) -> tuple[float, FloatArray]:
    """Return the score of a system, and its scores on all bootstrap samples (samples)."""
    statistics = np.array(scorer._extract_corpus_statistics(texts, reference_streams(references)), np.float64)  # type: ignore[arg-type]
    resampled = np.stack([counts @ statistics for counts in resample_texts(len(texts), samples, seed)])
    values = [
        float(scorer._compute_score_from_stats(row.tolist()).score) for row in (statistics.sum(axis=0), *resampled)
    ]
    scores = values if scorer.__class__.__name__ == "TER" else [min(value, 100.0) for value in values]
    return scores[0], np.array(scores[1:])
