"""Load model folders as pipelines."""

from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from regard.base.errors import RegardError
from regard.config import codec
from regard.models.build import build
from regard.store.model_folder import write_model
from regard.store.weights import get_weights
from regard.tasks.causal_lm.generator import TextGenerator
from regard.tasks.embedding import Embedder
from regard.tasks.load import load
from regard.tasks.task import find_task
from regard.tasks.translation.translator import Translator
from tests.tasks.factories import (
    TEXTS,
    make_decoder_only,
    make_encoder_decoder,
    make_generator_settings,
    make_tokenizer,
    make_tokenizers,
    make_translator_settings,
)


def test_a_folder_translates_as_the_model_that_was_stored(tmp_path: Path) -> None:
    settings = make_translator_settings(languages=["en", "de"])
    model = make_encoder_decoder(settings)
    write_model(tmp_path / "m", settings, make_tokenizers(), get_weights(model), "card")
    translator = regard.load(str(tmp_path / "m"))
    assert isinstance(translator, Translator)
    expected = Translator(model, make_tokenizers(), settings).translate(TEXTS, max_new_tokens=8)
    assert translator.translate(TEXTS, max_new_tokens=8) == expected


def test_a_decoder_generates(tmp_path: Path) -> None:
    settings = make_generator_settings()
    model = make_decoder_only(settings)
    write_model(tmp_path / "m", settings, make_tokenizers(), get_weights(model), "card")
    text_generator = load(tmp_path / "m")
    assert isinstance(text_generator, TextGenerator)
    expected = TextGenerator(model, make_tokenizers(), settings)
    assert list(text_generator.stream("A", max_new_tokens=9, seed=4)) == list(
        expected.stream("A", max_new_tokens=9, seed=4)
    )


def test_an_encoder_without_a_head_embeds(tmp_path: Path) -> None:
    small = {"d_model": 32, "encoder.layers": 1, "encoder.attention.heads": 4, "encoder.feedforward.d_ff": 32}
    settings = codec.preset(
        "bert", small | {"source.vocabulary": make_tokenizer().size, "task": "embedding", "head": {"kind": "none"}}
    )
    write_model(tmp_path / "m", settings, make_tokenizers(), get_weights(build(settings, seed=1)), "card")
    assert isinstance(load(tmp_path / "m"), Embedder)


def test_a_model_without_a_pipeline_is_refused() -> None:
    restoring = make_translator_settings(task="span_corruption")
    with pytest.raises(RegardError, match="task is 'span_corruption'"):
        Translator(make_encoder_decoder(restoring), make_tokenizers(), restoring)
    captioning = make_generator_settings(task="captioning", prefix={"kind": "patches", "patch": 2})
    with pytest.raises(RegardError, match="task is 'captioning'"):
        TextGenerator(make_decoder_only(captioning), make_tokenizers(), captioning)


def test_the_vocabulary_of_another_model_is_refused() -> None:
    settings = make_translator_settings(**{"source.vocabulary": make_tokenizer().size + 1})
    with pytest.raises(RegardError, match="the tokenizer has"):
        Translator(make_encoder_decoder(settings), make_tokenizers(), settings)
    generator_settings = make_generator_settings(**{"tokens.vocabulary": make_tokenizer().size + 1})
    with pytest.raises(RegardError, match="the tokenizer has"):
        TextGenerator(make_decoder_only(generator_settings), make_tokenizers(), generator_settings)


LOADERS: dict[str, Any] = {  # an embedder takes every encoder: tests/tasks/test_embedder.py
    "translation": regard.load_translator,
    "causal_lm": regard.load_generator,
    "masked_lm": regard.load_fill_mask,
    "text_classification": regard.load_classifier,
    "tagging": regard.load_classifier,
}


@pytest.mark.parametrize("task", LOADERS)
def test_a_loader_takes_its_kind_of_model_only(task: str, models: dict[str, str]) -> None:
    pipeline = LOADERS[task](Path(models[task]))
    pipeline_class = find_task(task).pipeline_class
    assert type(pipeline) is pipeline_class is type(load(models[task]))
    assert type(load(models[task], task=task)) is pipeline_class  # type: ignore[call-overload]
    for other_task, loader in LOADERS.items():
        right_loader = LOADERS[task].__name__
        if loader is not LOADERS[task]:
            with pytest.raises(RegardError, match=rf"This is a .* model, not a .*\n.*\n.*regard.{right_loader}\('"):
                loader(models[task])
        if other_task != task:
            with pytest.raises(RegardError, match=f"task is '{task}', not '{other_task}'"):
                load(models[task], task=other_task)  # type: ignore[call-overload]


def test_an_unknown_task_or_device_is_reported(models: dict[str, str]) -> None:
    with pytest.raises(RegardError, match=r"no task 'dance'.*\n.*translation"):
        load(models["masked_lm"], task="dance")  # type: ignore[call-overload]
    missing = ["nonsense", "cuda:77", *(["cuda"] if not torch.cuda.is_available() else [])]
    for device in missing:
        for function in (regard.load, regard.load_classifier):
            with pytest.raises(RegardError, match=f"no device '{device}' on this machine") as caught:
                function(models["text_classification"], device)
            assert caught.value.hint is not None
    with pytest.raises(RegardError, match="no device"):
        regard.load(models["masked_lm"], torch.device("meta"))
