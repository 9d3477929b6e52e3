"""Adapters for PEFT: on top of the exported parent they compute what the tuned model does."""

import json
from math import sqrt
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from regard.base import extras
from regard.base.errors import RegardError
from regard.config.finetune import AdapterConfig, LoraConfig
from regard.config.model import AnyModelConfig
from regard.config.toml_file import to_dict
from regard.exchange.export import ExportOptions, export_model
from regard.exchange.huggingface.architectures import ARCHITECTURES
from regard.exchange.huggingface.write import convert_weights
from regard.exchange.peft import CONFIG, TENSORS
from regard.lora import add_adapters, is_adapter, merge_weights
from regard.models.build import build
from regard.store.adapter_folder import write_adapter
from regard.store.export_folder import hash_of_weights, read_parity
from regard.store.model_folder import read_model, write_model
from regard.store.weights import get_weights
from tests.exchange.cases import CASES
from tests.exchange.folders import export_unchecked, write_case
from tests.exchange.models import POSITIONS, compute_outputs, max_difference, parse_settings

LABELS = {"task": "text_classification", "head": {"kind": "classes", "labels": ["good", "bad"]}}
OPTIONS = ExportOptions(max_positions=POSITIONS)
TOLERANCE = 1e-5
# PEFT 0.21 reads a property that Transformers 5.23 has renamed: neither is ours.
pytestmark = [
    pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning"),
    pytest.mark.usefixtures("one_short_text"),
]


def write_tuned(name: str, folder: Path, lora: LoraConfig, changes: dict[str, Any] | None = None) -> AnyModelConfig:
    """Write the parent of a case and a run that tuned it: `parent`, and `run` with `best` and `adapter`."""
    _, settings = write_case(name, folder / "parent")
    parent = read_model(folder / "parent")
    tuned_settings = parse_settings(to_dict(settings) | (changes or {}))
    model = build(tuned_settings, seed=3)
    model.load_state_dict(parent.model.state_dict(), strict=False)
    add_adapters(model, lora, seed=4)
    generator = torch.Generator().manual_seed(5)
    has_labels = tuned_settings.task in ("text_classification", "tagging")  # their head is trained as a whole
    trained = [key for key, _ in model.named_parameters() if is_adapter(key) or (has_labels and key[:5] == "head.")]
    for key, parameter in model.named_parameters():
        if key in trained:
            nn.init.normal_(parameter.data, std=0.2 if is_adapter(key) else 1.0, generator=generator)
    weights = get_weights(model)
    write_model(
        folder / "run" / "best", tuned_settings, parent.tokenizers, merge_weights(weights, lora.scale), "# Tuned\n"
    )
    sha256 = hash_of_weights(folder / "parent")
    adapter_file = AdapterConfig(parent=str(folder / "parent"), parent_sha256=sha256, lora=lora)
    write_adapter(folder / "run" / "adapter", adapter_file, {key: weights[key] for key in trained})
    (folder / "run" / "run.toml").touch()
    return tuned_settings


RANK_3 = LoraConfig(rank=3, alpha=5.0)
SOME = LoraConfig(rank=2, alpha=3.0, rslora=True, modules=("*.value", "*.query", "*.feedforward.*"))
TUNED = [
    ("pegasus-gelu", RANK_3, None),
    ("marian-scaled-bias", SOME, None),
    ("t5-gated-tied=False", RANK_3, None),
    ("llama-tied", RANK_3, None),
    ("qwen3-bias", SOME, None),
    ("gpt2-tied", RANK_3, None),
    ("gpt2-tied", SOME, None),
    ("bert-mlm-gelu", RANK_3, None),
    ("bert-none-gelu", RANK_3, LABELS),
    ("bert-tags-halves", SOME, None),
    ("esm-none", RANK_3, None),
]


@pytest.mark.parametrize(("name", "lora", "changes"), TUNED)
def test_peft_computes_what_the_tuned_model_does(
    name: str, lora: LoraConfig, changes: dict[str, Any] | None, tmp_path: Path
) -> None:
    peft = pytest.importorskip("peft")
    write_tuned(name, tmp_path, lora, changes)
    folder, report = export_model(tmp_path / "run", "peft", options=OPTIONS)
    assert f"LoRA of rank {lora.rank}" in report.summary
    proof = read_parity(folder)
    assert (proof["engine"], proof["passed"]) == ("peft", True)
    base = export_unchecked(tmp_path / "parent", tmp_path / "base", OPTIONS)
    tuned, transformers = read_model(tmp_path / "run"), pytest.importorskip("transformers")
    auto_class = next(line for line in (folder / "README.md").read_text().splitlines() if "from transformers" in line)
    arguments: dict[str, Any] = {"num_labels": 2} if changes else {}
    arguments |= {"add_pooling_layer": False} if auto_class.endswith("AutoModel") else {}
    theirs = getattr(transformers, auto_class.split()[-1]).from_pretrained(base, **arguments)
    wrapped = peft.PeftModel.from_pretrained(theirs, folder).eval()
    with torch.no_grad():
        assert max_difference(*compute_outputs(wrapped.base_model.model, tuned.model)) < TOLERANCE


@pytest.mark.parametrize(("name", "lora"), [case[:2] for case in TUNED if "bert" not in case[0]])
def test_the_files_hold_the_change_of_each_matrix(
    name: str, lora: LoraConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W + scale B A of the files is the exported tuned model, without PEFT."""
    monkeypatch.setitem(extras.EXTRAS, "peft", (("no_such_module",), ""))
    write_tuned(name, tmp_path, lora)
    folder, report = export_model(tmp_path / "run", "peft", options=OPTIONS)
    assert report.notes[-1].startswith("parity: not checked, because peft or transformers is not installed")
    config, tensors = json.loads((folder / CONFIG).read_text()), load_file(folder / TENSORS)
    architecture = ARCHITECTURES[CASES[name].architecture]
    before, after = (
        convert_weights(read_model(tmp_path / path), architecture, POSITIONS) for path in ("parent", "run")
    )
    changed = set()
    for module in config["target_modules"]:
        a, b = (tensors[f"base_model.model.{module}.lora_{factor}.weight"] for factor in "AB")
        rank, alpha = (
            config["rank_pattern"].get(module, config["r"]),
            config["alpha_pattern"].get(module, config["lora_alpha"]),
        )
        assert a.size(0) == b.size(1) == rank
        change = alpha / (sqrt(rank) if config["use_rslora"] else rank) * b @ a
        expected = before[f"{module}.weight"] + (change.T if config["fan_in_fan_out"] else change)
        torch.testing.assert_close(after[f"{module}.weight"], expected, rtol=0, atol=TOLERANCE)
        changed.add(f"{module}.weight")
    assert changed == {key for key in after if not torch.equal(before[key], after[key])}


def test_a_run_without_adapter_is_refused(tmp_path: Path) -> None:
    write_case("llama-tied", tmp_path / "run" / "best")
    (tmp_path / "run" / "run.toml").touch()
    with pytest.raises(RegardError, match="This folder contains no adapter"):
        export_model(tmp_path / "run", "peft")


def test_a_removed_parent_is_said(tmp_path: Path) -> None:
    write_tuned("llama-tied", tmp_path, RANK_3)
    (tmp_path / "parent").rename(tmp_path / "elsewhere")
    if extras.list_missing("peft"):
        pytest.skip("peft is not installed")
    _, report = export_model(tmp_path / "run", "peft")
    assert "does not hold the parent's weights" in report.notes[-1]
