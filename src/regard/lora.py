"""LoRA (Hu et al. 2021): train low-rank adapters for frozen linear layers, save them, merge them into the weights.

    x --+-- W (frozen) ----------------+-- +
        |                              |
        +-- dropout -- A -- B -- scale-+        A: (rank, in), B: (out, rank); B is 0 at first

`LoraLinear` replaces a Linear and keeps the names of its weights: next to `query.weight` there are
`query.lora_a` and `query.lora_b`. Code that packs or copies the weights of a plain `nn.Linear` (`type(x) is nn.Linear`)
calls it as a module instead.
"""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from fnmatch import fnmatchcase

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.base.errors import RegardError
from regard.config.finetune import LoraConfig
from regard.models.heads import LMHead

A, B = "lora_a", "lora_b"


class LoraLinear(nn.Linear):
    """A frozen Linear with an adapter: W x + bias + scale B A dropout(x)."""

    def __init__(self, linear: nn.Linear, rank: int, scale: float, dropout: float = 0.0) -> None:
        nn.Module.__init__(self)  # not nn.Linear's: the weights exist already
        self.in_features, self.out_features = linear.in_features, linear.out_features
        self.weight, self.bias = linear.weight, linear.bias
        for parameter in linear.parameters():
            parameter.requires_grad_(False)
        self.scale, self.dropout = scale, dropout
        self.lora_a = nn.Parameter(linear.weight.new_empty(rank, linear.in_features))
        self.lora_b = nn.Parameter(linear.weight.new_empty(linear.out_features, rank))

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 - the name in nn.Linear
        """(..., in) -> (..., out)."""
        hidden = F.linear(F.dropout(input, self.dropout, self.training), self.lora_a)  # (..., rank)
        return F.linear(input, self.weight, self.bias) + self.scale * F.linear(hidden, self.lora_b)


def add_adapters(model: nn.Module, settings: LoraConfig, seed: int | None = None) -> list[str]:
    """Replace every Linear whose name matches with a `LoraLinear`; return their names.

    A language model's output matrix gets no adapter: its head reads the weight directly, which may be tied.

    Args:
        model: The model. Only its adapters and the parameters that the caller leaves trainable are trained.
        settings: Rank, scale, dropout and name patterns.
        seed: Seed of A, which is initialized like a new `nn.Linear`; B is zero, so the model's outputs do not change.
            None leaves both uninitialized, for weights that are loaded later.

    Raises:
        RegardError: If a pattern matches no Linear.
    """
    outputs = {id(module.projection) for module in model.modules() if isinstance(module, LMHead)}  # read, not called
    linears = {
        name: module
        for name, module in model.named_modules()
        if type(module) is nn.Linear and id(module) not in outputs
    }
    for pattern in settings.modules:
        if not any(fnmatchcase(name, pattern) for name in linears):
            hint = f"The Linears are named like: {', '.join(list(linears)[:3])}, ..."
            raise RegardError(
                f"The pattern '{pattern}' matches no Linear.", location="finetune.lora.modules", hint=hint
            )
    chosen = [name for name in linears if any(fnmatchcase(name, pattern) for pattern in settings.modules)]
    generator = None if seed is None else torch.Generator().manual_seed(seed)
    for name in chosen:
        parent, _, attribute = name.rpartition(".")
        adapter = LoraLinear(linears[name], settings.rank, settings.scale, settings.dropout)
        setattr(model.get_submodule(parent), attribute, adapter)
        if generator is not None:
            nn.init.kaiming_uniform_(adapter.lora_a, a=math.sqrt(5), generator=generator)
            nn.init.zeros_(adapter.lora_b)
    return chosen


def is_adapter(name: str) -> bool:
    """Whether a parameter of this name belongs to an adapter.

    >>> is_adapter("decoder.layers.0.attention.query.lora_a"), is_adapter("decoder.layers.0.attention.query.weight")
    (True, False)
    """
    return name.endswith((f".{A}", f".{B}"))


