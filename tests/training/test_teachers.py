"""Teachers of a distillation."""

from collections.abc import Sequence
from typing import Any

import pytest

from regard.config.run import DistillationConfig
from regard.store.model_folder import write_model
from regard.store.weights import get_weights
from regard.training import distill as module
from regard.training.teachers import Teacher
from tests.tasks.factories import (
    TEXTS,
    make_encoder_decoder,
    make_tokenizer,
    make_tokenizers,
    make_translator_settings,
)


@pytest.fixture(scope="module")
def multilingual(tmp_path_factory: pytest.TempPathFactory) -> Teacher:
    """A teacher of three languages, not trained."""
    tags = ("de", "en", "fr")
    settings = make_translator_settings(**{"source.vocabulary": make_tokenizer(*tags).size}, languages=list(tags))
    folder = tmp_path_factory.mktemp("multilingual") / "teacher"
    write_model(folder, settings, make_tokenizers(*tags), get_weights(make_encoder_decoder(settings)), "A teacher.")
    return Teacher(str(folder), folder, settings)


def test_chunk_digest_depends_on_everything_that_decides_translations(multilingual: Teacher) -> None:
    settings = DistillationConfig(teachers=(multilingual.folder,))

    def compute_digest(
        changes: dict[str, Any], texts: Sequence[str] = ("a", "b"), languages: Sequence[str] = ("en", "de")
    ) -> str:
        max_length = changes.pop("max_length", 64)
        group = module._SourceGroup([multilingual], settings.model_copy(update=changes), "cpu", max_length)
        return group.compute_digest(texts, languages)

    digests = [compute_digest({}), compute_digest({"beam_size": 2})]
    digests += [compute_digest({"max_length": 32}), compute_digest({}, ("a", "c")), compute_digest({}, ("b", "a"))]
    digests += [compute_digest({}, languages=pair) for pair in (("en", "fr"), ("fr", "de"), ())]
    assert len(set(digests)) == len(digests)
    assert compute_digest({}) == digests[0]


def test_multilingual_teacher_translates_into_the_target_language(
    multilingual: Teacher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_find_fault", lambda _: None)  # keep what an untrained model writes without an end
    group = module._SourceGroup(
        [multilingual], DistillationConfig(teachers=(multilingual.folder,), beam_size=2), "cpu", 64
    )
    texts = [text[:12] for text in TEXTS]
    contents = {
        pair: group.translate(texts, pair, module._Progress(len(texts), lambda _: None))
        for pair in (("en", "de"), ("fr", "de"), ("en", "fr"))
    }
    assert contents["en", "de"] == contents["fr", "de"]
    assert contents["en", "de"] != contents["en", "fr"]
