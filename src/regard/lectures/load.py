"""Read a lecture: prose from lecture_N.toml, numbers and blocks from lecture_N.py.

A station `scaled-scores` takes its numbers from the function `scaled_scores` of the module, which returns `Facts`; a
station without numbers of its own needs no function. Texts have placeholders of `str.format`: `{scaled[0]:.2f}`, and
for runs of stored.toml `{stored[NAME][KEY]}` (its `numbers`) and `{rows[NAME][ROW][2]}` (a cell of its output). The
entries of `see` are strings (paragraphs) or tables with one of these keys:

    block = "NAME"            a block of the function's facts
    formula = "...", text     a formula and its explanation
    run = "SUBJECT"           `regard lectures show SUBJECT` with its output of today
    stored = "NAME"           a run of stored.toml: command, output, cost
    table = "...", columns, rows
    look = "NAME", title      an embedded page, with `view` and `height` if needed
    question = "...", options a quiz
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.resources import files
from typing import Any

import torch

from regard.base.errors import RegardError
from regard.lectures.blocks import (
    Block,
    Command,
    Conclusion,
    Formula,
    Lecture,
    LookFrame,
    Option,
    Quiz,
    Station,
    Table,
    Text,
)
from regard.lectures.stored import align_columns, read_rows, read_runs
from regard.lectures.subjects import show

NUMBERS = (1, 2, 3, 4, 5)


@dataclass(frozen=True)
class Facts:
    """What a station computes: values of the placeholders, and blocks by name."""

    numbers: Mapping[str, object] = field(default_factory=dict)
    blocks: Mapping[str, Block] = field(default_factory=dict)


def load_lecture(number: int) -> Lecture:
    """Return a lecture, with all its numbers computed."""
    if number not in NUMBERS:
        raise RegardError(f"There is no lecture {number}.", hint="Choose 1 to 5.")
    table = _read_toml(f"lecture_{number}.toml")
    module = import_module(f"regard.lectures.lecture_{number}")
    stations = []
    for entry in table.get("stations", ()):
        compute = getattr(module, entry["name"].replace("-", "_"), Facts)
        torch.manual_seed(1)  # as in `regard lectures show`
        try:
            stations.append(_make_station(entry, compute()))
        except (KeyError, IndexError, ValueError) as error:
            where = f"lecture_{number}.toml, station {entry['name']}"
            raise RegardError(f"A value is missing: {error!r}.", location=where) from error
    return Lecture(number=number, title=table["title"], introduction=table["introduction"], stations=stations)


@cache
def _read_toml(name: str) -> dict[str, Any]:
    return tomllib.loads((files("regard.lectures") / name).read_text(encoding="utf-8"))


def _make_station(entry: Mapping[str, Any], facts: Facts) -> Station:
    runs = read_runs()
    stored = {name: run.get("numbers", {}) for name, run in runs.items()}
    values = {"stored": stored, "rows": {name: read_rows(name) for name in runs}, **facts.numbers}

    def write(text: str) -> str:
        return text.format(**values)

    def make_quiz(table: Mapping[str, Any]) -> Quiz:
        options = [
            Option(
                text=write(option["text"]),
                consequence=write(option["consequence"]),
                is_right=option.get("right", False),
            )
            for option in table["options"]
        ]
        return Quiz(question=write(table["question"]), options=options)

    def make_block(part: str | Mapping[str, Any]) -> Block:
        match part:
            case str():
                return Text(text=write(part))
            case {"block": name}:
                return facts.blocks[name]
            case {"formula": formula}:
                return Formula(formula=formula, text=write(part.get("text", "")))
            case {"run": subject}:
                return Command(command=f"regard lectures show {subject}", output="\n".join(show(subject)))
            case {"stored": name}:
                run = runs[name]
                output = align_columns(run["output"].strip("\n"))
                return Command(command=run["command"], output=output, stored=run["measured"])
            case {"table": title}:
                rows = [[write(cell) for cell in row] for row in part["rows"]]
                return Table(title=write(title), columns=part["columns"], rows=rows)
            case {"look": name}:
                height = part.get("height", LookFrame.height)
                return LookFrame(name=name, title=write(part["title"]), view=part.get("view", ""), height=height)
            case {"question": _}:
                return make_quiz(part)
            case _:
                raise ValueError(part)

    return Station(
        name=entry["name"],
        title=write(entry["title"]),
        claim=write(entry["claim"]),
        predict=make_quiz(entry),
        blocks=[make_block(part) for part in entry["see"]],
        change=write(entry["change"]),
        verdict=Conclusion(judgment=entry["judgment"], text=write(entry["verdict"])),
        items=entry.get("items", ()),
        terms=entry.get("terms", ()),
    )
