"""Weights in safetensors files.

A tied output matrix is the embedding matrix under a second name. The file holds it once; the model restores the tie.
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

PICKLE_PREFIXES = (b"\x80", b"PK")  # first bytes of a pickle, and of a zip archive (torch.save)
_OS_ERROR = re.compile(r"\(os error (\d+)\)")  # in messages of safetensors, for example of a full disk


def get_weights(model: nn.Module) -> dict[str, Tensor]:
    """Return the parameters of a model by name, without copying."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def save_tensors(tensors: Mapping[str, Tensor], path: Path) -> None:
    """Write tensors to a file; equal tensors give equal bytes."""
    contiguous = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    path.touch()
    mode = path.stat().st_mode  # as the user's umask says; safetensors replaces the file by one with mode 0600
    try:
        safetensors.torch.save_file(contiguous, path, metadata={"format": "pt"})
        path.chmod(mode)
    except SafetensorError as error:
        if (match := _OS_ERROR.search(str(error))) is None:
            raise
        raise OSError(int(match[1]), os.strerror(int(match[1])), str(path)) from error


def load_tensors(path: Path) -> dict[str, Tensor]:
    """Read the tensors of a file."""
    with _check_file(path):
        return safetensors.torch.load_file(path)


def count_elements(path: Path) -> int:
    """Count the elements of all tensors of a file, reading its header only."""
    with _check_file(path), safe_open(path, "pt") as file:
        return sum(math.prod(file.get_slice(name).get_shape()) for name in file.keys())  # noqa: SIM118 - not a dict


def check_safetensors(path: Path) -> None:
    """Check size and form of a file's header.

    Raises:
        DamagedError: If it is missing, malformed, too large, or a pickle.
    """
    with _check_file(path), safe_open(path, "pt"):
        pass


@contextmanager
def _check_file(path: Path) -> Iterator[None]:
    """Turn a missing, truncated or malformed file into a `DamagedError`."""
    fix = "Restore an intact copy of the folder."
    try:
        with path.open("rb") as file:
            prefix = file.read(8)
        header_size = int.from_bytes(prefix, "little")
        if header_size > limits.HEADER and prefix.startswith(PICKLE_PREFIXES):
            what = "This is a pickle or a torch.save file: loading it could execute code, so Regard refuses it."
            raise DamagedError(what, where=str(path), fix="Get the weights as safetensors.")
        if header_size > limits.HEADER:
            raise SafetensorError(f"its header has {header_size:,} bytes; the limit is {limits.HEADER:,}")
        yield
    except FileNotFoundError:
        raise DamagedError("The file is missing.", where=str(path), fix=fix) from None
    except SafetensorError as error:
        raise DamagedError(f"The safetensors file is damaged: {error}.", where=str(path), fix=fix) from error


def describe_mismatch(
    expected: Mapping[str, torch.Size], tensors: Mapping[str, Tensor], extra_faults: Iterable[str] = ()
) -> str:
    """Describe how the tensors differ from the expected names and shapes; empty if they match.

    >>> describe_mismatch({"a": torch.Size([2]), "b": torch.Size([3])}, {"a": torch.zeros(4), "c": torch.zeros(1)})
    'a has shape (4,), not (2,); b is missing; c is unknown'
    """
    faults = [*extra_faults, *(f"{name} is missing" for name in expected.keys() - tensors.keys())]
    faults += [f"{name} is unknown" for name in tensors.keys() - expected.keys()]
    faults += [
        f"{name} has shape {tuple(tensors[name].shape)}, not {tuple(expected[name])}"
        for name in expected.keys() & tensors.keys()
        if tensors[name].shape != expected[name]
    ]
    return "; ".join(sorted(faults)[:5]) + ("; ..." if len(faults) > 5 else "")


def load_into(model: nn.Module, weights: Mapping[str, Tensor], *, where: str) -> None:
    """Copy weights into a model; raise `RegardError` unless names and shapes match and dtypes are floating-point."""
    parameters = dict(model.named_parameters())
    dtype_faults = [
        f"{name} has dtype {tensor.dtype}, not a floating-point one"
        for name, tensor in weights.items()
        if not tensor.is_floating_point()
    ]
    if mismatch := describe_mismatch(
        {name: parameter.shape for name, parameter in parameters.items()}, weights, dtype_faults
    ):
        raise RegardError(
            f"The weights do not fit the model: {mismatch}.", where=where, fix="Use the weights of this model."
        )
    for name, parameter in parameters.items():
        parameter.data.copy_(weights[name])
