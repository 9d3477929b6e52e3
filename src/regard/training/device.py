"""Device selection, bfloat16 support, and synchronization for timing."""

import torch

from regard.config.codec import RUN_FILES
from regard.config.run import RunConfig
from regard.nn.device import check_device
from regard.store.model_path import RUN

AMPERE = 8  # major compute capability of the first NVIDIA GPUs with bfloat16 matrix units


def resolve_device(run: RunConfig) -> RunConfig:
    """Replace device "auto" with the best available one; raise an error if the requested device is missing."""
    name = run.device.name
    if name == "auto":
        return RUN_FILES.change(run, {"device.name": _default_device()}, location=RUN)
    check_training_device(name)
    return run


def check_training_device(name: str) -> None:
    """Raise an error if the device is not available on this machine."""
    if name != "auto":
        hint = "Choose another device: --set device.name=cpu (add --force to resume a run that used it)."
        check_device(name, location="device.name", hint=hint)


def prefers_bfloat16(name: str) -> bool:
    """Whether the device has bfloat16 matrix units: a CPU with AMX, or an NVIDIA GPU of 2020 or later."""
    try:
        device = torch.device(_default_device() if name == "auto" else name)
    except RuntimeError:
        return False  # `resolve_device` raises the error
    if device.type == "cpu":
        capabilities = getattr(torch.cpu, "get_capabilities", dict[str, object])()  # missing in older torch
        return bool(capabilities.get("amx_bf16"))
    index = device.index or 0
    is_available = device.type == "cuda" and index < torch.cuda.device_count()
    return is_available and torch.cuda.get_device_capability(index)[0] >= AMPERE


def synchronize(device: torch.device) -> None:
    """Wait until the device has finished all queued work; CUDA and MPS run asynchronously."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()


def _default_device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"
