"""JSON and TOML from whoever wrote them: bounded in size, number of values and depth, in one place for all readers.

A parser that meets a hundred thousand lists inside each other dies of recursion; one that meets three million empty
ones takes the memory of the machine. Here both are a `ValueError` with a few words, as is any other text that is none.
"""

import tomllib
from typing import Any

from pydantic_core import from_json

from regard.base import limits


def parse_json(content: bytes) -> Any:
    """The value of a JSON document.

    >>> parse_json(b'{"a": [1, 2.5]}')
    {'a': [1, 2.5]}
    >>> parse_json(b"[" * 100_000)
    Traceback (most recent call last):
    ValueError: recursion limit exceeded at line 1 column 202
    """
    if sum(map(content.count, (b",", b"[", b"{"))) > limits.VALUES:
        raise ValueError(f"it has more than {limits.VALUES:,} values")
    return from_json(content)  # strict about depth and digits, and quicker than Python's own


def parse_toml(content: bytes) -> dict[str, Any]:
    """The tables of a TOML document.

    >>> parse_toml(b"a.b = 1")
    {'a': {'b': 1}}
    """
    text = content.decode()
    # A key of n parts costs its parser n x n: such a text must not get there.
    if text.count("=") > limits.KEYS or _count_key_parts(text) > limits.DEPTH:
        raise ValueError(f"it has more than {limits.KEYS:,} keys, or one of more than {limits.DEPTH} parts")
    try:
        tables = tomllib.loads(text)
    except RecursionError:
        tables = None
    if tables is None or _is_too_deep(tables):
        raise ValueError(f"more than {limits.DEPTH} lists or tables stand inside each other")
    return tables


def _count_key_parts(text: str) -> int:
    """The most parts with nothing but a dot between them: at least as many as any dotted key has."""
    max_parts = current = 1
    for part in text.split("."):
        current = 1 if any(delimiter in part for delimiter in "\n=,") else current + 1
        max_parts = max(max_parts, current)
    return max_parts


def _is_too_deep(value: Any) -> bool:
    level = [value]
    for _ in range(limits.DEPTH):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
    return bool(level)
