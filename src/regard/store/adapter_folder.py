"""The adapter folder: LoRA weights, without the weights of the base model.

adapter.toml          rank, scale and modules; the parent and the sha256 of its weights
adapter.safetensors   the factors, and a head that was trained with them
model.toml            the architecture of the merged model
chat_template.jinja   only if it was trained with a chat template
manifest.json         size and sha256 of the files
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor, nn

from regard.base import limits
from regard.base.errors import RegardError
from regard.base.files import MANIFEST, backup_path, create_folder, verify
from regard.config.codec import MODEL_FILES
from regard.config.finetune import AdapterConfig
from regard.config.toml_file import SettingsFile
from regard.lora import AdapterSet, merge_weights
from regard.models.build import build
from regard.store.export_folder import hash_of_weights
from regard.store.model_folder import CARD, StoredModel, has_tokenizer, read_model, write_model
from regard.store.model_path import MODEL, find_model
from regard.store.weight_files import load_weights
from regard.store.weights import get_weights, load_tensors, save_tensors
from regard.text.tokenizer_pair import TokenizerPair

SETTINGS, TENSORS, FOLDER = "adapter.toml", "adapter.safetensors", "adapter"
ADAPTER_FILES: SettingsFile[AdapterConfig] = SettingsFile(AdapterConfig)


@dataclass(frozen=True)
class StoredAdapter:
    """An adapter read from a folder."""

    settings: AdapterConfig
    tensors: dict[str, Tensor]


def write_adapter(
    path: Path,
    settings: AdapterConfig,
    tensors: Mapping[str, Tensor],
    files: Mapping[str, bytes] | None = None,
) -> None:
    """Write an adapter folder atomically, with additional files by name. Replaces an existing folder."""
    with create_folder(path, replace=True) as folder:
        ADAPTER_FILES.save(settings, folder / SETTINGS)
        save_tensors(tensors, folder / TENSORS)
        for name, content in (files or {}).items():
            (folder / name).write_bytes(content)


def find_adapter(path: Path) -> Path:
    """Return the adapter folder of a run, or the folder itself if it is one.

    Raises:
        RegardError: If the folder holds no adapter.
    """
    folder = path if (path / SETTINGS).is_file() else path / FOLDER
    if not (folder / SETTINGS).is_file():
        hint = f"An adapter folder contains {SETTINGS}; `regard tune --lora` writes it to {FOLDER}/ in the run folder."
        raise RegardError("This folder contains no adapter.", location=str(path), hint=hint)
    return folder


def read_adapter_settings(path: Path) -> AdapterConfig:
    """Read the settings of an adapter folder or run folder; only the size of its tensors is verified.

    Raises:
        DamagedError: If a file does not match the manifest.
        RegardError: If the folder holds no adapter.
    """
    folder = find_adapter(path)
    verify(folder, max_bytes=limits.DOCUMENT, size_only=(TENSORS,))
    return ADAPTER_FILES.load(folder / SETTINGS)


def read_adapter(path: Path) -> StoredAdapter:
    """Read an adapter folder (for a run folder: its adapter), verified against its manifest.

    Raises:
        DamagedError: If a file does not match the manifest.
        RegardError: If the folder holds no adapter.
    """
    settings, folder = read_adapter_settings(path), find_adapter(path)
    verify(folder)
    return StoredAdapter(settings, load_tensors(folder / TENSORS))


def merge_adapter(adapter: Path, parent: Path, out: Path, *, replace: bool = False) -> StoredModel:
    """Write the model that an adapter and its parent make together; return it.

    The weights file is byte-identical to `best/` of the run that trained the adapter.

    Raises:
        DamagedError: If a file does not match its manifest.
        RegardError: If the adapter was trained for different weights, or its folder has no model settings.
    """
    stored, folder, base = read_adapter(adapter), find_adapter(adapter), find_model(parent)
    _check_parent(stored, hash_of_weights(base), parent, adapter)
    if not (folder / MODEL).is_file():
        hint = "Older versions of Regard did not write it. Use the best/ folder of the run, or train the adapter again."
        raise RegardError(
            f"The adapter has no {MODEL}, which describes the merged model.", location=str(folder), hint=hint
        )
    verify(base)
    weights = merge_weights(load_weights(base) | stored.tensors, stored.settings.lora.scale)
    settings = MODEL_FILES.load(folder / MODEL)
    expected = get_weights(build(settings, initialize=False))
    weights = {name: tensor for name, tensor in weights.items() if name in expected}  # without the parent's head
    tokenizers = TokenizerPair.load(base) if has_tokenizer(settings) else None
    own = {SETTINGS, TENSORS, MODEL, MANIFEST, CARD}
    files = {path.name: path.read_bytes() for path in folder.iterdir() if path.name not in own}
    card = f"# {settings.task}\n\nThe parent {stored.settings.parent} with a LoRA adapter merged into its weights.\n"
    write_model(out, settings, tokenizers, weights, card, replace=replace, backup=backup_path(out), files=files)
    return read_model(out)


def load_adapters(model: nn.Module, model_folder: Path, folders: Mapping[str, Path]) -> AdapterSet:
    """Read several adapters for one model, by name.

    Raises:
        RegardError: If an adapter was trained for different weights.
    """
    adapters, sha256 = AdapterSet(model), hash_of_weights(find_model(model_folder))
    for name, folder in folders.items():
        stored = read_adapter(folder)
        _check_parent(stored, sha256, model_folder, folder)
        adapters.add(name, stored.tensors, stored.settings.lora.scale)
    return adapters


def _check_parent(adapter: StoredAdapter, sha256: str, parent: Path, folder: Path) -> None:
    if adapter.settings.parent_sha256 != sha256:
        message = f"The adapter was trained for different weights than {parent}."
        raise RegardError(message, location=str(folder), hint=f"Load it with its parent, {adapter.settings.parent}.")
