"""Compute the size of a model before building it, because settings may require more memory than available.

>>> from regard.config.codec import preset
>>> count_parameters(preset("tiny"))
2605056
"""

from typing import Any

import torch

from regard.base import limits
from regard.base.errors import RegardError
from regard.config.model import AnyModelConfig
from regard.models.build import build

BYTES_PER_PARAMETER = 4  # float32


def count_parameters(settings: AnyModelConfig, *, location: str | None = None) -> int:
    """Count the parameters on the meta device, with one layer per stack: all layers have the same shape."""
    stacks: dict[str, Any] = {
        name: getattr(settings, name) for name in ("encoder", "decoder") if hasattr(settings, name)
    }
    single_layer = settings.model_copy(
        update={name: stack.model_copy(update={"layers": 1}) for name, stack in stacks.items()}
    )
    try:
        with torch.device("meta"):
            model = build(single_layer)
    except (RuntimeError, OverflowError) as error:  # a size that does not fit 64 bits
        raise _too_large_error("more parameters than can be counted", location) from error
    count = 0
    for name, parameter in model.named_parameters():
        stack: Any = stacks.get(name.split(".")[0])
        if stack is None:  # inputs and heads are built as a whole
            count += parameter.numel()
            continue
        count += parameter.numel() * (stack.layers if ".layers." in name else 1)
    return count


def check_fits_memory(settings: AnyModelConfig, *, location: str, copies: float = 1.0) -> int:
    """Return the bytes of the model's parameters; raise `RegardError` if they exceed the memory of this machine.

    Args:
        settings: The model's configuration.
        location: Where the settings come from.
        copies: Copies of the parameters in this machine's memory; less than 1 for shards.
    """
    size = count_parameters(settings, location=location) * BYTES_PER_PARAMETER
    if size * copies > limits.total_memory():
        needed = f"{size * copies:,.0f} bytes of memory; this machine has {limits.total_memory():,}"
        raise _too_large_error(needed, location)
    return size


def _too_large_error(requirement: str, location: str | None) -> RegardError:
    return RegardError(
        f"The model needs {requirement}.", location=location, hint="Use a smaller model, or a machine with more memory."
    )
