"""Weights in a safetensors file: each tensor once, under the first of its names.

A tied output matrix is the embedding table under a second name; the file holds it once, and the tie is the model's own.
"""

from collections.abc import Mapping
from pathlib import Path

import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor, nn

from regard.base.errors import DamagedError, RegardError


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    """What a model has learned, by name; the tensors are the model's own."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def save_tensors(tensors: Mapping[str, Tensor], path: Path) -> None:
    """Write tensors; the same tensors give the same bytes."""
    whole = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    safetensors.torch.save_file(whole, path, metadata={"format": "pt"})


def load_tensors(path: Path) -> dict[str, Tensor]:
    """Read tensors; nothing in the file is ever executed."""
    try:
        return safetensors.torch.load_file(path)
    except FileNotFoundError:
        raise DamagedError("The file is missing.", where=str(path), fix="Take a good copy of the folder.") from None
    except SafetensorError as error:
        raise DamagedError(f"This is no whole safetensors file: {error}.", where=str(path)) from error


def fill(model: nn.Module, weights: Mapping[str, Tensor], *, where: str) -> None:
    """Copy weights into a model, which must have exactly these."""
    own = dict(model.named_parameters())
    faults = [f"{name} is missing" for name in own.keys() - weights.keys()]
    faults += [f"{name} is not in the model" for name in weights.keys() - own.keys()]
    for name in own.keys() & weights.keys():
        if own[name].shape != weights[name].shape:
            faults.append(f"{name} is {tuple(weights[name].shape)}, not {tuple(own[name].shape)}")
    if faults:
        told = "; ".join(sorted(faults)[:5]) + ("; ..." if len(faults) > 5 else "")
        raise RegardError(f"The weights do not fit the model: {told}.", where=where, fix="Is it another model's file?")
    for name, parameter in own.items():
        parameter.data.copy_(weights[name])
