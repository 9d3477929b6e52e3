"""Computing in fewer bits: which numbers may be narrow, and the scale that float16 gradients need.

Under `computing(..., "bfloat16")` matrix products run narrow. Weights, their gradients and the optimizer stay float32,
and so do the residual stream, norms, positions, softmax and loss: sums of many numbers, or of large and small ones.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Literal

import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.train.optim import Optimizers

Precision = Literal["float32", "bfloat16", "float16"]
AUTOCAST_DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16}


def autocast(device_type: str, precision: Precision) -> AbstractContextManager[object]:
    """The block in which a model is run: autocast, or nothing for float32.

    >>> with autocast("cpu", "bfloat16"):
    ...     (torch.ones(1, 1) @ torch.ones(1, 1)).dtype
    torch.bfloat16
    """
    if precision == "float32":
        return nullcontext()
    return torch.autocast(device_type, dtype=AUTOCAST_DTYPES[precision])


class GradScaler:
    """Keeps float16 gradients out of the range where they vanish; for the other precisions it does nothing.

        scaler.scale(loss).backward()
        scaler.unscale(optimizers)      # once, after the last batch of an update; then clip, look, step
        scaler.update()                 # after every `unscale`, also where the step was left out

    The scale grows while all goes well and is halved when a gradient was not finite. Such a step must be left out:
    it is the caller who looks, because a spike of the loss is left out for the same reason and in the same place.
    """

    def __init__(self, device_type: str, precision: Precision) -> None:
        self.is_enabled = precision == "float16"
        self._scaler = torch.amp.GradScaler(device_type, enabled=self.is_enabled)

    def scale(self, loss: Tensor) -> Tensor:
        """The loss, times the scale."""
        return self._scaler.scale(loss)

    def unscale(self, optimizers: Optimizers) -> None:
        """Divide the gradients by the scale, and note whether all are finite."""
        for optimizer in optimizers.optimizers:
            self._scaler.unscale_(optimizer)

    def update(self) -> None:
        """Choose the scale of the next update."""
        self._scaler.update()

    def state_dict(self) -> dict[str, float | int]:
        """Plain numbers; empty where there is no scale."""
        return self._scaler.state_dict()

    def load_state_dict(self, state: Mapping[str, float | int]) -> None:
        """Go on from a saved scale."""
        if bool(state) != self.is_enabled:
            what = "has a scale of gradients" if state else "has no scale of gradients"
            raise RegardError(f"The saved state {what}.", fix="Resume with the precision that the run began with.")
        if self.is_enabled:
            self._scaler.load_state_dict(dict(state))
