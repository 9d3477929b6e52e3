"""The quality estimate: its fit, its promise, its file."""

import json
import random
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

import regard
from regard.base.errors import DamagedError, RegardError
from regard.measure.sentence_chrf import sentence_chrf
from regard.store.calibration import QUALITY_FILE, copy_with
from regard.tasks.results import EMPTY, Translation
from regard.tasks.search import Beam
from regard.tasks.translation.quality import Quality, find_min_quality, fit_quality
from regard.text.familiarity import UNLIKE
from tests.tasks.factories import TEXTS, write_translator

REFERENCE = "the little dog runs over the green meadow"


def make_pairs(count: int, seed: int = 0, *, is_informative: bool = True) -> tuple[list[list[int]], list[Translation]]:
    """Return sources and translations; the lower its log-probability, the less a translation has of the reference."""
    generator, sources, translations = random.Random(seed), [], []
    for _ in range(count):
        quality = generator.random()
        size = int(quality * len(REFERENCE))
        logprob = -2 + 2 * quality + generator.gauss(0, 0.1) if is_informative else -1 - generator.random()
        sources.append([generator.randrange(10) for _ in range(generator.randint(5, 12))])
        translations.append(Translation(REFERENCE[:size] + "xyz", logprob, (1,) * 8, (), ended=True))
    return sources, translations


def fit(count: int = 1000, **options: Any) -> Quality:
    sources, translations = make_pairs(count, **options)
    chrf = [sentence_chrf(translation.text, REFERENCE) for translation in translations]
    return fit_quality(sources, translations, chrf, Beam(), 20)


def test_quality_separates_good_from_poor_translations() -> None:
    quality = fit()
    sources, translations = make_pairs(500, seed=9)
    results = [quality.annotate(source, each, Beam()) for source, each in zip(sources, translations, strict=True)]
    lengths = {rating: [len(each.text) for each in results if each.rating == rating] for rating in ("good", "poor")}
    assert quality.accepted > 0.6  # 75 % are above the percentile, and the estimate is nearly exact
    assert quality.bound <= 0.1
    assert fmean(lengths["good"]) > 2 * fmean(lengths["poor"])
    assert all(each.rating in ("good", "check", "poor") for each in results)


def test_quality_without_information_accepts_nothing() -> None:
    quality = fit(is_informative=False)
    assert quality.good is None
    assert quality.rate(1.0) == "check"
    with pytest.raises(RegardError, match="cannot promise"):
        quality.find_minimum("good")


def test_annotate_gives_no_estimate_for_another_search_or_without_scores() -> None:
    quality = fit(300)
    (source, *_), (translation, *_) = make_pairs(1)
    assert quality.annotate(source, translation, Beam(1)).quality is None
    unscored = Translation("x", float("nan"), (1, 2), (), ended=True)
    assert quality.annotate(source, unscored, Beam()).quality is None
    assert quality.annotate([], translation, Beam()) is translation
    assert quality.annotate([15] * 8, translation, Beam()).warnings == (UNLIKE,)


def test_a_translation_with_an_alarm_is_not_rated_good() -> None:
    quality = fit()
    sources, translations = make_pairs(50, seed=9)
    results = zip(sources, translations, strict=True)
    source, best = max(results, key=lambda pair: quality.estimate(pair[0], pair[1]))
    usual = quality.annotate(source, best, Beam())
    strange = quality.annotate([15] * len(source), best, Beam())
    assert (usual.rating, usual.warnings) == ("good", ())
    assert (strange.rating, strange.warnings) == ("check", (UNLIKE,))
    assert strange.is_below(quality.find_minimum("good"))


def test_find_minimum_reads_words_and_numbers() -> None:
    quality = fit(500)
    assert (quality.find_minimum("good"), quality.find_minimum("check")) == (quality.good, 0.5)
    assert quality.find_minimum("0.25") == 0.25
    for wrong in ("2", "-1", "nan", "fine"):
        with pytest.raises(RegardError, match="no quality"):
            quality.find_minimum(wrong)
    with pytest.raises(RegardError, match="no quality estimate"):
        find_min_quality(None, "good", Beam())
    with pytest.raises(RegardError, match="beam size of 5"):
        find_min_quality(quality, "good", Beam(1))


def test_few_pairs_are_an_error() -> None:
    with pytest.raises(RegardError, match="200 pairs, got 199"):
        fit(199)


def test_reasons_to_check_are_warnings_and_a_low_quality() -> None:
    translation = Translation("x", 0.0, (), (), ended=True, quality=0.3, rating="poor", warnings=("cut off",))
    assert translation.find_reasons() == translation.find_reasons(0.5) == ("cut off", "quality 0.30 (poor)")
    assert translation.find_reasons(0.2) == ("cut off",)
    assert EMPTY.find_reasons(1.0) == ()


def test_quality_of_a_folder_is_fitted_stored_and_read(tmp_path: Path) -> None:
    model = write_translator(tmp_path / "model")
    texts = [f"{text[:12]} {number}" for text in TEXTS for number in range(50)]  # as many as an estimate needs
    for name in ("source", "reference"):
        (tmp_path / name).write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    pairs = (tmp_path / "source", tmp_path / "reference")
    assert regard.load_translator(model).translate(TEXTS[0]).quality is None
    evaluation = regard.evaluate(model, pairs, beam=2, fit_quality=tmp_path / "new", progress=False)
    assert evaluation["quality"]["pairs"] == len(texts)
    translator = regard.load_translator(tmp_path / "new")
    result = translator.translate(texts[0], Beam(2))
    assert result.quality is not None
    assert 0 <= result.quality <= 1
    assert translator.translate(texts[0], Beam(3)).quality is None
    with pytest.raises(RegardError, match="already exists"):
        regard.evaluate(model, pairs, fit_quality=tmp_path / "new", progress=False)
    copy_with(tmp_path / "new", tmp_path / "damaged", QUALITY_FILE, json.dumps({"format": 2}))
    with pytest.raises(DamagedError, match="damaged"):
        _ = regard.load_translator(tmp_path / "damaged").quality
