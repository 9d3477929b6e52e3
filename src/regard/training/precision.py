"""Mixed precision: autocast, and the gradient scaling that float16 needs.

Under `autocast(..., "bfloat16")` matrix products run in bfloat16. Weights, gradients and optimizer state stay float32,
and so do the residual stream, norms, positions, softmax and loss, which sum many values or values of different scale.
"""

import math
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Literal

import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.training.optim import Optimizers

Precision = Literal["float32", "bfloat16", "float16"]
AUTOCAST_DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16}


def autocast(device_type: str, precision: Precision) -> AbstractContextManager[object]:
    """Return the context for the model's forward pass: torch.autocast, or a null context for float32.

    >>> with autocast("cpu", "bfloat16"):
    ...     (torch.ones(1, 1) @ torch.ones(1, 1)).dtype
    torch.bfloat16
    """
    if precision == "float32":
        return nullcontext()
    return torch.autocast(device_type, dtype=AUTOCAST_DTYPES[precision])


class GradScaler:
    """Scales the loss so that float16 gradients do not underflow; a no-op for other precisions.

        scaler.scale(loss).backward()
        scaler.unscale(optimizers)      # once, after the last batch of a step; then clip, check, step
        scaler.update()                 # after every `unscale`, also if the step is skipped

    The scale grows while gradients are finite and is halved otherwise. The caller checks for this and skips the step,
    as for loss spikes.
    """

    def __init__(self, device_type: str, precision: Precision) -> None:
        self.is_enabled = precision == "float16"
        self._scaler = torch.amp.GradScaler(device_type, enabled=self.is_enabled)

    def scale(self, loss: Tensor) -> Tensor:
        """Return the loss times the scale."""
        return self._scaler.scale(loss)

    def unscale(self, optimizers: Optimizers) -> None:
        """Divide the gradients by the scale and record whether all are finite."""
        for optimizer in optimizers.optimizers:
            self._scaler.unscale_(optimizer)

    def update(self) -> None:
        """Update the scale for the next step."""
        self._scaler.update()

    def state_dict(self) -> dict[str, float | int]:
        """Return the state as plain numbers; empty unless the precision is float16."""
        return self._scaler.state_dict()

    def load_state_dict(self, state: Mapping[str, float | int]) -> None:
        """Restore a saved state.

        Raises:
            RegardError: If the state belongs to a different precision or is not a gradient scaler state.
        """
        if bool(state) != self.is_enabled:
            message = "has a gradient scale" if state else "has no gradient scale"
            hint = "Resume with the precision that the run started with."
            raise RegardError(f"The saved state {message}.", location="progress.scaler", hint=hint)
        if state.keys() != self.state_dict().keys() or not all(0 <= value < math.inf for value in state.values()):
            hint = "Restore the checkpoint from a backup, or start a new run."
            raise RegardError(
                "The saved state of the gradient scale is damaged.", location="progress.scaler", hint=hint
            )
        if self.is_enabled:
            self._scaler.load_state_dict(dict(state))
