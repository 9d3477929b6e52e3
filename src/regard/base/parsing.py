"""Parsing of untrusted JSON and TOML, bounded in size, number of values and depth.

A hundred thousand nested lists can overflow a parser's stack, and three million empty lists can exhaust memory. Both
raise a `ValueError`, as does malformed input.
"""

import tomllib
from typing import Any

from pydantic_core import from_json

from regard.base import limits


def parse_json(content: bytes) -> Any:
    """Parse a JSON document.

    >>> parse_json(b'{"a": [1, 2.5]}')
    {'a': [1, 2.5]}
    >>> parse_json(b"[" * 100_000)
    Traceback (most recent call last):
    ValueError: recursion limit exceeded at line 1 column 202
    """
    if sum(map(content.count, (b",", b"[", b"{"))) > limits.VALUES:
        raise ValueError(f"it has more than {limits.VALUES:,} values")
    return from_json(content)  # bounds depth and digits, and is faster than `json`


def parse_toml(content: bytes) -> dict[str, Any]:
    """Parse a TOML document.

    >>> parse_toml(b"a.b = 1")
    {'a': {'b': 1}}
    """
    text = content.decode()
    # Parsing time is quadratic in the number of parts of a key, so check it first.
    if text.count("=") > limits.KEYS or _count_key_parts(text) > limits.DEPTH:
        raise ValueError(f"it has more than {limits.KEYS:,} keys, or one of more than {limits.DEPTH} parts")
    try:
        tables = tomllib.loads(text)
    except RecursionError:
        tables = None
    if tables is None or _is_too_deep(tables):
        raise ValueError(f"lists or tables are nested more than {limits.DEPTH} deep")
    return tables


def _count_key_parts(text: str) -> int:
    """Return an upper bound of the number of parts of any dotted key."""
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
