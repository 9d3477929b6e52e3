"""Hugging Face folders: Auto classes load an export with equal logits, ids and greedy texts; an import is exact."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from regard.base import extras
from regard.base.errors import RegardError
from regard.config.model import AnyModelConfig, DecoderOnlyConfig, EncoderDecoderConfig
from regard.exchange.export import ExportOptions, export_model
from regard.exchange.huggingface import write
from regard.exchange.huggingface.architectures import ARCHITECTURES
from regard.exchange.huggingface.tokenizer_writer import make_tokenizer_config, make_tokenizer_json
from regard.exchange.importer import import_model
from regard.store.export_folder import PARITY_FILE, read_parity
from regard.store.model_folder import read_model
from regard.tasks.causal_lm.generator import TextGenerator
from regard.tasks.encoding import add_special_tokens
from regard.tasks.load import load
from regard.tasks.search import Beam
from regard.tasks.translation.translator import Translator
from regard.text.tokenizer import Tokenizer
from tests.exchange.cases import CASES
from tests.exchange.folders import FOLDER_CASES, export_unchecked, load_theirs, make_tokenizers, write_case
from tests.exchange.huggingface.factories import TEXTS
from tests.exchange.models import (
    POSITIONS,
    TOLERANCE,
    compute_outputs,
    max_difference,
    parse_settings,
    randomize_weights,
)

pytestmark = pytest.mark.usefixtures("one_short_text")

OPTIONS = ExportOptions(max_positions=POSITIONS)


@pytest.mark.parametrize("name", FOLDER_CASES)
def test_export_and_import(name: str, tmp_path: Path) -> None:
    ours, settings = write_case(name, tmp_path / "ours")
    folder, _ = export_model(tmp_path / "ours", "huggingface", options=OPTIONS)
    proof = read_parity(folder)
    assert (proof["engine"], proof["dtype"], proof["passed"]) == ("transformers", "float32", True)
    assert (proof["greedy"] is not None) == isinstance(settings, EncoderDecoderConfig | DecoderOnlyConfig)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    architecture = ARCHITECTURES[config["architectures"][0]]
    theirs = load_theirs(folder, architecture.auto_class)
    assert type(theirs).__name__ == CASES[name].architecture
    with torch.no_grad():
        assert max_difference(*compute_outputs(theirs, ours.eval())) < TOLERANCE
    _assert_same_ids(folder, settings)
    if isinstance(settings, EncoderDecoderConfig | DecoderOnlyConfig):
        _assert_same_texts(tmp_path / "ours", folder, theirs)

    import_model(folder, tmp_path / "back")
    again = export_unchecked(tmp_path / "back", tmp_path / "again")
    for file in folder.iterdir():
        if file.name not in ("manifest.json", "README.md", PARITY_FILE) and file.is_file():
            assert (again / file.name).read_bytes() == file.read_bytes(), file.name
    imported = read_model(tmp_path / "back").settings
    assert imported.languages == ("en", "de")


def test_large_weights_are_several_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = FOLDER_CASES[0]
    ours, _ = write_case(name, tmp_path / "ours")
    monkeypatch.setattr("regard.store.weight_files.FILE_BYTES", 20_000)
    folder, _ = export_model(tmp_path / "ours", "huggingface", options=OPTIONS)
    assert len(list(folder.glob("model-*.safetensors"))) > 1
    assert not (folder / "model.safetensors").exists()
    theirs = load_theirs(folder, ARCHITECTURES[CASES[name].architecture].auto_class)
    with torch.no_grad():
        assert max_difference(*compute_outputs(theirs, ours.eval())) < TOLERANCE
    import_model(folder, tmp_path / "back")
    weights, imported = (read_model(tmp_path / model).model.state_dict() for model in ("ours", "back"))
    assert all(torch.equal(weights[name], imported[name]) for name in weights)


def _assert_same_ids(folder: Path, settings: AnyModelConfig) -> None:
    """Compare what the exported tokenizer gives with what Regard reads, special tokens in the text included."""
    tokenizer = make_tokenizers(settings).source
    template = json.loads((folder / "tokenizer.json").read_bytes())["post_processor"]["single"]
    inserted = {part["SpecialToken"]["id"] for part in template if "SpecialToken" in part}
    assert inserted <= {*tokenizer.vocabulary}  # transformers.js takes the names for the texts of tokens
    assert _load_their_tokenizer(folder)(TEXTS)["input_ids"] == _encode(tokenizer, settings)


def _load_their_tokenizer(folder: Path, **arguments: Any) -> Any:
    """Load a tokenizer with the class that the card names: AutoTokenizer replaces those of Qwen2."""
    transformers = pytest.importorskip("transformers")
    name = "AutoTokenizer"
    if name not in (folder / "README.md").read_text(encoding="utf-8").partition("Exported by")[0]:
        name = "PreTrainedTokenizerFast"
    return getattr(transformers, name).from_pretrained(folder, **arguments)


def _encode(tokenizer: Tokenizer, settings: AnyModelConfig) -> list[list[int]]:
    specials, texts = tokenizer.specials, tokenizer.encode_ids(TEXTS)
    if isinstance(settings, EncoderDecoderConfig):
        return [[*ids, specials.eos] for ids in texts]
    if isinstance(settings, DecoderOnlyConfig):
        return [[specials.bos, *ids] for ids in texts]
    return [add_special_tokens(tokenizer, ids) for ids in texts]


def _assert_same_texts(ours: Path, folder: Path, theirs: Any) -> None:
    """Compare greedy texts, generated with the files of the folder alone."""
    tokenizer = _load_their_tokenizer(folder)
    target = _load_their_tokenizer(folder, subfolder="target") if (folder / "target").is_dir() else tokenizer
    pipeline = load(ours)
    texts = TEXTS[:3]
    batch = tokenizer(texts, padding=True, return_tensors="pt")
    generated = theirs.generate(**batch, max_new_tokens=12, num_beams=1, do_sample=False)
    if isinstance(pipeline, Translator):
        expected = [result.text for result in pipeline.translate(texts, Beam(1), max_new_tokens=12)]
    else:
        assert isinstance(pipeline, TextGenerator)
        generated = generated[:, batch["input_ids"].size(1) :]
        expected = [result.text for result in pipeline.generate(texts, 12, Beam(1))]
    expected = [text.replace("<unk>", "") for text in expected]  # Regard shows the unknown token
    assert target.batch_decode(generated, skip_special_tokens=True) == expected


@pytest.mark.parametrize("name", FOLDER_CASES)
def test_their_tensors_survive(name: str, tmp_path: Path) -> None:
    """Their folder, imported and exported again, has the same bytes in every tensor."""
    theirs: Any = randomize_weights(CASES[name].make_theirs())
    settings = parse_settings(CASES[name].settings)
    theirs.save_pretrained(tmp_path / "theirs")
    tokenizers = make_tokenizers(settings)
    for path, tokenizer in ((tmp_path / "theirs", tokenizers.source), (tmp_path / "theirs/target", tokenizers.target)):
        if path.name == "target" and tokenizers.is_joint:
            continue
        path.mkdir(exist_ok=True)
        (path / "tokenizer.json").write_bytes(make_tokenizer_json(tokenizer, settings))
        document = make_tokenizer_config(tokenizer, settings, POSITIONS)
        (path / "tokenizer_config.json").write_text(json.dumps(document), encoding="utf-8")
    import_model(tmp_path / "theirs", tmp_path / "ours")
    folder = export_unchecked(tmp_path / "ours", tmp_path / "again")
    before, after = (_read_tensors(path) for path in (tmp_path / "theirs", folder))
    added = {"lm_head.weight", *(f"model.{side}.embed_positions.weight" for side in ("encoder", "decoder"))}
    assert {*after} - {*before} <= added  # T5 declares itself untied; Marian computes its positions again
    assert not {*before} - {*after}
    assert [key for key in before if not torch.equal(before[key], after[key])] == []
    model = load_theirs(folder, ARCHITECTURES[type(theirs).__name__].auto_class)
    with torch.no_grad():
        ours = read_model(tmp_path / "ours").model
        assert max_difference(*compute_outputs(model, ours)) < TOLERANCE


def _read_tensors(folder: Path) -> dict[str, torch.Tensor]:
    """Read the tensors; transformers 5 writes some names of ESM as those of older files."""
    tensors = load_file(folder / "model.safetensors")
    names = {name: name.replace("Norm.gamma", "Norm.weight").replace("Norm.beta", "Norm.bias") for name in tensors}
    names |= {name: name.replace("encoder.layer.*.attention.self.", "") for name in tensors if "*" in name}
    return {names[name]: tensor for name, tensor in tensors.items()}


def test_low_precision_survives(tmp_path: Path) -> None:
    write_case("llama-tied", tmp_path / "ours")
    folder, _ = export_model(tmp_path / "ours", "huggingface", options=ExportOptions(dtype="bfloat16"))
    before = load_file(folder / "model.safetensors")
    assert {tensor.dtype for tensor in before.values()} == {torch.bfloat16}
    import_model(folder, tmp_path / "back")
    again, _ = export_model(tmp_path / "back", "huggingface", options=ExportOptions(dtype="bfloat16"))
    assert (again / "model.safetensors").read_bytes() == (folder / "model.safetensors").read_bytes()


def test_an_unequal_export_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_case("llama-tied", tmp_path / "ours")
    convert = write.convert_weights

    def convert_wrongly(*arguments: Any) -> dict[str, torch.Tensor]:
        tensors = convert(*arguments)
        return tensors | {"model.norm.weight": tensors["model.norm.weight"] * 1.001}

    monkeypatch.setattr(write, "convert_weights", convert_wrongly)
    with pytest.raises(RegardError, match="The export differs from the model"):
        export_model(tmp_path / "ours", "huggingface")
    assert [path.name for path in tmp_path.iterdir()] == ["ours"]


def test_an_export_without_transformers_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_case("llama-tied", tmp_path / "ours")
    monkeypatch.setitem(extras.EXTRAS, "huggingface", (("no_such_module",), ""))
    folder, report = export_model(tmp_path / "ours", "huggingface")
    note = report.notes[-1]
    assert note.startswith("parity: not checked, because transformers is not installed")
    assert read_parity(folder) == {"format": 1, "engine": "transformers", "passed": None, "not_checked": note}
