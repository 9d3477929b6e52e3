"""Parameter groups, optimizers, and optimizer state in safetensors form.

    matrices    weights of nn.Linear, recurrent       weight decay; Muon orthogonalizes the steps of the nn.Linear
                cells and attention scores            and recurrent weights inside layers
    tables      embeddings, positions                 no decay: a rare token's row has no gradient in most steps,
                                                      so decay alone would shrink it to zero
    vectors     biases, norms                         no decay: pulling a norm's scale to zero disables its layer

An embedding that is tied to the output is a table. A separate output matrix has weight decay but is trained by AdamW,
like tables: each row belongs to one token with its own frequency, while Muon treats a matrix as one linear map.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from inspect import unwrap
from typing import Any, assert_never

import torch
from torch import Tensor, nn

from regard.base.errors import RegardError
from regard.config.training import AdamConfig, AdamWConfig, MuonConfig, OptimizerConfig
from regard.nn.positions import Position
from regard.nn.stack import Stack
from regard.store.weights import describe_mismatch
from regard.training.device import prefers_bfloat16
from regard.training.muon import Float32Muon

MUON_MOMENTUM = 0.95  # Jordan et al. 2024
MUON_EPS = 1e-9  # of its AdamW part
NamedParameters = dict[str, nn.Parameter]


@dataclass(frozen=True)
class ParameterGroups:
    """The trainable parameters, each in exactly one group."""

    layers: NamedParameters  # the weights of nn.Linear and of recurrent cells inside the layers
    matrices: NamedParameters  # all other matrices
    no_decay: NamedParameters  # tables and vectors


def group_parameters(model: nn.Module) -> ParameterGroups:
    """Group the parameters of a model; frozen ones are skipped."""
    tables = find_tables(model)
    maps = _parameter_ids(
        module
        for stack in model.modules()
        if isinstance(stack, Stack)
        for layer in stack.layers
        for module in layer.modules()
        if isinstance(module, nn.Linear | nn.RNNBase)
    )
    groups = ParameterGroups({}, {}, {})
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            continue
        if parameter.dim() < 2 or id(parameter) in tables:
            groups.no_decay[name] = parameter
        elif id(parameter) in maps:
            groups.layers[name] = parameter
        else:
            groups.matrices[name] = parameter
    return groups


class EagerAdam(torch.optim.Adam):
    """`torch.optim.Adam` without `torch._dynamo`, which takes as long to import as torch itself.

    torch wraps these methods to support compiled optimizers; Regard compiles only the model.
    """

    step = torch.no_grad()(unwrap(torch.optim.Adam.step))
    zero_grad = unwrap(torch.optim.Adam.zero_grad)
    add_param_group = unwrap(torch.optim.Adam.add_param_group)
    state_dict = unwrap(torch.optim.Adam.state_dict)
    load_state_dict = unwrap(torch.optim.Adam.load_state_dict)


class Optimizers:
    """One or two torch optimizers that act as one."""

    def __init__(self, *optimizers: torch.optim.Optimizer, names: Mapping[int, str]) -> None:
        self.optimizers = optimizers
        self._names = names  # parameter names by id(parameter)
        self._learning_rate: float | None = None

    def set_learning_rate(self, learning_rate: float) -> None:
        """Set the learning rate for the following steps."""
        self._learning_rate = learning_rate
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = learning_rate * group.get("rate_scale", 1.0)

    def step(self) -> None:
        """Update every parameter that has a gradient."""
        if self._learning_rate is None:
            raise RegardError(
                "The optimizer has no learning rate.", hint="Call `set_learning_rate` before the first step."
            )
        for optimizer in self.optimizers:
            optimizer.step()

    def zero_grad(self) -> None:
        """Discard the gradients."""
        for optimizer in self.optimizers:
            optimizer.zero_grad()

    def state_dict(self) -> dict[str, Tensor]:
        """Return the optimizer state with keys such as "exp_avg/encoder.layers.0..."; tensors are not copied.

        A parameter that never had a gradient has no state and is recorded as an empty tensor "untouched/<name>". Before
        the first step the result is empty.
        """
        state: dict[str, Tensor] = {}
        untouched: dict[str, Tensor] = {}
        for optimizer, _, parameter in self._parameters():
            name = self._names[id(parameter)]
            parameter_state = optimizer.state.get(parameter)
            if not parameter_state:
                untouched[f"untouched/{name}"] = torch.empty(0)
            else:
                state.update((f"{key}/{name}", tensor) for key, tensor in parameter_state.items())
        return state | untouched if state else {}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Restore a saved state.

        Raises:
            RegardError: If the state belongs to different parameters or a different optimizer.
        """
        self._check_state(state)
        for optimizer in self.optimizers:
            states: dict[int, dict[str, Tensor]] = {}
            for owner, index, parameter in self._parameters():
                name = self._names[id(parameter)]
                if owner is optimizer and state and f"untouched/{name}" not in state:
                    keys = _state_shapes(optimizer, parameter)
                    states[index] = {key: state[f"{key}/{name}"].clone() for key in keys}
            optimizer.load_state_dict({"state": states, "param_groups": optimizer.state_dict()["param_groups"]})

    def _parameters(self) -> Iterator[tuple[torch.optim.Optimizer, int, nn.Parameter]]:
        """Iterate over all parameters with their optimizer and their index in it."""
        for optimizer in self.optimizers:
            parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
            for index, parameter in enumerate(parameters):
                yield optimizer, index, parameter

    def _check_state(self, state: Mapping[str, Tensor]) -> None:
        if not state:
            return
        expected, wrong_dtypes = dict[str, torch.Size](), list[str]()
        for optimizer, _, parameter in self._parameters():
            name = self._names[id(parameter)]
            if (entry := f"untouched/{name}") in state:
                expected[entry] = state[entry].shape
                continue
            for key, shape in _state_shapes(optimizer, parameter).items():
                entry = f"{key}/{name}"
                expected[entry] = shape
                if key != "step" and entry in state and state[entry].dtype != parameter.dtype:
                    wrong_dtypes.append(f"{entry} is {state[entry].dtype}, not {parameter.dtype}")
        if mismatch := describe_mismatch(expected, state, wrong_dtypes):
            hint = "Resume with the model and the optimizer of the run that saved it."
            raise RegardError(
                f"The state does not fit the optimizer: {mismatch}.", location="the optimizer's state", hint=hint
            )


