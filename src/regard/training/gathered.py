"""A full copy of a sharded model on rank 0, to generate with."""

import torch
from torch import nn

from regard.config.model import AnyModelConfig
from regard.lora import find_scale, merge_weights
from regard.models.build import AnyModel, build
from regard.store.weights import get_weights
from regard.training.distributed.processes import SingleProcess


def gather_model(model: nn.Module, settings: AnyModelConfig, processes: SingleProcess) -> AnyModel | None:
    """Return a copy of the whole model on rank 0, adapters merged; None on other ranks. All ranks must call it."""
    copy = build(settings).eval() if processes.is_main else None
    copies = {} if copy is None else get_weights(copy)
    adapters: dict[str, torch.Tensor] = {}  # not part of the copy
    for name, weight in get_weights(model).items():
        whole = processes.full_tensor(weight)
        if name in copies:
            copies[name].copy_(whole)
        elif processes.is_main:
            adapters[name] = whole
    for name, weight in merge_weights({**copies, **adapters}, find_scale(model)).items():
        copies[name].copy_(weight)
    return copy
