"""The device of a run: which one is there, and when its work is done."""

import torch

from regard.base.errors import RegardError
from regard.config.codec import runs
from regard.config.run import Run
from regard.config.tables import plain
from regard.store.model_folder import RUN


def with_device(run: Run) -> Run:
    """The settings with a device that is there."""
    name = run.device.name
    if name == "auto":
        return runs().parse(plain(run), {"device.name": _best()}, where=RUN)
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


def has_bfloat16(name: str) -> bool:
    """Whether the device has units of its own for bfloat16 products; elsewhere they take longer than float32 ones."""
    kind = (_best() if name == "auto" else name).partition(":")[0]
    if kind == "cpu":
        told = getattr(torch.cpu, "get_capabilities", dict[str, object])()  # older versions of torch do not tell
        return bool(told.get("amx_bf16"))
    return kind == "cuda" and torch.cuda.is_available() and torch.cuda.is_bf16_supported(including_emulation=False)


def wait(device: torch.device) -> None:
    """Until the device has done what it was given: some only note it down, and a clock would see nothing."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()


def _best() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"
