"""Weights in safetensors files.

A tied output matrix is stored once, as the embedding matrix; the model restores the tie.
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import safetensors.torch
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from regard.base import limits
from regard.base.errors import DamagedError, RegardError

PICKLE_PREFIXES = (b"\x80", b"PK")  # first bytes of a pickle, and of a zip archive (torch.save)
DTYPE_NAMES = {  # in the header of a file
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}


def get_weights(model: nn.Module) -> dict[str, Tensor]:
    """Return the parameters of a model by name, without copying."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def save_tensors(
    tensors: Mapping[str, Tensor],
    path: Path,
    *,
    metadata: Mapping[str, str] | None = None,
    fetch: Callable[[Tensor], Tensor] = lambda tensor: tensor,
) -> None:
    """Write tensors to a file, one after another; equal tensors give equal bytes.

    `safetensors.torch.save_file` needs all tensors at once and copies them, so rank 0 of a sharded run would hold the
    model twice. The files are byte-identical (tests/store/test_weights.py).

    Args:
        tensors: The tensors by name.
        path: The file.
        metadata: Metadata of the header. Default: the format.
        fetch: Called with each tensor in the order of `sort_names` just before it is written: gathers a sharded tensor,
            so that no process holds all of them at once.
    """
    names, header, end = sort_names(tensors), dict[str, object](), 0
    header["__metadata__"] = {"format": "pt"} if metadata is None else dict(metadata)
    for name in names:
        tensor, start = tensors[name], end
        end += tensor.numel() * tensor.element_size()
        header[name] = {"dtype": DTYPE_NAMES[tensor.dtype], "shape": [*tensor.shape], "data_offsets": [start, end]}
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text = text.ljust(-(-len(text) // 8) * 8)  # tensors start at a multiple of 8 bytes
    try:
        with path.open("wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            for name in names:
                content = fetch(tensors[name]).detach().cpu().reshape(-1).view(torch.uint8)
                file.write(content.numpy().data)
    except OSError as error:  # of a full disk: it does not name the file
        raise OSError(error.errno, error.strerror, str(path)) from error


def sort_names(tensors: Mapping[str, Tensor]) -> list[str]:
    """Return the names in file order: the largest element types first, so that all tensors are aligned."""
    return sorted(tensors, key=lambda name: (-tensors[name].element_size(), name))


def load_tensors(path: Path) -> dict[str, Tensor]:
    """Read the tensors of a file."""
    with _check_file(path):
        return safetensors.torch.load_file(path)


def count_elements(path: Path) -> int:
    """Count the elements of all tensors in a file from its header."""
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
    """Raise a `DamagedError` for a missing, truncated or malformed file."""
    hint = "Restore an intact copy of the folder."
    try:
        with path.open("rb") as file:
            prefix = file.read(8)
        header_size = int.from_bytes(prefix, "little")
        if header_size > limits.HEADER and prefix.startswith(PICKLE_PREFIXES):
            message = "This is a pickle or a torch.save file. Regard does not load it, because it could execute code."
            raise DamagedError(message, location=str(path), hint="Use weights in safetensors format.")
        if header_size > limits.HEADER:
            raise SafetensorError(f"its header has {header_size:,} bytes; the limit is {limits.HEADER:,}")
        yield
    except FileNotFoundError:
        raise DamagedError("The file is missing.", location=str(path), hint=hint) from None
    except SafetensorError as error:
        raise DamagedError(f"The safetensors file is damaged: {error}.", location=str(path), hint=hint) from error


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


def load_into(model: nn.Module, weights: Mapping[str, Tensor], *, location: str) -> None:
    """Copy weights into a model; raise `RegardError` if names, shapes or dtypes do not match."""
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
            f"The weights do not match the model: {mismatch}.", location=location, hint="Use the weights of this model."
        )
    for name, parameter in parameters.items():
        parameter.data.copy_(weights[name])
