"""The parallelism layouts that a plan compares, with their settings or the reason why they are not possible."""

from collections.abc import Mapping
from dataclasses import dataclass

from regard.base.errors import RegardError
from regard.config.codec import RUN_FILES
from regard.config.run import RunConfig
from regard.training.distributed.layout import ParallelLayout, check_batches, choose_layout

TENSOR_SIZES = (2, 4, 8)  # tensor-parallel group sizes that are compared
NO_TENSOR: dict[str, str | int] = {"parallel.mode": "fsdp", "parallel.replicas": 1, "parallel.tensor": 1}


@dataclass(frozen=True)
class LayoutCandidate:
    """A layout and the settings that select it, or the reason why it is not possible."""

    name: str
    settings: Mapping[str, str | int]
    layout: ParallelLayout | None
    refusal: str = ""


def list_candidates(run: RunConfig, ranks: int, ranks_per_host: int) -> list[LayoutCandidate]:
    """Return the layout in the run's settings; by default DDP, FSDP2, HSDP and FSDP2 with tensor parallelism.

    HSDP shards within a host.
    """
    if ranks == 1:
        return [LayoutCandidate("one process", {}, ParallelLayout())]
    if run.parallel.mode != "auto" or run.parallel.tensor > 1 or run.parallel.replicas > 1:
        layout = choose_layout(run, ranks, ranks_per_host)
        check_batches(run, layout)
        return [LayoutCandidate(_name(layout), {}, layout)]
    names = ["ddp", "fsdp"]
    if ranks > ranks_per_host and ranks % ranks_per_host == 0:
        names.append(f"hsdp={ranks_per_host}")
    names += [
        f"fsdp+tensor={size}" for size in TENSOR_SIZES if size <= min(ranks, ranks_per_host) and ranks % size == 0
    ]
    return [make_candidate(run, name, ranks, ranks_per_host) for name in names]


def make_candidate(run: RunConfig, name: str, ranks: int, ranks_per_host: int) -> LayoutCandidate:
    """Make a candidate from its name: ddp, fsdp, hsdp=N (N shards per replica), tensor=N, joined by "+".

    Raises:
        RegardError: If the name is invalid, or the number of ranks is not divisible by the shards.
    """
    settings = {**NO_TENSOR}
    for part in name.split("+"):
        word, _, number = part.strip().partition("=")
        if word in ("ddp", "fsdp") and not number:
            settings["parallel.mode"] = word
        elif word == "hsdp" and (not number or (number.isdigit() and int(number))):
            shards = int(number or ranks_per_host)
            if ranks % shards:
                hint = f"Choose a number of shards that divides {ranks}."
                raise RegardError(f"{ranks} ranks are not divisible into replicas of {shards} shards.", hint=hint)
            settings["parallel.replicas"] = ranks // shards
        elif word == "tensor" and number.isdigit():
            settings["parallel.tensor"] = int(number)
        else:
            hint = "Use ddp, fsdp, hsdp, hsdp=8, tensor=8, or several joined by +, such as fsdp+tensor=8."
            raise RegardError(f"Unknown parallelism '{part}'.", location="--parallel", hint=hint)
    try:
        layout = choose_layout(RUN_FILES.change(run, settings), ranks, ranks_per_host)
        check_batches(run, layout)
    except RegardError as error:
        return LayoutCandidate(name, settings, None, error.message)
    return LayoutCandidate(name, settings, layout)


def _name(layout: ParallelLayout) -> str:
    """Return the name of a layout, in the format of `make_candidate`."""
    data = "ddp" if layout.shards == 1 else "fsdp" if layout.replicas == 1 else f"hsdp={layout.shards}"
    return f"{data}+tensor={layout.tensor}" if layout.tensor > 1 else data
