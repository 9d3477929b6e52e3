"""Averages of weights: a moving one beside the training, and the mean of several checkpoints after it.

Single weights jump about the bottom of the valley that training found; their average lies nearer to it.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import get_ema_multi_avg_fn

from regard.base.errors import RegardError
from regard.store.weights import describe_mismatch


class Ema:
    """The exponential moving average of a model's parameters: about the last 1 / (1 - decay) updates count.

    ema = Ema(model, decay=0.999)
    ...; optimizers.step(); ema.update(number)
    with ema.applied():
        validate(model)
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        if not 0 <= decay < 1:
            raise RegardError(f"An average with decay {decay} learns nothing.", fix="Use 0 or more, below 1.")
        self.decay = decay
        self._parameters = dict(model.named_parameters())  # tied weights once
        self._average = {name: parameter.detach().clone() for name, parameter in self._parameters.items()}

    @torch.no_grad()
    def update(self, step: int | None = None) -> None:
        """Take in the weights as they are after an update.

        With the update's number (from 1) the average starts without the random first weights, which would stay
        in it for several times 1 / (1 - decay) updates: what it forgets of them is shared out among the others.
        """
        decay = self.decay
        if step is not None:  # decay (1 - decay^(n-1)) / (1 - decay^n): 0 at the first, then soon the decay itself
            decay *= (1 - self.decay ** (step - 1)) / (1 - self.decay**step)
        average, current = list(self._average.values()), [parameter.detach() for parameter in self._parameters.values()]
        get_ema_multi_avg_fn(decay)(average, current, step)

    def weights(self) -> dict[str, Tensor]:
        """The average, by name; the tensors are its own."""
        return dict(self._average)

    def load(self, weights: Mapping[str, Tensor]) -> None:
        """Go on from an average that was saved."""
        _check_shapes(self._average, weights)
        for name, average in self._average.items():
            average.copy_(weights[name])

    @contextmanager
    def average_parameters(self) -> Iterator[None]:
        """The model has the average inside this block, and its own weights again after it, to the bit."""
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


def average_checkpoints(checkpoints: Iterable[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """The mean of several models' weights, added up in float64; of an iterator, one is held at a time.

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
        del weights  # before the next ones are read
    if count == 0:
        raise RegardError("There is nothing to average.", fix="Give the weights of at least one checkpoint.")
    return {name: (total / count).to(dtypes[name]) for name, total in sums.items()}


def _check_shapes(expected: Mapping[str, Tensor], weights: Mapping[str, Tensor]) -> None:
    if mismatch := describe_mismatch({name: tensor.shape for name, tensor in expected.items()}, weights):
        raise RegardError(
            f"Weights of different models have no average: {mismatch}.", fix="Are all of them of one run?"
        )
