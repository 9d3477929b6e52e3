"""Is a trained model good enough to use, and if not, how much longer would training take?

Every metric has its own threshold (`THRESHOLDS`), computed from the labels of the validation data where a score alone
says nothing: a loss must be clearly below the entropy of the labels, an accuracy above the most frequent label. A model
above its threshold is not good, but its output depends on its input.

The forecast assumes that a score is linear in the logarithm of the steps, which holds roughly at the start of
training; it uses the validations of the run itself.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.base.formatting import format_duration
from regard.config.training import Metric
from regard.training.event_lines import format_score
from regard.training.validate import HIGHER_IS_BETTER, proportion_error

MIN_CHRF, MIN_BLEU = 25.0, 5.0  # below, a translation repeats frequent words instead of saying what the source says
MAX_ENTROPY_SHARE = 0.75  # of the labels' entropy; a bigram model of English characters has 0.74
MAX_GROWTH = 100  # no forecast beyond this many times the steps that were made
GROWTH_WITHOUT_TREND = 4
MIN_POINTS = 3  # validations of a trend

Counts = NDArray[np.int64]  # how often each label occurs in the validation data


@dataclass(frozen=True)
class Shortfall:
    """Why a model is not usable yet, and how many more steps it may need (0: more training does not help)."""

    text: str
    more_steps: int


def _entropy(counts: Counts) -> float:
    """Return the loss of a model that predicts the frequencies of the labels, in nats per label."""
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log(shares)).sum())


def _majority_accuracy(counts: Counts) -> float:
    """Return the accuracy of always answering the most frequent label, and twice its standard error."""
    share = float(counts.max() / counts.sum())
    return share + 2 * proportion_error(share, int(counts.sum()))


def _majority_f1(counts: Counts) -> float:
    """Return the macro F1 of always answering the most frequent label, and twice the standard error of its share."""
    share = float(counts.max() / counts.sum())
    return 2 * share / (1 + share) / max(counts.size, 1) + 2 * proportion_error(share, int(counts.sum()))


THRESHOLDS: Mapping[Metric, tuple[Callable[[Counts], float], str]] = {  # the threshold, and what it means
    "chrf": (lambda _: MIN_CHRF, "translations below it are rarely about their source"),
    "bleu": (lambda _: MIN_BLEU, "translations below it are rarely about their source"),
    "loss": (lambda counts: MAX_ENTROPY_SHARE * _entropy(counts), "three quarters of what frequencies alone give"),
    "perplexity": (
        lambda counts: math.exp(MAX_ENTROPY_SHARE * _entropy(counts)),
        "the loss is then three quarters of what frequencies alone give",
    ),
    "accuracy": (_majority_accuracy, "clearly more than the most frequent label alone"),
    "f1": (_majority_f1, "clearly more than the most frequent label alone"),
}


def find_shortfall(
    metric: Metric,
    value: float | None,
    counts: Counts,
    history: Sequence[tuple[int, float]],
    seconds_per_step: float | None,
    *,
    can_improve: bool = True,
) -> Shortfall | None:
    """Return why a model is not usable yet; None if it is, or if its metric has no threshold.

    Args:
        metric: The metric that selects the best model.
        value: Its best score.
        counts: How often each label occurs in the validation data.
        history: (step, score) of every validation.
        seconds_per_update: Measured in this run, validations included; None if it was not measured.
        can_improve: False if the run ended because validation no longer improves.
    """
    if metric not in THRESHOLDS or value is None or not counts.sum() or not history:
        return None
    compute_threshold, meaning = THRESHOLDS[metric]
    threshold = compute_threshold(counts)
    if value >= threshold if metric in HIGHER_IS_BETTER else value <= threshold:
        return None
    word = "from" if metric in HIGHER_IS_BETTER else "up to"
    limit = f"usable {word} about {format_score(metric, threshold)}: {meaning}"
    text = f"{metric.replace('chrf', 'chrF')} {format_score(metric, value)}: not usable yet ({limit})"
    if not can_improve:
        return Shortfall(f"{text}. Longer training does not help: give more or other data, or a larger model.", 0)
    steps = history[-1][0]
    needed = forecast_steps(history, threshold)
    more = (GROWTH_WITHOUT_TREND - 1) * steps if needed is None else max(1, needed - steps)
    amount = f"{more:,} more steps"
    if seconds_per_step is not None:
        amount = f"{format_duration(more * seconds_per_step)} more on this machine"
    if needed is None:
        return Shortfall(f"{text}; its scores show no clear trend yet: try at least {amount}.", more)
    return Shortfall(f"{text}; by the trend of this run, about {amount}.", more)


def forecast_steps(history: Sequence[tuple[int, float]], threshold: float) -> int | None:
    """Return the steps after which the scores reach the threshold; None if they do not move towards it.

    >>> forecast_steps([(5, 0.0), (10, 5.0), (20, 10.0)], 20.0)
    80
    >>> forecast_steps([(10, 5.0), (20, 10.0)], 20.0) is None  # two points are no trend
    True
    """
    steps, values = (np.array(column, np.float64) for column in zip(*history, strict=True))
    if len(set(steps.tolist())) < MIN_POINTS or not np.isfinite(values).all():
        return None
    slope = float(np.polyfit(np.log(steps), values, 1)[0])
    distance = threshold - float(values[-1])
    if slope * distance <= 0 or distance / slope > math.log(MAX_GROWTH):
        return None
    return math.ceil(round(steps[-1] * math.exp(distance / slope), 6))
