"""What pipelines can do, found by their methods."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from regard.base.errors import RegardError
from regard.store.model_folder import write_model
from regard.store.weights import get_weights
from regard.tasks.capabilities import (
    CAPTIONS,
    CLASSIFIES_FILES,
    CLASSIFIES_TEXTS,
    EMBEDS,
    TRANSCRIBES,
    TRANSLATES,
    find_capabilities,
)
from regard.tasks.load import load, load_classifier
from regard.tasks.pipeline import Pipeline
from regard.tasks.requests import BatchOptions, ModelRequest
from regard.tasks.search import Beam
from tests.tasks.factories import make_parts, make_tokenizers, make_translator
from tests.tasks.media_models import (
    make_png,
    write_audio_model,
    write_captioning_model,
    write_image_model,
    write_transcription_model,
)


class LengthClassifier(Pipeline):
    """Labels texts by their lengths; it is no subclass of another classifier."""

    kind = "model of lengths"
    labels = ("short", "long")

    def __init__(self) -> None:
        self.tokenizers = make_tokenizers()

    def classify(self, texts: Sequence[str]) -> list[str]:
        return [self.labels[len(text) > 10] for text in texts]


def test_pipelines_have_the_capabilities_of_their_methods(tmp_path: Path) -> None:
    assert find_capabilities(make_translator()) == (TRANSLATES,)
    assert find_capabilities(LengthClassifier()) == (CLASSIFIES_TEXTS,)
    for number, (write, capability) in enumerate(
        (
            (write_image_model, CLASSIFIES_FILES),
            (write_audio_model, CLASSIFIES_FILES),
            (write_captioning_model, CAPTIONS),
            (write_transcription_model, TRANSCRIBES),
        )
    ):
        assert find_capabilities(load(write(tmp_path / str(number)))) == (capability,)


def test_encoder_embeds_in_addition_to_its_task(tmp_path: Path) -> None:
    head = {"kind": "classes", "labels": ["good", "bad"], "pool": "first", "hidden": False}
    model, settings = make_parts(task="text_classification", head=head)
    write_model(tmp_path / "model", settings, make_tokenizers(), get_weights(model), "card")
    pipeline = load_classifier(tmp_path / "model")
    assert find_capabilities(pipeline) == (CLASSIFIES_TEXTS, EMBEDS)
    requests = [ModelRequest("Two young men."), ModelRequest("A dog")]
    vectors = pipeline.embedder.run(requests, BatchOptions())
    assert [vector.shape for vector in vectors] == [(settings.d_model,)] * 2
    assert [result.labels for result in pipeline.run(requests, BatchOptions())] == [
        result.labels for result in pipeline.classify([request.item for request in requests])
    ]


def test_pipeline_without_run_answers_no_requests() -> None:
    with pytest.raises(RegardError, match="A model of lengths cannot be served") as error:
        LengthClassifier().run([ModelRequest("a")], BatchOptions())
    assert error.value.hint == "Use `regard predict`."


def test_run_of_a_captioner_equals_its_captions(tmp_path: Path) -> None:
    captioner, file = load(write_captioning_model(tmp_path / "model"), task="captioning"), tmp_path / "a.png"
    file.write_bytes(make_png(1))
    (result,) = captioner.run([ModelRequest(str(file))], BatchOptions(Beam(2), n_best=2))
    assert result == captioner.caption(file, Beam(2), n_best=2)
