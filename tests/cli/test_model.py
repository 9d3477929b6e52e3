"""`regard model` from the command line."""

import json
import tomllib
from pathlib import Path

import pytest
import torch

from regard.base.locks import lock_folder
from regard.config.codec import RUN_FILES
from regard.store.model_folder import read_model, write_model
from regard.store.weights import get_weights
from tests.cli.factories import run_regard
from tests.tasks.factories import (
    make_decoder_only,
    make_encoder_decoder,
    make_generator_settings,
    make_tokenizers,
    make_translator_settings,
)
from tests.training.runs import make_small_run, write_corpus


def test_show_prints_toml_that_can_be_read_back(tmp_path: Path) -> None:
    text = run_regard("model", "show", "tiny", "--set", "encoder.layers=2")
    assert tomllib.loads(text)["encoder"]["layers"] == 2
    (tmp_path / "model.toml").write_text(text)
    assert run_regard("model", "show", str(tmp_path)) == text


def test_faults_are_shown_without_a_traceback() -> None:
    text = run_regard("model", "show", "tiny", "--set", "encoder.layer=2", "--set", "d_modl=3", code=1)
    assert "encoder.layer: is not a key here. Did you mean 'layers'?" in text
    assert "d_modl: is not a key here. Did you mean 'd_model'?" in text
    assert "Traceback" not in text
    assert "'tinny' is neither a preset nor a file" in run_regard("model", "show", "tinny", code=1)


def test_exports_and_schema() -> None:
    assert "yes  huggingface:MarianMTModel" in run_regard("model", "exports", "tiny")
    masked = run_regard("model", "exports", "vit", "--set", "task=masked_patches", "--set", "head.kind=pixels")
    assert "head.kind is pixels (its heads are of text)" in masked
    assert "encoder.norm_order is post (it requires pre)" in run_regard("model", "exports", "tiny")
    assert json.loads(run_regard("model", "schema"))["discriminator"]["propertyName"] == "family"


@pytest.mark.parametrize("name", ["tiny", "gpt2", "bert"])
def test_cost_of_each_family(name: str) -> None:
    text = run_regard("model", "cost", name, "--batch-size", "2", "--source", "50", "--target", "50")
    assert "parameters" in text
    assert ("KV cache" in text) == (name != "bert")


def test_presets_are_listed_with_their_sizes() -> None:
    rows = {line.split()[0]: line.split()[-1] for line in run_regard("model", "presets").splitlines()[1:]}
    assert rows["tiny"] == "2,605,056"
    assert rows["llama"] == "8,030,261,248"


def test_set_languages_changes_the_settings_of_a_translator_only(tmp_path: Path) -> None:
    settings = make_translator_settings()
    weights = get_weights(make_encoder_decoder(settings))
    write_model(tmp_path / "run" / "best", settings, make_tokenizers(), weights, "card", files={"more.json": b"{}"})
    RUN_FILES.save(make_small_run("translation", write_corpus(tmp_path / "corpus")), tmp_path / "run" / "run.toml")
    assert "run/best: en to pt-BR" in run_regard("model", "set-languages", str(tmp_path / "run"), "en", "pt-BR")
    stored = read_model(tmp_path / "run")
    assert stored.settings == settings.model_copy(update={"languages": ("en", "pt-BR")})
    assert all(torch.equal(tensor, weights[name]) for name, tensor in get_weights(stored.model).items())
    assert (stored.path / "more.json").read_bytes() == b"{}"
    assert [path.name for path in (tmp_path / "run").iterdir() if path.name not in ("best", "run.toml")] == []
    for languages, message in ((("en", "en"), "Expected two different"), (("en", "the" * 4), "not a language code")):
        assert message in run_regard("model", "set-languages", str(tmp_path / "run"), *languages, code=1)
    with lock_folder(tmp_path / "run"):
        text = run_regard("model", "set-languages", str(tmp_path / "run"), "en", "de", code=1)
    assert "Another process is writing this folder" in text


def test_set_languages_refuses_a_language_model_and_a_multilingual_model(tmp_path: Path) -> None:
    settings = make_generator_settings()
    write_model(tmp_path / "writer", settings, make_tokenizers(), get_weights(make_decoder_only(settings)), "card")
    assert "not translation" in run_regard("model", "set-languages", str(tmp_path / "writer"), "en", "de", code=1)
    tokenizers = make_tokenizers("de", "fr")
    tagged = make_translator_settings(**{"source.vocabulary": tokenizers.source.size})
    write_model(tmp_path / "many", tagged, tokenizers, get_weights(make_encoder_decoder(tagged)), "card")
    text = run_regard("model", "set-languages", str(tmp_path / "many"), "en", "de", code=1)
    assert "its language tags define its languages (de, fr)" in text