def make_optimizers(
    model: nn.Module, settings: OptimizerConfig, rate_scales: Mapping[str, float] | None = None
) -> Optimizers:
    """Build the configured optimizer over the trainable parameters of a model.

    Args:
        model: The model.
        settings: The optimizer and its settings.
        rate_scales: Learning rate factors by parameter name; 1 for others.
    """
    groups = group_parameters(model)
    decayed, not_decayed = groups.layers | groups.matrices, groups.no_decay
    scales = rate_scales or {}
    optimizers: list[torch.optim.Optimizer]
    match settings:
        case AdamWConfig(betas=betas, eps=eps, weight_decay=decay):
            optimizers = [_make_adamw((decayed, decay), (not_decayed, 0.0), scales=scales, betas=betas, eps=eps)]
        case AdamConfig(betas=betas, eps=eps):
            groups_of_adam = _make_param_groups((decayed | not_decayed, 0.0), scales=scales)
            optimizers = [EagerAdam(groups_of_adam, lr=0.0, betas=betas, eps=eps, fused=True)]
        case MuonConfig(weight_decay=decay, betas=betas):
            if not groups.layers:
                message = "train.optimizer is 'muon', but no matrix inside a layer is trained."
                raise RegardError(message, hint="Set train.optimizer.kind to 'adamw'.")
            device = next(iter(groups.layers.values())).device
            kind = torch.optim.Muon if prefers_bfloat16(str(device)) else Float32Muon
            muon = kind(
                _make_param_groups((groups.layers, decay), scales=scales),
                lr=0.0,
                momentum=MUON_MOMENTUM,
                adjust_lr_fn="match_rms_adamw",  # the learning rate of AdamW suits Muon, too
            )
            tables = (groups.matrices, decay), (not_decayed, 0.0)
            adamw = _make_adamw(*tables, scales=scales, betas=betas, eps=MUON_EPS)
            optimizers = [muon, adamw]
        case _:
            assert_never(settings)
    return Optimizers(*optimizers, names={id(parameter): name for name, parameter in (decayed | not_decayed).items()})


def _make_adamw(
    *groups: tuple[NamedParameters, float], scales: Mapping[str, float], betas: tuple[float, float], eps: float
) -> EagerAdam:
    param_groups = _make_param_groups(*groups, scales=scales)
    return EagerAdam(param_groups, lr=0.0, betas=betas, eps=eps, fused=True, decoupled_weight_decay=True)


def _make_param_groups(*groups: tuple[NamedParameters, float], scales: Mapping[str, float]) -> list[dict[str, Any]]:
    """Create one group per weight decay, learning rate factor and device mesh.

    A fused step cannot mix DTensors of different meshes.
    """
    param_groups: list[dict[str, Any]] = []
    for named, decay in groups:
        parts: dict[Any, list[nn.Parameter]] = {}
        for name, parameter in named.items():
            parts.setdefault((getattr(parameter, "device_mesh", None), scales.get(name, 1.0)), []).append(parameter)
        param_groups += [
            {"params": parameters, "weight_decay": decay, "rate_scale": scale}
            for (_, scale), parameters in parts.items()
        ]
    return param_groups


def _state_shapes(optimizer: torch.optim.Optimizer, parameter: nn.Parameter) -> dict[str, torch.Size]:
    """Return the names and shapes of a parameter's optimizer state after its first step."""
    shape = parameter.shape
    match optimizer:
        case torch.optim.Adam():
            return {"step": torch.Size(), "exp_avg": shape, "exp_avg_sq": shape}
        case torch.optim.Muon():
            return {"momentum_buffer": shape}
        case _:
            raise TypeError(f"The state of {type(optimizer).__name__} is not known.")


def find_tables(model: nn.Module) -> set[int]:
    """Return the ids of embedding and position parameters."""
    return _parameter_ids(module for module in model.modules() if isinstance(module, nn.Embedding | Position))


def _parameter_ids(modules: Iterable[nn.Module]) -> set[int]:
    return {id(parameter) for module in modules for parameter in module.parameters()}