def merge_weights(weights: Mapping[str, Tensor], scale: float) -> dict[str, Tensor]:
    """Return the merged weights: W + scale B A instead of W, A and B.

    Args:
        weights: Weights of a model with adapters; they are not changed.
        scale: The scale of the adapters.
    """
    merged = {name: tensor for name, tensor in weights.items() if not is_adapter(name)}
    for name, a in weights.items():
        if name.endswith(f".{A}"):
            base = f"{name.removesuffix(A)}weight"
            b = weights[f"{name.removesuffix(A)}{B}"]
            merged[base] = torch.addmm(merged[base], b.to(merged[base]), a.to(merged[base]), alpha=scale)
    return merged


def find_scale(model: nn.Module) -> float:
    """Return the scale of a model's adapters; 0 if it has none."""
    return next((module.scale for module in model.modules() if isinstance(module, LoraLinear)), 0.0)


def _base_name(name: str) -> str:
    """Return the name of the parameter that an adapter tensor changes."""
    return f"{name.rpartition('.')[0]}.weight" if is_adapter(name) else name


class AdapterSet:
    """Several adapters for one model, with one active at a time.

        adapters = AdapterSet(model)
        adapters.add("news", tensors, scale)
        with adapters.active("news"):
            model(...)

    The block merges the adapter into the weights, so the model runs as fast as without one. Afterwards the weights are
    restored exactly, from a copy of the matrices that adapters change.
    """

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self._parameters = dict(model.named_parameters())
        self._versions: dict[str, int] = {}  # torch's counters of changes in place, when this class last wrote
        self._originals: dict[str, Tensor] = {}  # of the matrices that an adapter changes
        self._adapters: dict[str, tuple[dict[str, Tensor], float]] = {}  # factors and scale, by name
        self._current: str | None = None

    @property
    def names(self) -> list[str]:
        """The names of the adapters."""
        return list(self._adapters)

    def add(self, name: str, tensors: Mapping[str, Tensor], scale: float) -> None:
        """Add an adapter: tensors `....lora_a` and `....lora_b` with their scale, and full tensors, e.g. for a head.

        Raises:
            RegardError: If the model has no parameter of this name and shape.
        """
        for key, tensor in tensors.items():
            base = self._parameters.get(_base_name(key))
            side = 1 if key.endswith(f".{A}") else 0
            has_shape = base is not None and (
                tensor.dim() == 2 and base.size(side) == tensor.size(side)
                if is_adapter(key)
                else base.shape == tensor.shape
            )
            if not has_shape:
                message = f"The adapter does not match the model, which does not have {key} {tuple(tensor.shape)}."
                raise RegardError(message, hint="Use the adapter with the model that it was trained for.")
        for key in tensors:
            base_name = _base_name(key)
            self._originals.setdefault(base_name, self._parameters[base_name].detach().clone())
            self._versions.setdefault(base_name, self._parameters[base_name]._version)
        self._adapters[name] = (dict(tensors), scale)

    @contextmanager
    def active(self, name: str | None) -> Iterator[None]:
        """Use an adapter inside the block; None uses the base model."""
        previous = self._current
        self.activate(name)
        try:
            yield
        finally:
            self.activate(previous)

    @torch.no_grad()
    def activate(self, name: str | None) -> None:
        """Use an adapter until another one is activated; None uses the base model.

        Raises:
            RegardError: If there is no such adapter, or the model's weights were changed.
        """
        if name == self._current:
            return
        if name is not None and name not in self._adapters:
            hint = f"The model has: {', '.join(self._adapters) or 'none'}."
            raise RegardError(f"There is no adapter '{name}'.", hint=hint)
        tensors, scale = ({}, 0.0) if name is None else self._adapters[name]
        weights = merge_weights({**self._originals, **tensors}, scale)
        parameters = dict(self._model.named_parameters())
        for key in weights:
            if parameters.get(key) is not self._parameters[key] or parameters[key]._version != self._versions[key]:
                hint = "Reload the model, change its weights, and then add the adapters."
                raise RegardError(f"{key} was changed after adapters were added; they would undo it.", hint=hint)
        for key, weight in weights.items():
            self._parameters[key].copy_(weight)
            self._versions[key] = self._parameters[key]._version
        self._current = name
