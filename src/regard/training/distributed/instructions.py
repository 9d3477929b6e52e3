"""Instructions from rank 0 to the other ranks, which wait while it prepares a run.

    rank 0          ... prepares data ...  send(Compute)  ... times settings ...  send(Train)  -> all ranks train
    other ranks     receive() ........................  compute  ..............  receive()

Instead of `Train`, rank 0 may send `Stop` or `Fail` at any time. An instruction is broadcast as JSON.
"""

from collections.abc import Callable
from dataclasses import dataclass

from regard.config.codec import RUN_FILES
from regard.config.run import RunConfig
from regard.config.toml_file import to_dict
from regard.store.model_path import RUN
from regard.training.distributed.processes import SingleProcess
from regard.training.events import StopReason


@dataclass(frozen=True)
class Compute:
    """Compute until the next instruction, so that rank 0 times device settings under realistic load."""

    run: RunConfig


@dataclass(frozen=True)
class Train:
    """Train with these settings."""

    run: RunConfig
    micro_batches: int  # micro-batches per batch


@dataclass(frozen=True)
class Stop:
    """Exit: the run stops before its first step."""

    reason: StopReason


@dataclass(frozen=True)
class Fail:
    """Exit with an error: rank 0 failed before the first step."""

    error: str


Instruction = Compute | Train | Stop | Fail


def send(processes: SingleProcess, instruction: Instruction) -> None:
    """Send an instruction to the other ranks; after any instruction except `Compute` they stop waiting."""
    processes.has_started = not isinstance(instruction, Compute)
    values = {name: to_dict(value) if name == "run" else value for name, value in vars(instruction).items()}
    processes.broadcast({"kind": type(instruction).__name__, **values}, patient=True)


def receive(processes: SingleProcess, while_waiting: Callable[[], object] | None = None) -> Instruction:
    """Wait up to hours for rank 0's next instruction; call `while_waiting` repeatedly until then."""
    message = processes.broadcast(None, patient=True, while_waiting=while_waiting)
    if "run" in message:
        message["run"] = RUN_FILES.parse(message["run"], location=RUN)
    kinds: dict[str, type[Instruction]] = {kind.__name__: kind for kind in (Compute, Train, Stop, Fail)}
    return kinds[message.pop("kind")](**message)
