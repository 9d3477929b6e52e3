"""`regard.save`: a model that was trained in an own loop becomes a model folder."""

from pathlib import Path

import pytest
import torch

import regard
from regard.base.errors import RegardError
from regard.config.model import AnyModelConfig
from regard.config.tokenizers import CharacterLevelConfig
from regard.models.build import AnyModel
from regard.text.learn import learn
from regard.text.tokenizer import Tokenizer
from regard.text.tokenizer_pair import TokenizerPair

SMALL = {"d_model": 16, "encoder.layers": 1, "decoder.layers": 1}


@pytest.fixture
def tokenizer() -> Tokenizer:
    return learn(["low high"], CharacterLevelConfig())


def make(tokenizer: Tokenizer) -> tuple[AnyModelConfig, AnyModel]:
    config = regard.preset("tiny", {**SMALL, "source.vocabulary": tokenizer.size})
    return config, regard.build(config, seed=1)


@pytest.mark.parametrize("is_pair", [False, True])
def test_save_then_load_gives_the_same_weights(is_pair: bool, tokenizer: Tokenizer, tmp_path: Path) -> None:
    config, model = make(tokenizer)
    with torch.no_grad():
        next(model.parameters()).fill_(0.5)
    tokenizers = TokenizerPair.joint(tokenizer) if is_pair else tokenizer
    assert regard.save(tmp_path / "mine", model, tokenizers, config, card="# Mine\n") == tmp_path / "mine"
    translator = regard.load_translator(tmp_path / "mine")
    for (name, saved), loaded in zip(model.named_parameters(), translator.model.parameters(), strict=True):
        assert torch.equal(saved, loaded), name
    assert translator.settings == config
    assert translator.translate("low").text is not None
    assert (tmp_path / "mine" / "README.md").read_text(encoding="utf-8") == "# Mine\n"


def test_save_existing_folder_needs_replace(tokenizer: Tokenizer, tmp_path: Path) -> None:
    config, model = make(tokenizer)
    regard.save(tmp_path / "mine", model, tokenizer, config)
    with pytest.raises(RegardError, match="exists"):
        regard.save(tmp_path / "mine", model, tokenizer, config)
    regard.save(tmp_path / "mine", model, tokenizer, config, replace=True)


def test_save_refuses_model_and_config_that_do_not_match(tokenizer: Tokenizer, tmp_path: Path) -> None:
    config, model = make(tokenizer)
    larger = regard.preset("tiny", {**SMALL, "d_model": 32, "source.vocabulary": tokenizer.size})
    with pytest.raises(RegardError, match=r"has the shape \(\d+, 16\); the config needs \(\d+, 32\)"):
        regard.save(tmp_path / "mine", model, tokenizer, larger)
    model.register_parameter("extra", torch.nn.Parameter(torch.zeros(1)))
    with pytest.raises(RegardError, match=r"'extra' has the shape \(1,\); the config needs None"):
        regard.save(tmp_path / "mine", model, tokenizer, config)
    with pytest.raises(RegardError, match="needs a tokenizer"):
        regard.save(tmp_path / "mine", model, None, config)
    with pytest.raises(RegardError, match="`tokenizers` must be a tokenizer"):
        regard.save(tmp_path / "mine", model, "tokenizer.json", config)  # type: ignore[arg-type]
    assert not (tmp_path / "mine").exists()
