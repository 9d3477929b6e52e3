"""An untrained model of each task."""

import pytest

from regard.config import codec
from regard.config.model import AnyModelConfig
from regard.models.build import build
from regard.store.model_folder import write_model
from regard.store.weights import get_weights
from tests.tasks.factories import make_generator_settings, make_tokenizer, make_tokenizers, make_translator_settings


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An untrained model of each task."""
    folder = tmp_path_factory.mktemp("models")
    small = {"d_model": 32, "encoder.layers": 2, "encoder.attention.heads": 4, "encoder.feedforward.d_ff": 32}
    small |= {"source.vocabulary": make_tokenizer().size}
    labels = {"labels": ["no", "yes"]}
    settings: dict[str, AnyModelConfig] = {
        "translation": make_translator_settings(languages=["en", "de"]),
        "causal_lm": make_generator_settings(),
        "masked_lm": codec.preset("bert", small),
        "text_classification": codec.preset(
            "bert", small | {"task": "text_classification", "head": {"kind": "classes", **labels}}
        ),
        "tagging": codec.preset("bert", small | {"task": "tagging", "head": {"kind": "tags", **labels}}),
    }
    for task, model_settings in settings.items():
        weights = get_weights(build(model_settings, seed=1))
        write_model(folder / task, model_settings, make_tokenizers(), weights, "card")
    return {task: str(folder / task) for task in settings}
