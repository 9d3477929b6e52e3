"""Registry of custom modules that settings refer to by name: `position = {kind = "custom", name = "log"}`.

    @regard.register("position", "log")
    class LogPosition(Position): ...

A model folder stores the name, not the code. Loading it requires the same registration: import the module that
registers it, or install a package with an entry point of this name in the group `regard.modules`.
"""

from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any, Literal, TypeVar, get_args

from torch import nn

from regard.base.arguments import check_callable, check_type
from regard.base.errors import RegardError

GROUP = "regard.modules"
Part = Literal["position", "score", "feedforward"]
Factory = TypeVar("Factory", bound=Callable[..., nn.Module])
_FACTORIES: dict[tuple[str, str], Callable[..., nn.Module]] = {}


def register(part: Part, name: str) -> Callable[[Factory], Factory]:
    """Register a module class (or a function that returns a module) under a name for settings.

    Settings use it as `{"kind": "custom", "name": name}`. The class is called with

    - position: `d_model`, `heads`; it returns a `regard.nn.positions.Position`;
    - score: `heads`, `key_dim`; it returns a `regard.nn.scores.ScoreFunction`;
    - feedforward: `d_model`, `d_ff`, `activation`, `bias`, `dropout`; its `forward(x, context)` returns the shape of x,
      (B, T, D).

    Its Linears, embeddings and norms are initialized like the rest of the model. A module with other parameters must
    initialize them in a method `init_weights(generator)`.

    Args:
        part: The part of the model that it replaces.
        name: A name of your choice. Registering it again replaces the class.

    Raises:
        RegardError: There is no such part.
    """
    if part not in get_args(Part):
        raise RegardError(f"There is no part '{part}'.", hint=f"Use one of: {', '.join(get_args(Part))}.")
    check_type("name", name, str, "a name")

    def add(factory: Factory) -> Factory:
        check_callable("register", factory, "used as a decorator of a class")
        _FACTORIES[part, name] = factory
        return factory

    return add


def make_custom(part: Part, name: str, base: type[nn.Module], **arguments: Any) -> Any:
    """Make a registered module.

    Raises:
        RegardError: No module of this name is registered, or it is not of the base class.
    """
    if (part, name) not in _FACTORIES and name in (added := entry_points(group=GROUP)).names:
        added[name].load()
    if (part, name) not in _FACTORIES:
        names = ", ".join(sorted(known for kind, known in _FACTORIES if kind == part)) or "none"
        raise RegardError(
            f"The model needs the {part} module '{name}', which is not registered (registered: {names}).",
            hint=f"Import the module that calls regard.register('{part}', '{name}'), or install its package: "
            "docs/extending/position-encoding.md.",
        )
    try:
        module = _FACTORIES[part, name](**arguments)
    except NotImplementedError as error:  # a model is also built on the device "meta", to count its parameters
        message = f"The {part} module '{name}' reads tensor values in __init__: {error}"
        raise RegardError(
            message, hint="Compute with Python numbers there, and with tensors in its methods."
        ) from error
    check_type(f"{part} '{name}'", module, base, f"a {base.__module__}.{base.__name__}")
    return module
