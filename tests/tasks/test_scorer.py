"""Log-probabilities of given texts equal those of the model, whatever the batches and windows."""

import math
from pathlib import Path

import pytest
import torch

import regard
from regard.base.errors import DamagedError, RegardError
from regard.config import codec
from regard.measure.calibration import fit_temperature
from regard.models.build import build
from regard.store.calibration import CALIBRATION_FILE, read_temperature, write_temperature
from regard.store.model_folder import read_model, write_model
from regard.store.weights import get_weights
from regard.tasks.causal_lm.generator import TextGenerator
from regard.tasks.scorer import Scorer
from regard.tasks.translation.translator import Translator
from tests.tasks.factories import (
    TEXTS,
    TOLERANCE,
    make_decoder_only,
    make_encoder_decoder,
    make_generator_settings,
    make_lm_scorer,
    make_tokenizer,
    make_tokenizers,
    make_translator_settings,
)

SOURCES, TARGETS = [TEXTS[0], "two men", TEXTS[1], ""], [TEXTS[2], "", "Zwei", TEXTS[3]]


def make_translation_scorer(**options: float) -> Scorer:
    settings = make_translator_settings()
    return Scorer(make_encoder_decoder(settings), make_tokenizers(), settings, **options)


def reference_logprobs(scorer: Scorer, source: list[int], text: str) -> torch.Tensor:
    """Log-probabilities (T, V), one text at a time."""
    specials = make_tokenizer().specials
    inputs = torch.tensor([[specials.bos, *make_tokenizer().encode_ids([text])[0]]])
    with torch.no_grad():
        if source:
            logits = scorer.model(torch.tensor([source]), inputs)
        else:
            logits = scorer.model(inputs)  # type: ignore[call-arg]
    return (logits[0] / scorer.temperature).log_softmax(dim=-1)


@pytest.mark.parametrize("batch_tokens", [1, 40, 4096])
@pytest.mark.parametrize("temperature", [1.0, 1.7])
def test_pairs_have_the_model_s_own_probabilities(batch_tokens: int, temperature: float) -> None:
    scorer = make_translation_scorer(temperature=temperature)
    reported: list[int] = []
    results = scorer.score(TARGETS, SOURCES, batch_tokens=batch_tokens, report=reported.append)
    assert sum(reported) == len(TARGETS)
    eos = make_tokenizer().specials.eos
    for result, source, target in zip(results, SOURCES, TARGETS, strict=True):
        logprobs = reference_logprobs(scorer, [*make_tokenizer().encode_ids([source])[0], eos], target)
        assert result.text == target
        assert result.tokens == (*make_tokenizer().encode_ids([target])[0], eos)
        target_logprobs = logprobs.gather(1, torch.tensor(result.tokens)[:, None])[:, 0]
        assert result.logprobs == pytest.approx(target_logprobs.tolist(), abs=TOLERANCE)
        assert result.best_logprobs == pytest.approx(logprobs.max(dim=1).values.tolist(), abs=TOLERANCE)
        assert result.correct == tuple((logprobs.argmax(dim=1) == torch.tensor(result.tokens)).tolist())
        assert result.total_logprob == pytest.approx(float(target_logprobs.sum()), abs=1e-3)
        assert result.byte_count == len(target.encode())


def test_few_logits_at_once_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = make_translation_scorer().score(TARGETS, SOURCES)
    monkeypatch.setattr("regard.tasks.scorer.MAX_LOGITS", 3 * make_tokenizer().size)
    for result, expected_result in zip(make_translation_scorer().score(TARGETS, SOURCES), expected, strict=True):
        assert result.logprobs == pytest.approx(expected_result.logprobs, abs=TOLERANCE)


def test_texts_have_the_model_s_own_probabilities() -> None:
    scorer = make_lm_scorer()
    for result in scorer.score(TEXTS, batch_tokens=60):
        logprobs = reference_logprobs(scorer, [], result.text)
        assert result.logprobs == pytest.approx(
            logprobs.gather(1, torch.tensor(result.tokens)[:, None])[:, 0].tolist(), abs=TOLERANCE
        )


def test_the_curve_is_the_slope_and_curvature_of_the_loss() -> None:
    scorer = make_translation_scorer()
    settings = make_translator_settings()
    translations = Translator(make_encoder_decoder(settings), make_tokenizers(), settings).translate(
        SOURCES[:3], max_new_tokens=9
    )
    targets = [translation.text for translation in translations] + TARGETS[3:]  # probable and improbable texts
    curve = scorer.curve(targets, SOURCES)

    def loss(b: float) -> float:
        scorer.temperature = 1 / b
        return -sum(result.total_logprob for result in scorer.score(targets, SOURCES))

    for b in (0.5, 1.0, 1.4):
        slope, curvature = curve(b)
        step = 0.02
        low, middle, high = loss(b - step), loss(b), loss(b + step)
        assert slope == pytest.approx((high - low) / (2 * step), rel=2e-3)
        assert curvature == pytest.approx((high - 2 * middle + low) / step**2, rel=5e-2)
    best = fit_temperature(curve)
    assert loss(1 / best) < min(loss(1.1 / best), loss(0.9 / best))


