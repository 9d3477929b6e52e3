"""Which optimizer moves which parameter, and a state that a file can hold.

    matrices    weights of Linears and of scores      decay; under Muon those of the layers get orthogonal steps
    tables      embeddings, positions                 no decay: a rare word's row has no gradient in most updates,
                                                      so decay alone would wear it down to nothing
    vectors     biases, norms                         no decay: pulling a norm's scale to zero shuts its layer

An embedding that is tied to the output is a table. An output matrix of its own decays as a matrix, but Muon leaves it
to AdamW as it does tables: its rows are words, each with its own frequency, not one map from a space to a space.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, assert_never

import torch
from torch import Tensor, nn

from regard.base.errors import RegardError
from regard.config import training as config
from regard.nn.positions import Position
from regard.nn.stack import Stack
from regard.store.weights import describe_mismatch

Named = dict[str, nn.Parameter]


@dataclass(frozen=True)
class Groups:
    """The parameters that learn, by what may be done to them; each is in one group only."""

    layers: Named  # the matrices of Linears inside the layers
    matrices: Named  # all other matrices
    rest: Named  # tables and vectors


def groups(model: nn.Module) -> Groups:
    """Sort the parameters of a model; those that are frozen are left out."""
    tables = _ids(module for module in model.modules() if isinstance(module, nn.Embedding | Position))
    linears = _ids(
        module
        for stack in model.modules()
        if isinstance(stack, Stack)
        for layer in stack.layers
        for module in layer.modules()
        if isinstance(module, nn.Linear)
    )
    sorted_out = Groups({}, {}, {})
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            continue
        if parameter.dim() < 2 or id(parameter) in tables:
            sorted_out.rest[name] = parameter
        elif id(parameter) in linears:
            sorted_out.layers[name] = parameter
        else:
            sorted_out.matrices[name] = parameter
    return sorted_out


class Optimizers:
    """One or two of torch's optimizers, driven as one."""

    def __init__(self, *each: torch.optim.Optimizer, names: Mapping[int, str]) -> None:
        self.each = each
        self._names = names  # by the parameter's id
        self._rate: float | None = None

    def set_rate(self, rate: float) -> None:
        """The learning rate of the steps that follow."""
        self._rate = rate
        for optimizer in self.each:
            for group in optimizer.param_groups:
                group["lr"] = rate

    def step(self) -> None:
        """Move every parameter that has a gradient."""
        if self._rate is None:
            raise RegardError("The optimizer has no learning rate.", fix="Call `set_rate` before the first step.")
        for optimizer in self.each:
            optimizer.step()

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for optimizer in self.each:
            optimizer.zero_grad()

    def state(self) -> dict[str, Tensor]:
        """What the optimizers remember, as "exp_avg/encoder.layers.0...."; the tensors are their own.

        A parameter that never had a gradient has no memory, and an empty "untouched/..." says so. Before the first
        step nothing is remembered at all.
        """
        state: dict[str, Tensor] = {}
        untouched: dict[str, Tensor] = {}
        for optimizer, _, parameter in self._parameters():
            name = self._names[id(parameter)]
            memory = optimizer.state.get(parameter)
            if not memory:
                untouched[f"untouched/{name}"] = torch.empty(0)
            else:
                state.update((f"{key}/{name}", tensor) for key, tensor in memory.items())
        return state | untouched if state else {}

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Go on from a saved state, which must be of these parameters and these optimizers."""
        self._check(state)
        for optimizer in self.each:
            memories: dict[int, dict[str, Tensor]] = {}
            for own, number, parameter in self._parameters():
                name = self._names[id(parameter)]
                if own is optimizer and state and f"untouched/{name}" not in state:
                    keys = _memory(optimizer, parameter)
                    memories[number] = {key: state[f"{key}/{name}"].clone() for key in keys}
            optimizer.load_state_dict({"state": memories, "param_groups": optimizer.state_dict()["param_groups"]})

    def _parameters(self) -> Iterator[tuple[torch.optim.Optimizer, int, nn.Parameter]]:
        """Every parameter with its optimizer and its number there."""
        for optimizer in self.each:
            parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
            for number, parameter in enumerate(parameters):
                yield optimizer, number, parameter

    def _check(self, state: Mapping[str, Tensor]) -> None:
        if not state:
            return
        wanted, narrow = dict[str, torch.Size](), list[str]()
        for optimizer, _, parameter in self._parameters():
            name = self._names[id(parameter)]
            if (entry := f"untouched/{name}") in state:
                wanted[entry] = state[entry].shape
                continue
            for key, shape in _memory(optimizer, parameter).items():
                entry = f"{key}/{name}"
                wanted[entry] = shape
                if key != "step" and entry in state and state[entry].dtype != parameter.dtype:
                    narrow.append(f"{entry} is {state[entry].dtype}, not {parameter.dtype}")
        if told := describe_mismatch(wanted, state, narrow):
            fix = "Resume with the model and the optimizer of the run that saved it."
            raise RegardError(f"The state does not fit the optimizer: {told}.", where="the optimizer's state", fix=fix)


def make_optimizers(model: nn.Module, settings: config.Optimizer) -> Optimizers:
    """The optimizer that the settings ask for, over the parameters of a model that learn."""
    group = groups(model)
    decaying, resting = group.layers | group.matrices, group.rest
    each: list[torch.optim.Optimizer]
    match settings:
        case config.AdamW(betas=betas, eps=eps, weight_decay=decay):
            each = [_adamw((decaying, decay), (resting, 0.0), betas=betas, eps=eps)]
        case config.Adam(betas=betas, eps=eps):
            everything = [*decaying.values(), *resting.values()]
            each = [torch.optim.Adam(everything, lr=0.0, betas=betas, eps=eps, fused=True)]
        case config.Adafactor(weight_decay=decay):
            each = [torch.optim.Adafactor(_with_decay((decaying, decay), (resting, 0.0)), lr=0.0)]
        case config.Muon(momentum=momentum, weight_decay=decay, betas=betas, eps=eps):
            muon = torch.optim.Muon(
                [*group.layers.values()],
                lr=0.0,
                momentum=momentum,
                weight_decay=decay,
                adjust_lr_fn="match_rms_adamw",  # one learning rate suits both
            )
            each = [muon, _adamw((group.matrices, decay), (resting, 0.0), betas=betas, eps=eps)]
        case _:
            assert_never(settings)
    return Optimizers(*each, names={id(parameter): name for name, parameter in (decaying | resting).items()})


def _adamw(*groups: tuple[Named, float], betas: tuple[float, float], eps: float) -> torch.optim.AdamW:
    return torch.optim.AdamW(_with_decay(*groups), lr=0.0, betas=betas, eps=eps, fused=True)


def _with_decay(*groups: tuple[Named, float]) -> list[dict[str, Any]]:
    return [{"params": [*named.values()], "weight_decay": decay} for named, decay in groups if named]


def _memory(optimizer: torch.optim.Optimizer, parameter: nn.Parameter) -> dict[str, torch.Size]:
    """What an optimizer remembers of a parameter once it has moved it, and in which shapes."""
    shape = parameter.shape
    match optimizer:
        case torch.optim.AdamW() | torch.optim.Adam():
            return {"step": torch.Size(), "exp_avg": shape, "exp_avg_sq": shape}
        case torch.optim.Adafactor() if len(shape) > 1:
            rows, columns = torch.Size([*shape[:-1], 1]), torch.Size([*shape[:-2], 1, shape[-1]])
            return {"step": torch.Size(), "row_var": rows, "col_var": columns}
        case torch.optim.Adafactor():
            return {"step": torch.Size(), "variance": shape}
        case torch.optim.Muon():
            return {"momentum_buffer": shape}
        case _:
            raise TypeError(f"Nobody knows what {type(optimizer).__name__} remembers.")


def _ids(modules: Iterable[nn.Module]) -> set[int]:
    return {id(parameter) for module in modules for parameter in module.parameters()}
