"""Metrics of model outputs, without torch: translation quality, likelihood, calibration, diversity."""

from regard.measure.alignment import alignment_error
from regard.measure.bleu_chrf import bleu, chrf, exact_match
from regard.measure.bootstrap import paired_bootstrap
from regard.measure.breakdown import count_words, score_by_frequency, score_by_length
from regard.measure.calibration import calibration_error, fit_temperature
from regard.measure.diversity import distinct, self_bleu
from regard.measure.error_rate import ter, wer
from regard.measure.likelihood import bits_per_byte, perplexity
from regard.measure.metric import Score

__all__ = [
    "Score",
    "alignment_error",
    "bits_per_byte",
    "bleu",
    "calibration_error",
    "chrf",
    "count_words",
    "distinct",
    "exact_match",
    "fit_temperature",
    "paired_bootstrap",
    "perplexity",
    "score_by_frequency",
    "score_by_length",
    "self_bleu",
    "ter",
    "wer",
]
