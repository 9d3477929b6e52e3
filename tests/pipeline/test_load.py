"""A folder becomes something that works on text."""

from pathlib import Path

import pytest

import regard
from regard.base.errors import RegardError
from regard.config import codec
from regard.models.build import build
from regard.pipeline.load import load
from regard.pipeline.translator import Translator
from regard.pipeline.writer import Writer
from regard.store.model_folder import write_model
from regard.store.weights import get_weights
from tests.pipeline.made import (
    TEXTS,
    tokenizer,
    translating_model,
    translator_settings,
    vocabularies,
    writer_settings,
    writing_model,
)


def test_a_folder_translates_as_the_model_that_was_stored(tmp_path: Path) -> None:
    settings = translator_settings(languages=["en", "de"])
    model = translating_model(settings)
    write_model(tmp_path / "m", settings, vocabularies(), get_weights(model), "card")
    translator = regard.load(str(tmp_path / "m"))
    assert isinstance(translator, Translator)
    here = Translator(model, vocabularies(), settings).translate(TEXTS, longest=8)
    assert translator.translate(TEXTS, longest=8) == here


def test_a_decoder_writes(tmp_path: Path) -> None:
    settings = writer_settings()
    model = writing_model(settings)
    write_model(tmp_path / "m", settings, vocabularies(), get_weights(model), "card")
    writer = load(tmp_path / "m")
    assert isinstance(writer, Writer)
    here = Writer(model, vocabularies(), settings)
    assert list(writer.write("A", tokens=9, seed=4)) == list(here.write("A", tokens=9, seed=4))


def test_what_has_no_pipeline_says_so(tmp_path: Path) -> None:
    small = {"width": 32, "encoder.layers": 1, "encoder.attention.heads": 4, "encoder.feedforward.hidden": 32}
    settings = codec.preset(
        "bert", small | {"source.vocabulary": tokenizer().size, "task": "embed", "head": {"kind": "vectors"}}
    )
    write_model(tmp_path / "m", settings, vocabularies(), get_weights(build(settings, seed=1)), "card")
    with pytest.raises(RegardError, match=r"'encoder_only' \(task 'embed'\) has no pipeline yet"):
        load(tmp_path / "m")
    restoring = translator_settings(task="restore")
    with pytest.raises(RegardError, match="task is 'restore'"):
        Translator(translating_model(restoring), vocabularies(), restoring)
    captioning = writer_settings(task="caption", prefix={"kind": "patches", "patch": 2})
    with pytest.raises(RegardError, match="task is 'caption'"):
        Writer(writing_model(captioning), vocabularies(), captioning)


def test_the_vocabulary_of_another_model_is_refused() -> None:
    settings = translator_settings(**{"source.vocabulary": tokenizer().size + 1})
    with pytest.raises(RegardError, match="the vocabulary has"):
        Translator(translating_model(settings), vocabularies(), settings)
    settings_of_writer = writer_settings(**{"tokens.vocabulary": tokenizer().size + 1})
    with pytest.raises(RegardError, match="the vocabulary has"):
        Writer(writing_model(settings_of_writer), vocabularies(), settings_of_writer)
