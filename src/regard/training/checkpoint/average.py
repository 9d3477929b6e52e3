"""Weight averaging: an exponential moving average during training, and the mean of checkpoints after it.

SGD iterates oscillate around a minimum of the loss; their average lies closer to it.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import get_ema_multi_avg_fn

from regard.base.errors import RegardError
from regard.store.weights import describe_mismatch


class Ema:
    """Exponential moving average of a model's parameters, over about the last 1 / (1 - decay) steps.

    ema = Ema(model, decay=0.999)
    ...; optimizers.step(); ema.update(number)
    with ema.average_parameters():
        validate(model)
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        if not 0 <= decay < 1:
            raise RegardError(
                f"The EMA decay must be at least 0 and below 1, got {decay}.", hint="Set train.ema, e.g. to 0.999."
            )
        self.decay = decay
        self._parameters = dict(model.named_parameters())  # tied weights once
        self._average = {name: parameter.detach().clone() for name, parameter in self._parameters.items()}

    @torch.no_grad()
    def update(self, step: int | None = None) -> None:
        """Update the average with the current weights.

        Args:
            step: Number of the step, from 1. If given, the average is bias-corrected: it excludes the random initial
                weights, which would otherwise contribute for several times 1 / (1 - decay) steps.
        """
        decay = self.decay
        if step is not None:  # decay (1 - decay^(n-1)) / (1 - decay^n): 0 at the first, then soon the decay itself
            decay *= (1 - self.decay ** (step - 1)) / (1 - self.decay**step)
        average = [_local(tensor) for tensor in self._average.values()]
        current = [_local(parameter.detach()) for parameter in self._parameters.values()]
        get_ema_multi_avg_fn(decay)(average, current, step)

    def weights(self) -> dict[str, Tensor]:
        """Return the averaged parameters by name; the tensors are not copied."""
        return dict(self._average)

    def load(self, weights: Mapping[str, Tensor]) -> None:
        """Restore a saved average."""
        _check_shapes(self._average, weights)
        for name, average in self._average.items():
            average.copy_(weights[name])

    @contextmanager
    def average_parameters(self) -> Iterator[None]:
        """Use the averaged weights inside this block and restore the original weights exactly afterwards."""
        backup = {name: parameter.detach().clone() for name, parameter in self._parameters.items()}
        try:
            self._set_weights(self._average)
            yield
        finally:
            self._set_weights(backup)

    @torch.no_grad()
    def _set_weights(self, weights: Mapping[str, Tensor]) -> None:
        for name, parameter in self._parameters.items():
            parameter.copy_(weights[name])


def _local(tensor: Tensor) -> Tensor:
    """Return this rank's shard of a DTensor, or the tensor unchanged: an op cannot mix DTensors and tensors."""
    to_local = getattr(tensor, "to_local", None)
    return tensor if to_local is None else to_local()


def average_checkpoints(checkpoints: Iterable[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """Return the mean of several checkpoints' weights, summed in float64; reads one checkpoint at a time.

    >>> average_checkpoints([{"w": torch.tensor([1.0, 2.0])}, {"w": torch.tensor([2.0, 4.0])}])
    {'w': tensor([1.5000, 3.0000])}
    """
    sums: dict[str, Tensor] = {}
    dtypes: dict[str, torch.dtype] = {}
    count = 0
    for weights in checkpoints:
        if count == 0:
            sums = {name: tensor.to(torch.float64, copy=True) for name, tensor in weights.items()}
            dtypes = {name: tensor.dtype for name, tensor in weights.items()}
        else:
            _check_shapes(sums, weights)
            for name, total in sums.items():
                total.add_(weights[name])
        count += 1
        del weights  # free the memory before the next checkpoint is read
    if count == 0:
        raise RegardError("No checkpoints to average.", hint="Give the weights of at least one checkpoint.")
    return {name: (total / count).to(dtypes[name]) for name, total in sums.items()}


def _check_shapes(expected: Mapping[str, Tensor], weights: Mapping[str, Tensor]) -> None:
    if mismatch := describe_mismatch({name: tensor.shape for name, tensor in expected.items()}, weights):
        raise RegardError(
            f"Weights of different models cannot be averaged: {mismatch}.", hint="Use checkpoints from the same run."
        )
