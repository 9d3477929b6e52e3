"""Check that a device exists before using it."""

import torch

from regard.base.errors import RegardError


def check_device(
    device: str | torch.device, *, location: str = "device", hint: str = 'Choose another, e.g. "cpu".'
) -> None:
    """Raise an error if a device cannot store tensors.

    Args:
        device: The device, e.g. "cpu" or "cuda:0".
        where: The argument or setting that names it.
        fix: What to do if it is missing.
    """
    try:
        if not torch.ones(1, device=device).item():
            raise RuntimeError("it does not store values")
    except (RuntimeError, AssertionError, TypeError) as error:
        raise RegardError(
            f"There is no device '{device}' on this machine: {str(error).splitlines()[0][:200]}",
            location=location,
            hint=hint,
        ) from error
