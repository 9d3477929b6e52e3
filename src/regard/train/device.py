"""The device of a run: which one is there, and when its work is done."""

import torch

from regard.base.errors import RegardError
from regard.config.codec import RUN_FILES
from regard.config.run import Run
from regard.store.model_folder import RUN

AMPERE = 8  # the first generation of NVIDIA's GPUs with units for bfloat16


def resolve_device(run: Run) -> Run:
    """The settings with a device that is there."""
    name = run.device.name
    if name == "auto":
        return RUN_FILES.change(run, {"device.name": _default_device()}, where=RUN)
    try:
        if not torch.ones(1, device=name).item():
            raise RuntimeError("it keeps no numbers")
    except (RuntimeError, AssertionError) as error:
        raise RegardError(
            f"There is no device '{name}' here: {str(error).splitlines()[0][:200]}",
            where="device.name",
            fix="Say another: --set device.name=cpu (and, to go on with a run that had it, --accept config).",
        ) from error
    return run


def prefers_bfloat16(name: str) -> bool:
    """Whether the device has matrix units for bfloat16: AMX, or an NVIDIA GPU of 2020 and later."""
    try:
        device = torch.device(_default_device() if name == "auto" else name)
    except RuntimeError:
        return False  # `with_device` says what is wrong
    if device.type == "cpu":
        capabilities = getattr(
            torch.cpu, "get_capabilities", dict[str, object]
        )()  # older versions of torch do not tell
        return bool(capabilities.get("amx_bf16"))
    index = device.index or 0
    is_available = device.type == "cuda" and index < torch.cuda.device_count()
    return is_available and torch.cuda.get_device_capability(index)[0] >= AMPERE


def synchronize(device: torch.device) -> None:
    """Until the device has done what it was given: some only note it down, and a clock would see nothing."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()


def _default_device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"
