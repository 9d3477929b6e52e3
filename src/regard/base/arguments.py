"""Argument type checks: a wrong type raises a `RegardError` that names the argument."""

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any

from regard.base.errors import RegardError


def check_type(name: str, value: object, types: Any, expected: str) -> None:
    """Raise an error if a value does not have one of the types; `bool` does not count as a number.

    Args:
        name: Name of the argument.
        value: Its value.
        types: A type, or a union or tuple of types, as for `isinstance`.
        expected: Description of a correct value, such as "a path".

    >>> check_type("steps", "9", int, "a number")
    Traceback (most recent call last):
    regard.base.errors.RegardError: `steps` must be a number, got '9' (str).
    """
    if not isinstance(value, types) or (isinstance(value, bool) and types in (int, float, int | float)):
        raise _wrong_type(name, value, expected)


def as_path(name: str, value: object) -> Path:
    """Return a path as `Path`; raise an error if it is not a string or path."""
    check_type(name, value, str | PathLike, "a path")
    return Path(value)  # type: ignore[arg-type]


def check_callable(name: str, value: object, expected: str) -> None:
    """Raise an error if a value is not callable."""
    if not isinstance(value, Callable):  # type: ignore[arg-type]
        raise _wrong_type(name, value, expected)


def _wrong_type(name: str, value: object, expected: str) -> RegardError:
    shown = repr(value) if len(repr(value)) <= 60 else f"{repr(value)[:60]}..."
    return RegardError(f"`{name}` must be {expected}, got {shown} ({type(value).__name__}).")
