"""JSON and TOML within bounds: what is inside them is read as ever, what is outside is refused with a few words."""

import json
import math
import struct
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.base import limits
from regard.base.parsing import parse_json, parse_toml

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))  # `codec="utf-8"` is the same and takes 7 s to prepare
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)


@given(VALUES)
def test_json_is_what_python_reads(value: object) -> None:
    assert parse_json(json.dumps(value).encode()) == value


@given(st.integers(0, 2**64 - 1))
def test_numbers_come_back_to_the_bit(bits: int) -> None:
    (number,) = struct.unpack("<d", struct.pack("<Q", bits))
    if not math.isnan(number):
        assert parse_json(json.dumps([number]).encode()) == [number]


@pytest.mark.parametrize(
    "content",
    [b"", b"\xff", b"{", b"[" * 100_000, b'{"a":' * 100_000, b"9" * 5000, b"[" + b"[]," * limits.VALUES + b"1]"],
)
def test_json_that_is_none(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"at line|values"):
        parse_json(content)


def test_toml_is_what_python_reads() -> None:
    keys = ".".join("a" * (limits.DEPTH - 2))
    text = f'x = 1\r\n[table]\nnames = ["a.b.c", "d"] # a. b. c.\n{keys} = 0.5\n"quoted.key" = 3\n'
    assert parse_toml(text.encode()) == tomllib.loads(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = " + "[" * 50_000, "deep"),
        ("a = " + "[" * 80 + "]" * 80, "deep"),
        ("a = " + "{a=" * 80 + "1" + "}" * 80, "deep"),
        (".".join("a" * 50_000) + " = 1", "parts"),
        ("[" + ".".join("a" * 50_000) + "]", "parts"),
        (" . ".join(['"a"'] * 50_000) + " = 1", "parts"),
        ("".join(f"k{n} = 1\n" for n in range(limits.KEYS + 1)), "keys"),
        ("a = " + "9" * 5000, "digits"),
        ("a == 1", "line 1"),
    ],
    ids=lambda value: value[:12],
)
def test_toml_that_is_none(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_toml(text.encode())


def test_what_is_no_text_is_no_toml() -> None:
    with pytest.raises(ValueError, match="utf-8"):
        parse_toml(b"a = '\xff'")
