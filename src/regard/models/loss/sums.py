"""Loss settings and results."""

from typing import NamedTuple

from torch import Tensor


class LossSettings(NamedTuple):
    """How a loss is computed."""

    label_smoothing: float = 0.0
    """Probability mass spread uniformly over the vocabulary."""
    logit_rows: int = 0
    """Rows of logits in memory at a time; 0 for all."""
    should_predict: bool = False
    """Whether classifiers return their predictions too."""


class LossSums(NamedTuple):
    """Sums over all positions; divide by their number for means."""

    total: Tensor  # () with label smoothing; has a gradient
    negative_log_likelihood: Tensor  # () without smoothing: the exponent of perplexity
    correct: Tensor  # () positions where the argmax (the first, in a tie) is the label
    predictions: Tensor | None = None  # in evaluation mode: the labels of classifiers and taggers, in the shape of the
    # labels; the vectors (2, B, D) of pairs
