"""The weights of a model folder: one safetensors file, or several with an index, as Hugging Face writes them."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from torch import Tensor

from regard.store.model_path import WEIGHTS, is_weights_file
from regard.store.weights import count_elements, load_tensors, save_tensors, sort_names

INDEX = "model.safetensors.index.json"
FILE_BYTES = 5 * 10**9  # larger weights are written as several files, which are hashed and uploaded in parallel


def save_weights(
    weights: Mapping[str, Tensor], folder: Path, *, fetch: Callable[[Tensor], Tensor] = lambda tensor: tensor
) -> None:
    """Write weights into a folder: one file, or several of at most `FILE_BYTES` and an index.

    Args:
        weights: The tensors by name.
        folder: An existing folder without weights.
        fetch: Called with each tensor just before it is written (see `save_tensors`).
    """
    parts = _split(weights)
    if len(parts) == 1:
        save_tensors(weights, folder / WEIGHTS, fetch=fetch)
        return
    files = dict[str, str]()
    for number, part in enumerate(parts, 1):
        name = f"model-{number:05}-of-{len(parts):05}.safetensors"
        save_tensors(part, folder / name, fetch=fetch)
        files |= dict.fromkeys(part, name)
    index = {"metadata": {"total_size": sum(map(_count_bytes, weights.values()))}, "weight_map": files}
    (folder / INDEX).write_text(json.dumps(index, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def find_weights(folder: Path) -> list[Path]:
    """Return the files of the weights in order; a missing single file is returned as well, for the error message."""
    parts = sorted(path for path in folder.glob("model-*.safetensors") if is_weights_file(path.name))
    return parts if parts and not (folder / WEIGHTS).exists() else [folder / WEIGHTS]


def load_weights(folder: Path) -> dict[str, Tensor]:
    """Read the weights of a verified folder."""
    weights = dict[str, Tensor]()
    for path in find_weights(folder):
        weights |= load_tensors(path)
    return weights


def count_parameters(folder: Path) -> int:
    """Count the parameters in all files from their headers."""
    return sum(map(count_elements, find_weights(folder)))


def _split(weights: Mapping[str, Tensor]) -> list[dict[str, Tensor]]:
    """Divide weights into parts of at most `FILE_BYTES`; a larger tensor has a part of its own."""
    parts, free = [dict[str, Tensor]()], FILE_BYTES
    for name in sort_names(weights):
        size = _count_bytes(weights[name])
        if size > free and parts[-1]:
            parts.append({})
            free = FILE_BYTES
        parts[-1][name] = weights[name]
        free -= size
    return parts


def _count_bytes(tensor: Tensor) -> int:
    return tensor.numel() * tensor.element_size()
