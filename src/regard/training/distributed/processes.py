"""The processes that train one model together: `SingleProcess` here, `DistributedContext` in `context.py`.

The trainer and everything below it talk to this interface and never import torch.distributed, so one process pays
nothing for the others. Words:

    rank, world_size             this process among all
    data_rank, data_world_size   this process among those that read different batches; ranks of one tensor-parallel
                                 group read the same ones
    main                         rank 0: it alone locks the run folder, prepares data, decides and writes
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from torch import Tensor, nn

from regard.base.errors import RegardError
from regard.config.model import AnyModelConfig
from regard.config.run import RunConfig
from regard.models.build import AnyModel, build
from regard.training.objective import Objective

Json = Any  # None, bool, int, float, str, or lists and dictionaries of them


class SingleProcess:
    """Training in one process; also the interface that every group of processes has."""

    rank = 0
    world_size = 1
    data_rank = 0
    data_world_size = 1
    is_sharded = False  # whether weights, gradients and optimizer state are DTensors
    copies_per_host = 1.0  # copies of the weights in the memory of one machine
    has_started = False  # whether rank 0 has sent the settings of the run to the other ranks
    loss_factor = 1.0  # the loss is multiplied by it: a group that averages gradients needs its number of data ranks

    @property
    def is_main(self) -> bool:
        """Whether this process decides, writes and displays."""
        return self.rank == 0

    def check(self, run: RunConfig) -> None:
        """Raise `RegardError` if the processes cannot train the run."""

    def init_device_mesh(self, run: RunConfig) -> None:
        """Choose how the processes share the model of a run."""

    def can_autotune(self, run: RunConfig) -> bool:  # noqa: ARG002
        """Whether this process has the memory for a whole copy of the model, on which device settings are timed."""
        return True

    def build(self, settings: AnyModelConfig, *, seed: int, device: str) -> AnyModel:
        """Build the model with initial weights that do not depend on the number of processes."""
        return build(settings, seed=seed).to(device)

    def shard(self, objective: Objective) -> Objective:
        """Make the processes compute one loss; return the module to call.

        Its parameters may be replaced: create optimizers and averages afterwards.
        """
        return objective

    def accumulate(self, is_last: bool) -> AbstractContextManager[object]:  # noqa: ARG002
        """Return the context of a forward and backward pass; gradients are synchronized in the last of a step."""
        return nullcontext()

    def end_evaluation(self) -> None:
        """Free what a forward pass without a backward pass leaves: whole weights, which may change before the next."""

    def sum(self, values: Sequence[float]) -> list[float]:
        """Return the sums over all data ranks, in float64."""
        return list(values)

    def max(self, value: int) -> int:
        """Return the largest of the values of all ranks."""
        return value

    def clip_gradients(self, parameters: Sequence[nn.Parameter], max_norm: float) -> float:
        """Scale the gradients down to a maximum norm (0: leave them); return their norm over all processes before."""
        if max_norm:
            return nn.utils.clip_grad_norm_(parameters, max_norm).item()
        grads = [parameter.grad for parameter in parameters if parameter.grad is not None]
        return nn.utils.get_total_norm(grads).item()

    def broadcast(
        self,
        value: Json,
        *,
        patient: bool = False,  # noqa: ARG002
        while_waiting: Callable[[], object] | None = None,  # noqa: ARG002
    ) -> Json:
        """Return the value of rank 0 on every rank; the values of other ranks are ignored.

        Args:
            value: The value of this rank.
            patient: Wait for hours if needed: rank 0 may be preparing data.
            while_waiting: Called repeatedly by the other ranks while they wait.
        """
        return value

    def all_gather(self, value: Json, *, patient: bool = False) -> list[Json]:  # noqa: ARG002
        """Return the values of all ranks, by rank, on every rank; `patient` waits for hours if needed."""
        return [value]

    def wait(self) -> None:
        """Wait for all processes, for hours if needed: rank 0 may be preparing data."""

    @contextmanager
    def on_rank_zero(self) -> Iterator[bool]:
        """Yield whether this process is rank 0 and shall do the work of the block; the others wait for its end.

        An error of rank 0 ends all processes.
        """
        yield True

    def full_tensor(self, tensor: Tensor) -> Tensor:
        """Return the full tensor of one that may be sharded; all ranks call it together."""
        return tensor

    def explain(self, error: RuntimeError) -> RegardError | None:  # noqa: ARG002
        """Return an error for the user if this one means that another process has ended or does not answer."""
        return None

    def close(self) -> None:
        """Leave the group."""


def connect_processes() -> SingleProcess:
    """Return the group of processes that a launcher's environment variables describe, or a single process."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        return SingleProcess()
    from regard.training.distributed.context import connect  # only here: one process never imports torch.distributed

    return connect()
