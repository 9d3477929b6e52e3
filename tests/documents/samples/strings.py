"""JSON and YAML string tables."""

import json
import random
from typing import Any

from tests.documents.samples.words import paragraph, sentence


def make_json(rng: random.Random) -> bytes:
    """Return a table with nested objects, lists and values that are not strings."""
    indent = rng.choice([None, 1, 2, 4, "\t"])
    content = json.dumps(_make_table(rng, 0), indent=indent, ensure_ascii=rng.random() < 0.3)
    return (content + rng.choice(["", "\n"])).replace("\n", rng.choice(["\n", "\r\n"])).encode()


def _make_table(rng: random.Random, depth: int) -> dict[str, Any]:
    return {f"key {number}": _make_value(rng, depth) for number in range(rng.randint(1, 6))}


def _make_value(rng: random.Random, depth: int) -> Any:
    kind = rng.random()
    if kind < 0.2 and depth < 4:
        return _make_table(rng, depth + 1)
    if kind < 0.3 and depth < 4:
        return [_make_value(rng, depth + 1) for _ in range(rng.randint(0, 3))]
    if kind < 0.4:
        return rng.choice([1, -2.5e10, True, None, "", " ", "12", {}, []])
    return (
        rng.choice(["", " ", "\n"])
        + paragraph(rng).replace(". ", rng.choice([". ", ".\n", ".\t"]))
        + rng.choice(["", " "])
    )


def make_yaml(rng: random.Random) -> bytes:
    """Return a table with scalars of every style, anchors, comments and values that are not strings."""
    lines = ["# a comment", "en: &root"]
    for number in range(rng.randint(1, 12)):
        text, key = sentence(rng), f"key{number}"
        plain = sentence(rng, has_odd=False)
        lines += rng.choice(
            [
                [f"  {key}: {plain}  # note"],
                [f"  {key}: &a{number} {plain}", f"  again{number}: *a{number}"],
                [f"  {key}: '{text.replace(chr(39), chr(39) * 2)}'"],
                [f'  "{key}": {_double(text)}'],
                [f"  {key}: !!str {plain}"],
                [f"  {key}: {rng.choice(['yes', '12', '1.5', 'null', '2020-01-01', '~', '0x1F'])}"],
                [f"  {key}: |{rng.choice(['', '-', '+'])}", f"    {plain}", f"      * {text}", "", f"    {plain}", ""],
                [f"  {key}: >{rng.choice(['', '-', '+'])}", f"    {plain}", f"    {plain}", "", f"    {text}"],
                [f"  {key}:", f"    - {plain}", f"    - [{_double(text)}, word, 3]", f"    - {{a: {_double(text)}}}"],
                [f"  {key}: {plain}", f"    {plain}"],
                [f"  {key}:", f"    sub: {plain}", "    empty:"],
            ]
        )
    return ("\n".join(lines) + "\n").replace("\n", rng.choice(["\n", "\n", "\r\n"])).encode()


def _double(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
