"""Parallel layout of a model, replicas x shards x tensor, chosen from the settings and validated.

    replicas   hold the same weights and read different batches         DDP; with shards: HSDP
    shards     hold a part of each tensor and read different batches    FSDP2
    tensor     hold a part of each layer's matrices, same batches       tensor parallelism

Choosing a layout does not need a process group.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from regard.base import limits
from regard.base.errors import RegardError
from regard.base.formatting import pluralize
from regard.config.run import RunConfig
from regard.store.size_check import count_parameters

TRAINING_BYTES = 16  # per parameter, in float32: weight, gradient and two moments of Adam
MEMORY_SHARE = 0.6  # share of a device's memory for them in "ddp"; the rest is for activations
SPLITTABLE_POSITIONS = ("sinusoidal", "sinusoidal_2d", "learned", "rotary", "none")
SPLITTABLE_SCORES = ("scaled_dot", "dot")


@dataclass(frozen=True)
class ParallelLayout:
    """Number of ranks in each dimension; the product is the world size."""

    replicas: int = 1
    shards: int = 1
    tensor: int = 1

    @property
    def world_size(self) -> int:
        """Total number of ranks."""
        return self.replicas * self.shards * self.tensor

    @property
    def data_world_size(self) -> int:
        """Number of ranks that read different batches."""
        return self.replicas * self.shards

    @property
    def is_sharded(self) -> bool:
        """Whether weights are DTensors."""
        return self.shards > 1 or self.tensor > 1

    def __str__(self) -> str:
        name = "DDP" if not self.is_sharded else "HSDP" if self.replicas > 1 else "FSDP2"
        parts = [f"{name} on {self.data_world_size} ranks"] if self.data_world_size > 1 else []
        return " + ".join([*parts, *([f"tensor parallelism on {self.tensor} ranks"] if self.tensor > 1 else [])])


def choose_layout(run: RunConfig, world_size: int, ranks_per_host: int | None = None) -> ParallelLayout:
    """Choose the parallel layout of a run.

    Args:
        run: The settings; `run.parallel` is the requested layout.
        world_size: Number of ranks.
        ranks_per_host: Ranks that share one machine's memory, on a CPU. Default: all.

    Raises:
        RegardError: If the world size is not divisible as required, or the layout does not support the model, optimizer
            or precision.
    """
    if world_size == 1:
        return ParallelLayout()
    settings = run.parallel
    for name, size in (("tensor", settings.tensor), ("replicas x tensor", settings.replicas * settings.tensor)):
        if world_size % size:
            message = f"{world_size} ranks are not divisible by {size} ({name})."
            hint = "Change the number of ranks, parallel.tensor or parallel.replicas."
            raise RegardError(message, location="parallel", hint=hint)
    data_ranks = world_size // settings.tensor
    mode = settings.mode
    if mode == "auto":
        wants_shards = settings.tensor > 1 or settings.replicas > 1
        mode = "fsdp" if wants_shards or not fits_whole(run, ranks_per_host or world_size) else "ddp"
    if mode == "ddp" and settings.replicas not in (1, data_ranks):
        message = (
            f"parallel.mode is 'ddp', which has one replica per rank, but parallel.replicas is {settings.replicas}."
        )
        raise RegardError(message, location="parallel.replicas", hint="Remove it, or set parallel.mode = 'fsdp'.")
    if settings.tensor > 1 and data_ranks > 1 and (mode == "ddp" or settings.replicas > 1):
        message = "Tensor parallelism is only supported with shards; combining it with replicas is not tested."
        raise RegardError(message, location="parallel", hint="Set parallel.mode = 'fsdp' and parallel.replicas = 1.")
    if mode == "ddp":
        layout = ParallelLayout(replicas=data_ranks, tensor=settings.tensor)
    else:
        layout = ParallelLayout(settings.replicas, data_ranks // settings.replicas, settings.tensor)
    if layout.is_sharded:
        _raise_first(_find_sharding_faults(run))
    if layout.tensor > 1:
        _raise_first(_find_tensor_faults(run, layout.tensor))
    return layout


def check_batches(run: RunConfig, layout: ParallelLayout) -> None:
    """Raise an error if a step has fewer batches than there are data ranks."""
    ranks = layout.data_world_size
    if ranks > run.gradient_accumulation:
        message = f"A step has {pluralize(run.gradient_accumulation, 'batch', 'batches')} (train.step_tokens / "
        message += f"data.batch_tokens), too few for {ranks} data ranks."
        size = run.train.step_tokens // ranks
        hint = (
            f"Start at most {run.gradient_accumulation}, make the batches smaller (--set data.batch_tokens={size}), or "
        )
        raise RegardError(message, hint=f"{hint}increase train.step_tokens.")


def fits_whole(run: RunConfig, ranks_per_host: int) -> bool:
    """Whether a rank has enough memory for the full model with gradients and optimizer state."""
    device = torch.device("cpu" if run.device.name == "auto" else run.device.name)
    if device.type == "cuda":
        memory = torch.cuda.get_device_properties(device).total_memory
    else:
        memory = limits.total_memory() // ranks_per_host
    return count_parameters(run.model) * TRAINING_BYTES <= MEMORY_SHARE * memory


Fault = tuple[str, str, str]  # where, what, fix


def _raise_first(faults: Iterator[Fault]) -> None:
    for location, message, hint in faults:
        raise RegardError(message, location=location, hint=hint)


def _find_sharding_faults(run: RunConfig) -> Iterator[Fault]:
    ddp = "or parallel.mode = 'ddp', which supports every optimizer and precision."
    yield from _find_recurrent_faults(run, "Use parallel.mode = 'ddp'.")
    if run.train.optimizer.kind == "muon":
        message = (
            "Muon does not support sharded weights: it orthogonalizes full matrices, which took 8 times as long as "
            "AdamW on shards and differed from one rank by 5e-5 after 10 steps."
        )
        yield "train.optimizer", message, f"Use adamw or adam, {ddp}"
    if run.train.precision == "float16":
        message = "float16 does not support sharded weights: ranks would have to synchronize every loss scale overflow."
        yield "train.precision", message, f"Use bfloat16 or float32, {ddp}"


def _find_recurrent_faults(run: RunConfig, hint: str) -> Iterator[Fault]:
    for name in ("encoder", "decoder"):
        if hasattr(run.model, name) and getattr(run.model, name).kind == "recurrent":
            message = "Recurrent layers cannot be split: torch's kernels need the matrix of all gates."
            yield f"model.{name}.kind", message, hint


def _find_tensor_faults(run: RunConfig, ranks: int) -> Iterator[Fault]:
    off = "or set parallel.tensor = 1."
    yield from _find_recurrent_faults(run, "Set parallel.tensor = 1 and parallel.mode = 'ddp'.")
    stacks: dict[str, Any] = {
        name: getattr(run.model, name) for name in ("encoder", "decoder") if hasattr(run.model, name)
    }
    for name, stack in stacks.items():
        location = f"model.{name}"
        if stack.position.kind not in SPLITTABLE_POSITIONS:
            message = (
                f"Tensor parallelism does not split positions of kind '{stack.position.kind}': their bias has a row "
            )
            message += "for every head, but each rank only has some of the heads."
            yield f"{location}.position", message, f"Use sinusoidal, learned or rotary positions, {off}"
        attentions = {"attention": stack.attention} | ({"cross": stack.cross} if hasattr(stack, "cross") else {})
        for part, attention in attentions.items():
            if attention.score.kind not in SPLITTABLE_SCORES:
                message = (
                    f"Tensor parallelism does not split the score '{attention.score.kind}': it has weights per head."
                )
                yield f"{location}.{part}.score", message, f"Use scaled_dot or dot, {off}"
            if attention.query_key_norm is not None:
                message = "Tensor parallelism does not split query_key_norm: all heads share its weights."
                yield f"{location}.{part}.query_key_norm", message, f"Remove it, {off}"
            if attention.heads % ranks or attention.groups % ranks:
                message = (
                    f"{attention.heads} query heads and {attention.groups} key and value heads are not divisible by "
                )
                message += f"{ranks} ranks."
                yield f"{location}.{part}", message, f"Choose head counts divisible by {ranks}, {off}"
        if stack.feedforward.kind == "custom":
            message = "Tensor parallelism does not split a feed-forward of your own."
            yield f"{location}.feedforward", message, off.removeprefix("or ").capitalize()
        if stack.feedforward.d_ff % ranks:
            message = f"A hidden layer of {stack.feedforward.d_ff} is not divisible by {ranks} ranks."
            yield f"{location}.feedforward.d_ff", message, f"Choose a size divisible by {ranks}, {off}"
        for kind in ("attention", "feedforward"):
            if getattr(stack.dropout, kind):
                message = (
                    f"Tensor parallelism does not support dropout.{kind}: each rank would draw the numbers of one "
                )
                message += "rank for its own part, which moved weights by 3e-2 in 10 steps."
                yield f"{location}.dropout.{kind}", message, f"Use dropout.sublayer and dropout.embedding, {off}"
