"""Check a document against the types of `regard.look.document`."""

import types
from typing import Any, Literal, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict


def check(value: Any, expected: Any, where: str = "document") -> None:
    """Raise an AssertionError that names the first place where a value differs from its type."""
    origin, arguments = get_origin(expected), get_args(expected)
    if expected is Any:
        return
    if is_typeddict(expected):
        hints = get_type_hints(expected)
        assert isinstance(value, dict), f"{where}: not an object"
        assert not value.keys() - hints.keys(), f"{where}: unknown {value.keys() - hints.keys()}"
        missing = expected.__required_keys__ - value.keys()
        assert not missing, f"{where}: missing {missing}"
        for name in value:
            check(value[name], hints[name], f"{where}.{name}")
    elif origin in (Union, types.UnionType):
        assert any(_fits(value, argument, where) for argument in arguments), f"{where}: {value!r:.60} fits nothing"
    elif origin is NotRequired:
        check(value, arguments[0], where)
    elif origin is Literal:
        assert value in arguments, f"{where}: {value!r} not in {arguments}"
    elif origin is list:
        assert isinstance(value, list), f"{where}: not a list"
        for index, item in enumerate(value):
            check(item, arguments[0], f"{where}[{index}]")
    elif origin is dict:
        assert isinstance(value, dict), f"{where}: not an object"
        for key, item in value.items():
            check(key, arguments[0], f"{where} key")
            check(item, arguments[1], f"{where}[{key!r}]")
    elif expected is float:
        assert type(value) in (int, float), f"{where}: {value!r} is not a number"
    else:
        assert type(value) is (expected if expected is not None else types.NoneType), f"{where}: {value!r:.60}"


def _fits(value: Any, expected: Any, where: str) -> bool:
    try:
        check(value, expected, where)
    except AssertionError:
        return False
    return True
