"""Metrics for model outputs, independent of torch: translation quality, labels, likelihood, calibration, diversity."""

from regard.measure.alignment import alignment_error
from regard.measure.bleu_chrf import bleu, chrf, exact_match
from regard.measure.bootstrap import paired_bootstrap
from regard.measure.breakdown import count_words, score_by_frequency, score_by_length
from regard.measure.calibration import calibration_error, fit_temperature
from regard.measure.classification import make_confusion_matrix
from regard.measure.diversity import distinct, self_bleu
from regard.measure.entities import count_entities, find_entities
from regard.measure.error_rate import cer, ter, wer
from regard.measure.label_scores import compare_labels, score_labels
from regard.measure.likelihood import bits_per_byte, perplexity
from regard.measure.metric import Score

__all__ = [
    "Score",
    "alignment_error",
    "bits_per_byte",
    "bleu",
    "calibration_error",
    "cer",
    "chrf",
    "compare_labels",
    "count_entities",
    "count_words",
    "distinct",
    "exact_match",
    "find_entities",
    "fit_temperature",
    "make_confusion_matrix",
    "paired_bootstrap",
    "perplexity",
    "score_by_frequency",
    "score_by_length",
    "score_labels",
    "self_bleu",
    "ter",
    "wer",
]
