"""Decide whether a trained model is usable, and estimate how much more training it needs.

Every metric has a threshold (`THRESHOLDS`), computed from the validation labels where needed: a loss must be clearly
below the label entropy, an accuracy above the share of the most frequent label. A model above the threshold is not
necessarily good, but its output depends on its input.

The forecast assumes that a score is linear in the logarithm of the steps, which is roughly true early in training. It
uses the run's own validations.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.base.formatting import format_duration
from regard.config.task_spec import Metric
from regard.tasks.validation import proportion_error
from regard.training.event_lines import format_score
from regard.training.validate import HIGHER_IS_BETTER

MIN_CHRF, MIN_BLEU = 25.0, 5.0  # below, a translation repeats frequent words instead of translating the source
MAX_ENTROPY_SHARE = 0.75  # of the labels' entropy; a bigram model of English characters has 0.74
MAX_GROWTH = 100  # no forecast beyond this multiple of the completed steps
GROWTH_WITHOUT_TREND = 4
MIN_POINTS = 3  # validations of a trend

Counts = NDArray[np.int64]  # how often each label occurs in the validation data


@dataclass(frozen=True)
class Shortfall:
    """Why a model is not usable yet, and the estimated number of additional steps (0: more training does not help)."""

    text: str
    more_steps: int


def _entropy(counts: Counts) -> float:
    """Return the loss of a model that predicts the label frequencies, in nats per label."""
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log(shares)).sum())


def _majority_accuracy(counts: Counts) -> float:
    """Return the accuracy of always predicting the most frequent label, and twice its standard error."""
    share = float(counts.max() / counts.sum())
    return share + 2 * proportion_error(share, int(counts.sum()))


def _majority_f1(counts: Counts) -> float:
    """Return the macro F1 of always predicting the most frequent label, and twice the standard error of its share."""
    share = float(counts.max() / counts.sum())
    return 2 * share / (1 + share) / max(counts.size, 1) + 2 * proportion_error(share, int(counts.sum()))


THRESHOLDS: Mapping[Metric, tuple[Callable[[Counts], float], str]] = {  # the threshold, and what it means
    "chrf": (lambda _: MIN_CHRF, "translations below it are rarely about their source"),
    "bleu": (lambda _: MIN_BLEU, "translations below it are rarely about their source"),
    "loss": (lambda counts: MAX_ENTROPY_SHARE * _entropy(counts), "three quarters of the loss of label frequencies"),
    "perplexity": (
        lambda counts: math.exp(MAX_ENTROPY_SHARE * _entropy(counts)),
        "three quarters of the loss of label frequencies",
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
    rate: str,
    can_improve: bool = True,
) -> Shortfall | None:
    """Return why a model is not usable yet; None if it is usable or its metric has no threshold.

    Args:
        metric: The metric that selects the best model.
        value: Its best score.
        counts: Label counts in the validation data.
        history: (step, score) of every validation.
        seconds_per_step: Measured in this run, including validations; None if not measured.
        rate: The learning rate setting, which may be too high if the model does not learn.
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
        advice = f"use more or different data, a larger model or a lower {rate}"
        return Shortfall(f"{text}. Longer training will not help: {advice}.", 0)
    steps = history[-1][0]
    needed = forecast_steps(history, threshold)
    more = (GROWTH_WITHOUT_TREND - 1) * steps if needed is None else max(1, needed - steps)
    amount = f"{more:,} more steps"
    if seconds_per_step is not None:
        amount = f"{format_duration(more * seconds_per_step)} more on this machine"
    if needed is None:
        advice = f"the run is too short or {rate} too high. Try a tenth of it, or at least {amount}"
        return Shortfall(f"{text}; the scores show no clear trend: {advice}.", more)
    return Shortfall(f"{text}; by the trend of this run, about {amount}.", more)


def forecast_steps(history: Sequence[tuple[int, float]], threshold: float) -> int | None:
    """Return the number of steps after which scores reach the threshold; None if they do not approach it.

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
