"""Write a LoRA adapter for the library PEFT, which loads it on top of the Hugging Face export of the parent.

adapter_config.json         rank, scale, and the modules that have factors
adapter_model.safetensors   the factors, and a head of labels that was trained with them
README.md                   how to load it
parity.json                 the comparison of PEFT on the exported parent with the tuned model
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import sqrt
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.base.extras import install_command, list_missing
from regard.base.version import __version__
from regard.config.finetune import LoraConfig
from regard.config.model import ClassificationHeadConfig, TaggingHeadConfig
from regard.exchange.export import ExportOptions, ExportReport
from regard.exchange.huggingface.architectures import AnyArchitecture, choose_architecture
from regard.exchange.huggingface.verify import HuggingFaceRunner, hide_notes, write_not_checked
from regard.exchange.huggingface.write import convert_weights, resolve_max_positions, write_settings
from regard.exchange.parity import measure_parity
from regard.exchange.provenance import read_provenance
from regard.exchange.weight_map import TensorChunk, Transform, Transpose, WeightMap, find_rule
from regard.lora import A, B, is_adapter
from regard.store.adapter_folder import StoredAdapter, read_adapter
from regard.store.export_folder import default_folder, hash_of_weights
from regard.store.model_folder import CARD, StoredModel, read_model
from regard.store.model_path import find_model
from regard.store.weight_files import save_weights
from regard.store.weights import save_tensors

CONFIG, TENSORS = "adapter_config.json", "adapter_model.safetensors"
ENGINE, EXTRA = "peft", "peft"
PREFIX = "base_model.model."  # before every name in a file of PEFT
TASK_TYPES = {  # by the class that loads the parent
    "AutoModelForSeq2SeqLM": "SEQ_2_SEQ_LM",
    "AutoModelForCausalLM": "CAUSAL_LM",
    "AutoModelForSequenceClassification": "SEQ_CLS",
    "AutoModelForTokenClassification": "TOKEN_CLS",
    "AutoModel": "FEATURE_EXTRACTION",
}
USAGE = """# LoRA adapter

An adapter of rank {rank} for `{parent}`, written by Regard {version}. Its parent is the model with the sha256
`{sha256}`, exported by `regard export {parent} --to huggingface`:

