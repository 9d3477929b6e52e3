"""Scores of outputs, without torch: how good a translation is, how surprised a model was."""

from regard.measure.alignment import alignment_error
from regard.measure.bleu_chrf import bleu, chrf
from regard.measure.bootstrap import paired_bootstrap
from regard.measure.breakdown import count_words, score_by_frequency, score_by_length
from regard.measure.calibration import calibration_error, fit_temperature
from regard.measure.diversity import distinct, self_bleu
from regard.measure.error_rate import error_rate, ter
from regard.measure.exact import exact_match
from regard.measure.likelihood import bits_per_byte, perplexity
from regard.measure.score import Score

__all__ = [
    "Score",
    "alignment_error",
    "bits_per_byte",
    "bleu",
    "score_by_frequency",
    "score_by_length",
    "calibration_error",
    "chrf",
    "count_words",
    "distinct",
    "error_rate",
    "exact_match",
    "fit_temperature",
    "paired_bootstrap",
    "perplexity",
    "self_bleu",
    "ter",
]
