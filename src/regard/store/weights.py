"""Weights in a safetensors file: each tensor once, under the first of its names.

A tied output matrix is the embedding table under a second name; the file holds it once, and the tie is the model's own.
"""

import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import safetensors.torch
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from regard.base import limits
from regard.base.errors import DamagedError, RegardError

PICKLE_PREFIXES = (b"\x80", b"PK")  # how a pickle begins, and an archive with one in it
_OS_ERROR = re.compile(r"\(os error (\d+)\)")  # how safetensors tells of an error of the system's, a full disk say


def get_weights(model: nn.Module) -> dict[str, Tensor]:
    """What a model has learned, by name; the tensors are the model's own."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def save_tensors(tensors: Mapping[str, Tensor], path: Path) -> None:
    """Write tensors; the same tensors give the same bytes."""
    contiguous = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    try:
        safetensors.torch.save_file(contiguous, path, metadata={"format": "pt"})
    except SafetensorError as error:
        if (match := _OS_ERROR.search(str(error))) is None:
            raise
        raise OSError(int(match[1]), os.strerror(int(match[1])), str(path)) from error


def load_tensors(path: Path) -> dict[str, Tensor]:
    """Read tensors; nothing in the file is ever executed."""
    with _check_file(path):
        return safetensors.torch.load_file(path)


def count_elements(path: Path) -> int:
    """How many numbers the tensors of a file have, by its header alone."""
    with _check_file(path), safe_open(path, "pt") as file:
        return sum(math.prod(file.get_slice(name).get_shape()) for name in file.keys())  # noqa: SIM118 - it is no dict


@contextmanager
def _check_file(path: Path) -> Iterator[None]:
    """What a file that is not whole, or describes itself without end, says of itself."""
    fix = "Take a good copy of the folder."
    try:
        with path.open("rb") as file:
            prefix = file.read(8)
        header_size = int.from_bytes(prefix, "little")
        if header_size > limits.HEADER and prefix.startswith(PICKLE_PREFIXES):
            what = (
                "This is a pickle, or a file of torch.save: whoever loads one runs what it says, and Regard loads none."
            )
            raise DamagedError(what, where=str(path), fix="Ask for the weights as safetensors.")
        if header_size > limits.HEADER:
            raise SafetensorError(f"its header has {header_size:,} bytes, and at most {limits.HEADER:,} are read")
        yield
    except FileNotFoundError:
        raise DamagedError("The file is missing.", where=str(path), fix=fix) from None
    except SafetensorError as error:
        raise DamagedError(f"This is no whole safetensors file: {error}.", where=str(path), fix=fix) from error


def describe_mismatch(
    expected: Mapping[str, torch.Size], tensors: Mapping[str, Tensor], extra_faults: Iterable[str] = ()
) -> str:
    """In what tensors are not those that are wanted, beside other faults that were found; empty if in nothing.

    >>> describe_mismatch({"a": torch.Size([2]), "b": torch.Size([3])}, {"a": torch.zeros(4), "c": torch.zeros(1)})
    'a is (4,), not (2,); b is missing; c is unknown'
    """
    faults = [*extra_faults, *(f"{name} is missing" for name in expected.keys() - tensors.keys())]
    faults += [f"{name} is unknown" for name in tensors.keys() - expected.keys()]
    faults += [
        f"{name} is {tuple(tensors[name].shape)}, not {tuple(expected[name])}"
        for name in expected.keys() & tensors.keys()
        if tensors[name].shape != expected[name]
    ]
    return "; ".join(sorted(faults)[:5]) + ("; ..." if len(faults) > 5 else "")


def load_into(model: nn.Module, weights: Mapping[str, Tensor], *, where: str) -> None:
    """Copy weights into a model, which must have exactly these."""
    parameters = dict(model.named_parameters())
    dtype_faults = [
        f"{name} is {tensor.dtype}, which no weight is"
        for name, tensor in weights.items()
        if not tensor.is_floating_point()
    ]
    if mismatch := describe_mismatch(
        {name: parameter.shape for name, parameter in parameters.items()}, weights, dtype_faults
    ):
        raise RegardError(
            f"The weights do not fit the model: {mismatch}.", where=where, fix="Is it another model's file?"
        )
    for name, parameter in parameters.items():
        parameter.data.copy_(weights[name])
