"""A recurrent translator from the command line: trained, described, run, looked into; refused where none can run."""

import json
from pathlib import Path

import pytest

from regard.config.codec import preset
from regard.config.model import AnyModelConfig
from regard.models.build import build
from regard.store.model_folder import write_model
from regard.store.weights import get_weights
from tests.commands import run_command
from tests.tasks.factories import make_tokenizer, make_tokenizers
from tests.training.runs import write_corpus

OPTIONS = [
    *(f"--set=device.{setting}" for setting in ("threads=1", "logit_rows=0", "attention=autocast")),
    *("--set=model.d_model=16", "--set=model.decoder.cross.score.hidden=8", "--set=tokenizer.vocabulary=300"),
    *(
        "--set=train.steps=4",
        "--set=train.save_every=2",
        "--set=validation.every_steps=4",
        "--set=validation.sentences=4",
    ),
]


def run(*arguments: str, code: int = 0) -> str:
    done = run_command(*arguments, columns=200)
    assert done.code == code, f"{done.code}\n{done.output}{done.errors}"
    return done.output + done.errors


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("recurrent")
    files = write_corpus(folder)
    pair = ("--source", files["all.en"], "--target", files["all.de"])
    output = run("train", *pair, "--preset", "rnnsearch", "--out", str(folder / "run"), "--explain", *OPTIONS)
    assert "preset rnnsearch" in output
    assert "Norms:" not in output  # it has none
    return str(folder / "run")


def test_it_translates_with_every_search(model: str) -> None:
    for options in (["--beam", "3"], ["--search", "sample", "--seed", "1"], ["--beam", "2", "--align"]):
        line, *_ = run("translate", model, "the old dog", "--json", *options).split("\n")  # warnings follow
        assert isinstance(json.loads(line)["text"], str)


def test_it_can_be_looked_into(model: str, tmp_path: Path) -> None:
    run("look", model, "the old dog", "--save", str(tmp_path / "look.html"), "--max-new-tokens", "4")
    assert "decoder.cross" in (tmp_path / "look.html").read_text()


def test_without_attention_there_is_no_alignment_and_a_look_without_maps(tmp_path: Path) -> None:
    """A fixed vector has no attention, and neither has a recurrent language model."""
    size = make_tokenizer().size
    translator = {"d_model": 16, "source.vocabulary": size, "encoder.bidirectional": False}
    models: dict[str, AnyModelConfig] = {
        "translator": preset("rnnsearch", translator | {"decoder.cross": {"kind": "fixed_vector"}}),
        "generator": preset("lstm", {"d_model": 16, "tokens.vocabulary": size}),
    }
    for name, settings in models.items():
        weights = get_weights(build(settings, seed=1))
        write_model(tmp_path / name, settings, make_tokenizers(), weights, "card")
        page = tmp_path / f"{name}.html"
        run("look", str(tmp_path / name), "Two men.", "--save", str(page), "--max-new-tokens", "4")
        assert page.is_file()
    output = run("translate", str(tmp_path / "translator"), "Two men.", "--align", "--json", code=1)
    assert "no attention for word alignment" in output


@pytest.mark.parametrize("target", ["huggingface", "ctranslate2", "onnx", "web"])
def test_exports_say_that_no_engine_runs_it(model: str, target: str, tmp_path: Path) -> None:
    output = run("export", model, "--to", target, "--out", str(tmp_path / "export"), code=1)
    assert "recurrent" in output
    assert "attention layers only" in output
    assert not (tmp_path / "export").exists()


def test_the_settings_of_the_folder_are_shown(model: str) -> None:
    output = run("model", "show", f"{model}/best")
    assert 'kind = "bahdanau"' in output
    assert "recurrent" in run("model", "exports", f"{model}/best")
    assert "sequential steps" in run("model", "cost", f"{model}/best", "--source", "20", "--target", "30")