```python
from peft import PeftModel
from transformers import {auto_class}

model = {auto_class}.from_pretrained("{base}"{arguments})
model = PeftModel.from_pretrained(model, ".")  # this folder
```
"""


@dataclass
class PeftAdapter:
    """An adapter in the names of a Hugging Face architecture."""

    tensors: dict[str, Tensor] = field(default_factory=dict)
    modules: list[str] = field(default_factory=list)
    """Modules with factors."""
    saved: list[str] = field(default_factory=list)
    """Modules that were trained as a whole."""
    packed: dict[str, int] = field(default_factory=dict)
    """Number of our matrices with factors per packed matrix, if more than one."""
    is_transposed: bool = False
    """Whether the matrices are stored as (in, out)."""


def export(model: Path, folder: Path, options: ExportOptions) -> ExportReport:
    """Write the adapter of a run, and compare PEFT with the tuned model if `peft` and the parent are available.

    Raises:
        RegardError: The run has no adapter, no architecture can represent the model, or the export differs from it.
    """
    adapter, tuned = read_adapter(model.parent), read_model(model)
    parent = _read_parent(adapter)
    origin = None if parent is None else read_provenance(parent.path)
    is_same_task = parent is not None and parent.settings.task == tuned.settings.task
    name = options.architecture or (origin.architecture if origin is not None and is_same_task else None)
    architecture = choose_architecture(tuned.settings, name, location=str(model))
    max_positions = resolve_max_positions(tuned.settings, options.max_positions, origin)
    weight_map = architecture.make_weight_map(tuned.settings, max_positions)
    lora, converted = adapter.settings.lora, convert_adapter(adapter.tensors, weight_map)
    save_tensors(converted.tensors, folder / TENSORS)
    base = default_folder(adapter.settings.parent, "huggingface")
    config = make_config(converted, lora, str(base), TASK_TYPES.get(architecture.auto_class))
    (folder / CONFIG).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    arguments = _list_arguments(tuned, architecture)
    usage = USAGE.format(
        rank=lora.rank,
        parent=adapter.settings.parent,
        version=__version__,
        sha256=adapter.settings.parent_sha256,
        auto_class=architecture.auto_class,
        base=base,
        arguments="".join(f", {name}={value}" for name, value in arguments.items()),
    )
    (folder / CARD).write_text(usage, encoding="utf-8")
    figures = _prove(folder, tuned, parent, architecture, max_positions, adapter.settings.parent)
    size = (folder / TENSORS).stat().st_size / 1e6
    summary = f"LoRA of rank {lora.rank} on {len(converted.modules)} matrices of {architecture.name}, {size:.2f} MB"
    return ExportReport(summary, figures)


def convert_adapter(tensors: Mapping[str, Tensor], weight_map: WeightMap) -> PeftAdapter:
    """Return the factors and other trained tensors in the names of an architecture."""
    adapter, groups = PeftAdapter(), dict[str, list[tuple[Transform, Tensor, Tensor]]]()
    for name, tensor in tensors.items():
        if name.endswith(f".{A}"):
            module = name.removesuffix(f".{A}")
            rule = find_rule(weight_map, f"{module}.weight")
            parts = groups.setdefault(rule.theirs.removesuffix(".weight"), [])
            parts.append((rule.transform, tensor, tensors[f"{module}.{B}"]))
        elif not is_adapter(name):
            theirs = find_rule(weight_map, name).theirs
            adapter.tensors[PREFIX + theirs] = tensor
            adapter.saved.append(theirs.rpartition(".")[0])
    adapter.saved = sorted(set(adapter.saved))
    for module, parts in groups.items():
        a, b = _join_factors(parts)
        adapter.tensors |= {f"{PREFIX}{module}.lora_A.weight": a, f"{PREFIX}{module}.lora_B.weight": b}
        adapter.modules.append(module)
        adapter.is_transposed |= any(_is_transposed(transform) for transform, _, _ in parts)
        if len(parts) > 1:
            adapter.packed[module] = len(parts)
    return adapter


def make_config(adapter: PeftAdapter, lora: LoraConfig, base: str, task_type: str | None) -> dict[str, Any]:
    """Return adapter_config.json. A packed matrix has a larger rank, and an alpha that keeps its scale."""
    return {
        "peft_type": "LORA",
        "task_type": task_type,
        "base_model_name_or_path": base,
        "inference_mode": True,
        "r": lora.rank,
        "lora_alpha": lora.alpha,
        "lora_dropout": lora.dropout,
        "use_rslora": lora.rslora,
        "target_modules": adapter.modules,
        "modules_to_save": adapter.saved or None,
        "rank_pattern": {module: lora.rank * count for module, count in adapter.packed.items()},
        "alpha_pattern": {
            module: lora.alpha * (sqrt(count) if lora.rslora else count) for module, count in adapter.packed.items()
        },
        "fan_in_fan_out": adapter.is_transposed,
        "bias": "none",
    }


def _join_factors(parts: list[tuple[Transform, Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    """Return A and B of one of their matrices. One that packs several of ours gets a block of B for each:

    A = [A_query]      B = [B_query    0    ]
        [A_value]          [   0       0    ]   (the key has no factors)
                           [   0    B_value ]
    """
    a = torch.cat([a for _, a, _ in parts])
    blocks = []
    for number, (transform, _, b) in enumerate(parts):
        index, chunks = (transform.index, transform.chunks) if isinstance(transform, TensorChunk) else (0, 1)
        block = b.new_zeros(chunks, b.size(0), len(parts), b.size(1))  # (chunks, out, parts, rank)
        block[index, :, number] = b
        blocks.append(block.reshape(chunks * b.size(0), -1))
    return a, torch.stack(blocks).sum(dim=0)


def _is_transposed(transform: Transform) -> bool:
    return isinstance(transform, Transpose) or (isinstance(transform, TensorChunk) and transform.transposed)


def _read_parent(adapter: StoredAdapter) -> StoredModel | None:
    """Read the parent; None if it no longer exists or its weights have changed."""
    path = Path(adapter.settings.parent)
    try:
        is_parent = hash_of_weights(find_model(path)) == adapter.settings.parent_sha256
    except (RegardError, OSError):
        return None
    return read_model(path) if is_parent else None


def _list_arguments(tuned: StoredModel, architecture: AnyArchitecture) -> dict[str, Any]:
    """Return additional arguments of the parent's `from_pretrained`."""
    head = getattr(tuned.settings, "head", None)
    if isinstance(
        head, ClassificationHeadConfig | TaggingHeadConfig
    ):  # the parent may have no labels, or different ones
        return {"num_labels": len(head.labels), "ignore_mismatched_sizes": True}
    return architecture.load_arguments


def _prove(
    folder: Path,
    tuned: StoredModel,
    parent: StoredModel | None,
    architecture: AnyArchitecture,
    max_positions: int,
    parent_name: str,
) -> tuple[str, ...]:
    """Load the adapter with PEFT on an export of the parent, and compare it with the tuned model."""
    if list_missing(EXTRA):
        reason = f"peft or transformers is not installed: {install_command(EXTRA)}"
        return (write_not_checked(folder, ENGINE, reason),)
    if parent is None:
        return (write_not_checked(folder, ENGINE, f"{parent_name} does not hold the parent's weights"),)
    import peft

    with TemporaryDirectory() as temporary, hide_notes():
        base = Path(temporary)
        is_same_task = parent.settings.task == tuned.settings.task
        name = architecture.name if is_same_task else None
        base_architecture = choose_architecture(parent.settings, name, location=str(parent.path))
        save_weights(convert_weights(parent, base_architecture, max_positions), base)
        write_settings(base, parent, base_architecture, "float32", max_positions)
        runner = HuggingFaceRunner(base, tuned, architecture, "float32", _list_arguments(tuned, architecture))
        runner.model = peft.PeftModel.from_pretrained(runner.model, folder).eval()
        runner.engine, runner.version = ENGINE, str(peft.__version__)
        parity = measure_parity(tuned, runner, must_match=True, max_positions=max_positions)
    parity.write(folder)
    return parity.describe()
