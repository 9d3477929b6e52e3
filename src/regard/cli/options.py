"""Commands with many options: a dataclass declares them once, and its annotated fields are the Typer options."""

import functools
import inspect
from collections.abc import Callable
from typing import TypeVar

Options = TypeVar("Options")
StringList = list[str] | None


def takes_options(options_class: type[Options]) -> Callable[[Callable[[Options], None]], Callable[..., None]]:
    """Turn a function of one options object into a function with one parameter per field, as Typer expects it."""

    def decorate(function: Callable[[Options], None]) -> Callable[..., None]:
        @functools.wraps(function)
        def command(**values: object) -> None:
            function(options_class(**values))

        command.__signature__ = inspect.signature(options_class)  # type: ignore[attr-defined]
        command.__annotations__ = {}
        return command

    return decorate
