"""Check a document against the types of `regard.look.document`."""

import types
from typing import Any, Literal, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict


def check(value: Any, expected: Any, location: str = "document") -> None:
    """Raise an AssertionError that names the first place where a value differs from its type."""
    origin, arguments = get_origin(expected), get_args(expected)
    if expected is Any:
        return
    if is_typeddict(expected):
        hints = get_type_hints(expected)
        assert isinstance(value, dict), f"{location}: not an object"
        assert not value.keys() - hints.keys(), f"{location}: unknown {value.keys() - hints.keys()}"
        missing = expected.__required_keys__ - value.keys()
        assert not missing, f"{location}: missing {missing}"
        for name in value:
            check(value[name], hints[name], f"{location}.{name}")
    elif origin in (Union, types.UnionType):
        assert any(_fits(value, argument, location) for argument in arguments), (
            f"{location}: {value!r:.60} fits nothing"
        )
    elif origin is NotRequired:
        check(value, arguments[0], location)
    elif origin is Literal:
        assert value in arguments, f"{location}: {value!r} not in {arguments}"
    elif origin is list:
        assert isinstance(value, list), f"{location}: not a list"
        for index, item in enumerate(value):
            check(item, arguments[0], f"{location}[{index}]")
    elif origin is dict:
        assert isinstance(value, dict), f"{location}: not an object"
        for key, item in value.items():
            check(key, arguments[0], f"{location} key")
            check(item, arguments[1], f"{location}[{key!r}]")
    elif expected is float:
        assert type(value) in (int, float), f"{location}: {value!r} is not a number"
    else:
        assert type(value) is (expected if expected is not None else types.NoneType), f"{location}: {value!r:.60}"


def _fits(value: Any, expected: Any, location: str) -> bool:
    try:
        check(value, expected, location)
    except AssertionError:
        return False
    return True
