"""Likelihood reports, and the temperature that calibrates a model."""

import math

import pytest

from regard.measure.calibration import fit_temperature
from regard.tasks.evaluation.likelihood import summarize_likelihood
from regard.tasks.scorer import ScoredText, Scorer
from regard.tasks.translation.translator import Translator
from tests.tasks.factories import TEXTS, make_encoder_decoder, make_tokenizers, make_translator_settings


def test_summarize_likelihood_adds_up() -> None:
    half, tenth = math.log(0.5), math.log(0.1)
    scored = [
        ScoredText("äb", (5, 2), (half, tenth), (half, half), (True, False)),
        ScoredText("", (2,), (half,), (half,), (True,)),
    ]
    report = summarize_likelihood(scored, temperature=1.5)
    assert (report.tokens, report.bytes, report.temperature) == (3, 3, 1.5)
    assert report.perplexity == pytest.approx((2 * 2 * 10) ** (1 / 3))
    assert report.bits_per_byte == pytest.approx(math.log2(40) / 3)
    assert report.accuracy == pytest.approx(2 / 3)
    assert report.confidence == pytest.approx(0.5)
    assert report.calibration_error == pytest.approx(2 / 3 - 0.5)
    assert report.calibration_error_equal_mass == pytest.approx(0.5)  # one token per bin


def test_a_fitted_temperature_lowers_the_perplexity() -> None:
    settings = make_translator_settings()
    scorer = Scorer(make_encoder_decoder(settings), make_tokenizers(), settings)
    translator = Translator(scorer.model, make_tokenizers(), settings)  # type: ignore[arg-type]
    translations = translator.translate([*TEXTS[:2], "two"], max_new_tokens=9)
    targets, sources = [*(translation.text for translation in translations), "zwei"], [*TEXTS[:2], "two", "two"]
    calibrated_scorer = translator.make_scorer(fit_temperature(scorer.curve(targets, sources)))
    before, after = (summarize_likelihood(each.score(targets, sources)) for each in (scorer, calibrated_scorer))
    assert calibrated_scorer.temperature != 1.0
    assert after.perplexity < before.perplexity
    assert scorer.temperature == 1.0