def test_tags_of_languages_stand_before_the_source() -> None:
    settings = make_translator_settings(
        **{"source.vocabulary": make_tokenizer("en", "de").size}, languages=["en", "de"]
    )
    scorer = Scorer(make_encoder_decoder(settings), make_tokenizers("en", "de"), settings)
    (row,) = scorer.make_rows(["Zwei"], ["two"])
    specials = make_tokenizer("en", "de").specials
    assert row.source[0] == specials.language_id("de")
    assert scorer.make_rows(["Zwei"], ["two"], target_language="en")[0].source[0] == specials.language_id("en")
    assert scorer.make_rows(["Zwei"], ["two"], target_language=["en"])[0].source[0] == specials.language_id("en")
    with pytest.raises(RegardError, match="2 target languages for 1 text"):
        scorer.make_rows(["Zwei"], ["two"], target_language=["en", "de"])
    multilingual = Scorer(scorer.model, scorer.tokenizers, settings.model_copy(update={"languages": ()}))
    with pytest.raises(RegardError, match="has several target languages"):
        multilingual.make_rows(["Zwei"], ["two"])


def test_a_model_in_training_is_left_as_it_was() -> None:
    scorer = make_translation_scorer()
    expected = scorer.score(TARGETS, SOURCES)
    scorer.model.train()
    assert scorer.score(TARGETS, SOURCES) == expected
    assert all(module.training for module in scorer.model.modules())


def test_what_cannot_be_scored_is_refused() -> None:
    scorer = make_translation_scorer()
    for arguments, message in (
        ((TARGETS, None), "4 texts but no sources"),
        ((TARGETS, SOURCES[:3]), "4 texts but 3 sources"),
        (("text", SOURCES), "the other is a list"),
        (([], []), "No texts were given"),
    ):
        with pytest.raises(RegardError, match=message):
            scorer.score(*arguments)
    with pytest.raises(RegardError, match="does not take sources"):
        make_lm_scorer().score(TARGETS, SOURCES)
    short_context = make_lm_scorer(**{"decoder.position": {"kind": "learned", "length": 8}})
    assert len(short_context.make_rows(["two men are outside near many bushes"])) > 1
    for window in (1, 9):
        with pytest.raises(RegardError, match=f"window cannot have {window} token"):
            short_context.score(["two"], window=window)
    learned = {"kind": "learned", "length": 8}
    for side, message in (("encoder", "source of pair 1"), ("decoder", "text of pair 2")):
        settings = make_translator_settings(**{f"{side}.position": learned})
        limited = Scorer(make_encoder_decoder(settings), make_tokenizers(), settings)
        with pytest.raises(RegardError, match=message):
            limited.score(["two", TEXTS[2]], [TEXTS[0], "two"])
    with pytest.raises(RegardError, match="temperature must be above 0"):
        make_translation_scorer(temperature=0.0)
    next(scorer.model.parameters()).data.fill_(math.nan)
    with pytest.raises(RegardError, match="not numbers"):
        scorer.score(TARGETS, SOURCES)


def test_a_folder_and_its_temperature(tmp_path: Path) -> None:
    settings = make_translator_settings()
    model = make_encoder_decoder(settings)
    write_model(tmp_path / "m", settings, make_tokenizers(), get_weights(model), "card")
    scorer = regard.load(tmp_path / "m").make_scorer()
    assert scorer.temperature == 1.0
    assert scorer.score(TARGETS, SOURCES) == Translator(model, make_tokenizers(), settings).make_scorer().score(
        TARGETS, SOURCES
    )
    write_temperature(tmp_path / "m", tmp_path / "new", 1.25, tokens=99)
    assert regard.load(tmp_path / "new").make_scorer().temperature == 1.25
    assert read_model(tmp_path / "new").settings == settings  # sealed again
    write_temperature(tmp_path / "new", tmp_path / "newer", 0.75, tokens=99)  # replaces the first
    assert regard.load(tmp_path / "newer").make_scorer().temperature == 0.75
    with pytest.raises(RegardError, match="already exists"):
        write_temperature(tmp_path / "m", tmp_path / "new", 2.0, tokens=1)
    for wrong in ("{}", "[]", "warm", '{"temperature": "1"}', '{"temperature": 0.0}', '{"temperature": NaN}'):
        (tmp_path / CALIBRATION_FILE).write_text(wrong, encoding="utf-8")
        with pytest.raises(DamagedError, match="temperature"):
            read_temperature(tmp_path)
    (tmp_path / "new" / CALIBRATION_FILE).write_text('{"temperature": 9.0}', encoding="utf-8")
    with pytest.raises(DamagedError, match="does not match its manifest"):
        regard.load(tmp_path / "new").make_scorer()


def test_an_encoder_has_no_texts_to_score(tmp_path: Path) -> None:
    small = {"d_model": 32, "encoder.layers": 1, "encoder.attention.heads": 4, "encoder.feedforward.d_ff": 32}
    settings = codec.preset("bert", small | {"source.vocabulary": make_tokenizer().size})
    write_model(tmp_path / "m", settings, make_tokenizers(), get_weights(build(settings, seed=1)), "card")
    with pytest.raises(RegardError, match="does not assign probabilities to texts"):
        regard.load(tmp_path / "m").make_scorer()
    generator_settings = make_generator_settings()
    generator = TextGenerator(make_decoder_only(generator_settings), make_tokenizers(), generator_settings)
    lm_scorer = generator.make_scorer(temperature=2.0)
    assert lm_scorer.temperature == 2.0
