"""Process interface of the trainer: `SingleProcess` here, `DistributedContext` in `context.py`.

The trainer and everything below it use this interface and never import torch.distributed, so single-process training
has no overhead. Terms:

    rank, world_size             this process among all
    data_rank, data_world_size   this process among the data ranks, which read different batches; ranks of a
                                 tensor-parallel group read the same batches
    main                         rank 0, which locks the run folder, prepares data, decides and writes
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from torch import Tensor, nn

from regard.base.errors import RegardError
from regard.config.model import AnyModelConfig
from regard.config.run import RunConfig
from regard.models.build import AnyModel, build
from regard.store.weights import get_weights, load_into
from regard.training.objective import Objective
from regard.training.precision import Precision

Json = Any  # None, bool, int, float, str, or lists and dictionaries of them


class SingleProcess:
    """Single-process training; also the interface of every process group."""

    rank = 0
    world_size = 1
    data_rank = 0
    data_world_size = 1
    is_sharded = False  # whether weights, gradients and optimizer state are DTensors
    copies_per_host = 1.0  # copies of the weights in one machine's memory
    waited_seconds = 0.0  # for other ranks, so far
    tensor_ranks = 1  # ranks that share each matrix, and therefore read the same batches
    has_started = False  # whether rank 0 has sent the other ranks `Train`, `Stop` or `Fail`

    @property
    def is_main(self) -> bool:
        """Whether this process decides, writes and displays."""
        return self.rank == 0

    @property
    def is_first_on_host(self) -> bool:
        """Whether this process has the lowest rank of its machine."""
        return True

    def check(self, run: RunConfig) -> None:
        """Raise `RegardError` if these processes cannot train the run."""

    def init_device_mesh(self, run: RunConfig) -> None:
        """Choose the parallel layout of a run."""

    def can_autotune(self, run: RunConfig) -> bool:  # noqa: ARG002
        """Whether this process has enough memory for a full copy of the model, used to time device settings."""
        return True

    def build(self, settings: AnyModelConfig, *, seed: int, device: str) -> AnyModel:
        """Build the model with initial weights that do not depend on the number of processes."""
        return build(settings, seed=seed).to(device)

    def draw_weights(self, model: AnyModel, settings: AnyModelConfig, seed: int) -> None:
        """Reset the model to its initial weights."""
        load_into(model, get_weights(build(settings, seed=seed)), location="the initial weights")

    def shard(self, objective: Objective, precision: Precision = "float32") -> Objective:  # noqa: ARG002
        """Wrap or shard the objective for these processes; return the module to call.

        Parameters may be replaced, so create optimizers and averages afterwards.

        Args:
            objective: The objective, built by these processes.
            precision: Precision of matrix products.
        """
        return objective

    def accumulate(self, is_last: bool) -> AbstractContextManager[object]:  # noqa: ARG002
        """Return the context for a forward and backward pass; gradients are synchronized in the last pass of a step."""
        return nullcontext()

    def end_evaluation(self) -> None:
        """Free the gathered weights that a forward pass without backward leaves in memory."""

    def sum(self, values: Sequence[float]) -> list[float]:
        """Return the sums over all data ranks, in float64."""
        return list(values)

    def max(self, value: int) -> int:
        """Return the maximum of the values over all ranks."""
        return value

    def clip_gradients(self, parameters: Sequence[nn.Parameter], max_norm: float) -> float:
        """Clip the gradients to a maximum norm (0: no clipping); return the norm over all processes before clipping."""
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
        """Return rank 0's value on every rank; values of other ranks are ignored.

        Args:
            value: This rank's value.
            patient: Use a timeout of hours, because rank 0 may be preparing data.
            while_waiting: Called repeatedly by the other ranks while they wait.
        """
        return value

    def all_gather(self, value: Json, *, patient: bool = False) -> list[Json]:  # noqa: ARG002
        """Return the values of all ranks, by rank, on every rank; `patient` uses a timeout of hours."""
        return [value]

    def wait(self) -> None:
        """Wait for all processes, with a timeout of hours, because rank 0 may be preparing data."""

    @contextmanager
    def on_rank_zero(self) -> Iterator[bool]:
        """Run the block on rank 0 only; the other ranks wait. Yields True on rank 0.

        An error on rank 0 ends all processes.
        """
        yield True

    def full_tensor(self, tensor: Tensor) -> Tensor:
        """Return the full tensor of a possibly sharded tensor; all ranks must call it together."""
        return tensor

    def explain(self, error: RuntimeError) -> RegardError | None:  # noqa: ARG002
        """Return a readable error if this error means that another process exited or timed out."""
        return None

    def close(self) -> None:
        """Destroy the process group."""
