"""Scores of outputs, without torch: how good a translation is, how surprised a model was."""

from regard.measure.exact import exact_match
from regard.measure.likelihood import bits_per_byte, perplexity
from regard.measure.overlap import bleu, chrf
from regard.measure.score import Score

__all__ = ["Score", "bits_per_byte", "bleu", "chrf", "exact_match", "perplexity"]
