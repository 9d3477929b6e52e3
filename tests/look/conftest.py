"""Small untrained models and their looks, shared by all tests of this package."""

import pytest
import torch

from regard.config import codec
from regard.config.model import EncoderOnlyConfig
from regard.look import page
from regard.look.build import look_into
from regard.look.look import Look
from regard.models.build import build
from regard.models.encoder_only import EncoderOnly
from regard.tasks.causal_lm.generator import TextGenerator
from regard.tasks.masked_lm import FillMask
from regard.tasks.replay import ReplayInput
from regard.tasks.search import Beam
from regard.tasks.text_classification import Classifier
from regard.tasks.translation.translator import Translator
from tests.look.factories import LONG, SCRIPT
from tests.tasks.factories import (
    make_decoder_only,
    make_encoder_decoder,
    make_generator_settings,
    make_tokenizer,
    make_tokenizers,
    make_translator_settings,
    perturb,
)

SOURCE = "Two young men."


@pytest.fixture(scope="session")
def translator() -> Translator:
    settings = make_translator_settings(**{"encoder.layers": 2, "decoder.layers": 2})
    return Translator(make_encoder_decoder(settings), make_tokenizers(), settings)


@pytest.fixture(scope="session")
def generator() -> TextGenerator:
    settings = make_generator_settings(**{"decoder.layers": 2})
    return TextGenerator(make_decoder_only(settings), make_tokenizers(), settings)


def make_encoder(head: dict[str, object], task: str) -> tuple[EncoderOnly, EncoderOnlyConfig]:
    changes = {"d_model": 32, "source.vocabulary": make_tokenizer().size, "encoder.layers": 2}
    size = {"encoder.attention.heads": 4, "encoder.feedforward.d_ff": 64, "encoder.position.length": 64}
    settings = codec.preset("bert", changes | size | {"task": task} | ({"head": head} if head else {}))
    assert isinstance(settings, EncoderOnlyConfig)
    model = build(settings, seed=3)
    assert isinstance(model, EncoderOnly)
    return perturb(model, 3), settings


@pytest.fixture(scope="session")
def fill_mask() -> FillMask:
    model, settings = make_encoder({}, "masked_lm")
    return FillMask(model, make_tokenizers(), settings)


@pytest.fixture(scope="session")
def classifier() -> Classifier:
    model, settings = make_encoder({"kind": "classes", "labels": ["yes", "no", "maybe"]}, "text_classification")
    return Classifier(model, make_tokenizers(), settings)


@pytest.fixture(scope="session")
def tagger() -> Classifier:
    model, settings = make_encoder({"kind": "tags", "labels": ["N", "V", "D"]}, "tagging")
    return Classifier(model, make_tokenizers(), settings)


@pytest.fixture(scope="session")
def translation_look(translator: Translator) -> Look:
    return look_into(translator, SOURCE, search=Beam(3), n_best=2, max_new_tokens=8)


@pytest.fixture(scope="session")
def continuation_look(generator: TextGenerator) -> Look:
    return look_into(generator, "A little", max_new_tokens=6, seed=4)


@pytest.fixture(scope="session")
def looks(
    translation_look: Look, continuation_look: Look, fill_mask: FillMask, classifier: Classifier, tagger: Classifier
) -> dict[str, Look]:
    return {
        "translation": translation_look,
        "causal_lm": continuation_look,
        "masked_lm": look_into(fill_mask, "Two ___ men are ___."),
        "text_classification": look_into(classifier, "Two young men."),
        "tagging": look_into(tagger, "Two young men"),
    }


@pytest.fixture(scope="module")
def long_passage() -> ReplayInput:
    settings = make_generator_settings(**{"decoder.attention.key_value_heads": 2})
    ids = torch.randint(0, 250, (LONG,), generator=torch.Generator().manual_seed(1)).tolist()
    return ReplayInput(make_decoder_only(settings), target=ids, rows=[LONG - 1], labels=[7])


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> None:
    """A short program in the page instead of the real one."""
    monkeypatch.setattr(page, "read_script", lambda: SCRIPT)
