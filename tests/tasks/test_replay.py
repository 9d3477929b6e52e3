"""Replayed attention equals the attention of the search, and every task says what it predicted where."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from regard.base.errors import RegardError
from regard.decode.filters import Filters
from regard.nn.record import Record
from regard.tasks.load import load, load_embedder
from regard.tasks.pipeline import Pipeline
from regard.tasks.replay import ReplayInput
from regard.tasks.requests import ReplayOptions
from regard.tasks.search import Beam, Sampling
from regard.tasks.translation.inspect import translate_traced
from regard.tasks.translation.translator import Translator
from tests.tasks.factories import (
    make_decoder_only,
    make_encoder_decoder,
    make_generator_settings,
    make_tokenizers,
    make_translator_settings,
)
from tests.tasks.media_models import (
    make_png,
    make_wav,
    write_audio_model,
    write_captioning_model,
    write_image_model,
    write_transcription_model,
)

IDS = [20, 41, 62, 83, 104, 125]
SOURCE = "Two young men."


def test_replayed_attention_equals_that_of_the_search() -> None:
    settings = make_translator_settings(**{"encoder.layers": 2, "decoder.layers": 2})
    translator = Translator(make_encoder_decoder(settings), make_tokenizers(), settings)
    traced = translate_traced(translator, SOURCE, Beam(3), n_best=2, max_new_tokens=8)
    generated = translator.replay(SOURCE, ReplayOptions(Beam(3), n_best=2, max_new_tokens=8)).generated
    assert generated is not None
    assert generated.trace is not None
    assert generated.trace.winners == traced.trace.winners
    for number, hypothesis in zip(traced.trace.winners[0], generated.hypotheses, strict=True):
        record = Record()
        logprobs = generated.generation.read_hypothesis(hypothesis).replay(record)[0]
        cross = torch.cat([record.weights(f"decoder.{layer}.cross") for layer in range(2)])  # (layers, heads, T, S)
        searched = traced.trace.attention(number)  # (tokens, layers, heads, source)
        assert np.abs(searched - cross.permute(2, 0, 1, 3).numpy()).max() <= 8e-7
        assert logprobs.tolist() == pytest.approx(hypothesis.logprobs, abs=5e-6)


@pytest.mark.parametrize("options", [ReplayOptions(Beam(2)), ReplayOptions(Sampling(filters=Filters(temperature=0)))])
def test_record_sees_every_step_of_a_search(models: dict[str, str], options: ReplayOptions) -> None:
    for task in ("translation", "causal_lm"):
        generated = load(models[task]).replay(SOURCE, options).generated
        assert generated is not None
        record = Record()
        assert generated.generation.run(record).hypotheses[0].tokens == generated.hypotheses[0].tokens
        assert "decoder.0.self" in record.attention
        assert ("encoder.0.self" in record.attention) == (task == "translation")


def test_replayed_probability_is_that_of_the_prediction(models: dict[str, str]) -> None:
    for task, text in {"masked_lm": "Two ___ men ___.", "text_classification": SOURCE, "tagging": "Two young"}.items():
        run = load(models[task]).replay(text)
        assert len(run.predictions) == len(run.input.rows) > 0
        expected = [math.log(prediction.probabilities[0]) for prediction in run.predictions]
        assert run.input.replay()[0].tolist() == pytest.approx(expected, abs=1e-5)
        assert run.places == ([None] if task == "text_classification" else list(run.input.rows))


def test_places_of_generated_tokens_follow_the_prompt(models: dict[str, str]) -> None:
    run = load(models["causal_lm"]).replay(SOURCE, ReplayOptions(max_new_tokens=3))
    assert run.generated is not None
    first = len(run.generated.generation.prompt)
    assert first > 1
    assert run.places == list(range(first, first + 3))


def test_encoder_without_a_prediction_cannot_be_replayed(models: dict[str, str]) -> None:
    with pytest.raises(RegardError, match="nothing to inspect"):
        load_embedder(models["masked_lm"]).replay(SOURCE)


def test_suppressed_tokens_have_no_probability_and_the_rest_sums_to_one() -> None:
    model, suppressed = make_decoder_only(make_generator_settings()), [0, 3, 7]
    inputs = ReplayInput(model, target=IDS, rows=[4, 5], labels=[3, 50], suppressed=suppressed)
    with torch.no_grad():
        logits = model(torch.tensor([IDS]))[0, [4, 5]]  # (2, V)
    logits[:, suppressed] = float("-inf")
    expected = logits.log_softmax(-1)
    distributions = inputs.distributions(IDS, [4, 5])
    assert distributions.exp()[:, suppressed].tolist() == [[0.0] * 3] * 2
    assert torch.allclose(distributions.exp(), expected.exp(), atol=1e-6)
    (values,) = inputs.replay().tolist()
    assert values == [float("-inf"), pytest.approx(expected[1, 50].item(), abs=1e-5)]


def test_media_are_replayed_as_the_vectors_that_a_picture_shows(tmp_path: Path) -> None:
    image, clip = tmp_path / "a.png", tmp_path / "a.wav"
    image.write_bytes(make_png())
    clip.write_bytes(make_wav())
    for write, path in {
        write_image_model: image,
        write_captioning_model: image,
        write_audio_model: clip,
        write_transcription_model: clip,
    }.items():
        run = load(write(tmp_path / write.__name__)).replay(str(path), ReplayOptions(Beam(2), max_new_tokens=3))
        assert run.drawn is not None
        assert run.input.source_length == len(run.drawn.names) + run.drawn.class_tokens > 1
        if run.generated is None:
            expected = [math.log(run.predictions[0].probabilities[0])]
        else:
            expected = list(run.generated.hypotheses[0].logprobs)
        assert run.input.replay()[0].tolist() == pytest.approx(expected, abs=1e-5)


def test_pipeline_without_a_replay_says_so() -> None:
    class Counter(Pipeline):
        kind = "model that counts"

    with pytest.raises(RegardError, match="does not support a model that counts"):
        Counter().replay(SOURCE)
