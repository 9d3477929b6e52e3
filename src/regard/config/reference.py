"""Every setting of a run file, with its values, its default and what it does: read off the classes themselves.

>>> next(one for table in tables() for one in table.settings if one.path == "train.clip").default
'1.0'
"""

import types
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from regard.base import limits
from regard.config.run import Run

BOUNDS = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
NAMES = {int: "whole number", float: "number", str: "text", bool: "true, false"}
TAGS = ("kind", "family", "format")  # what tells tables apart is said once, above each


@dataclass(frozen=True)
class Setting:
    """One line that may stand in a run file."""

    path: str
    values: str
    default: str
    about: str


@dataclass(frozen=True)
class Table:
    """Settings that belong together: a table of the file, or one of the kinds that it may be of."""

    path: str
    tag: str
    about: str
    settings: tuple[Setting, ...]
    again: tuple[str, ...]
    """Names of settings that a kind before it has too, told there."""


@dataclass
class _Told:
    tables: dict[type[BaseModel], str] = field(default_factory=dict)
    settings: set[Setting] = field(default_factory=set)


def tables(kind: type[BaseModel] = Run, path: str = "") -> Iterator[Table]:
    """All tables of a kind of file, outer ones first; what was told once is not told again."""
    yield from _tables(kind, path, _Told())


def _tables(kind: type[BaseModel], path: str, told: _Told) -> Iterator[Table]:
    told.tables[kind] = path
    names = [name for name in kind.model_fields if name not in TAGS]
    settings = {name: _setting(_joined(path, name), kind.model_fields[name], told) for name in names}
    new = tuple(one for one in settings.values() if one not in told.settings)
    again = tuple(name for name, one in settings.items() if one in told.settings)
    yield Table(path, tag(kind), " ".join((kind.__doc__ or "").split()), new, again)
    told.settings.update(new)
    for name in names:
        for inner in _tables_of(kind.model_fields[name]):
            if inner not in told.tables:
                yield from _tables(inner, _joined(path, name), told)


def _setting(path: str, knob: FieldInfo, told: _Told) -> Setting:
    elsewhere = {told.tables[table] for table in _tables_of(knob) if table in told.tables} - {path}
    about = " ".join((knob.description or "").split()) or (f"As `{min(elsewhere)}`." if elsewhere else "")
    return Setting(path, _values(knob), _default(knob), about)


def _tables_of(knob: FieldInfo) -> list[type[BaseModel]]:
    return [one for one in _leaves(knob.annotation) if isinstance(one, type) and issubclass(one, BaseModel)]


def _leaves(annotation: Any) -> list[Any]:
    """The types that a value may have: unions and lists are opened."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return _leaves(get_args(annotation)[0])
    if origin in (Union, types.UnionType, tuple):
        return [leaf for one in get_args(annotation) if one is not Ellipsis for leaf in _leaves(one)]
    return [annotation]


def _values(knob: FieldInfo) -> str:
    tables_ = _tables_of(knob)
    if tables_:
        tags = [tag(table).partition(" = ")[2] for table in tables_]
        listed = get_origin(knob.annotation) is tuple
        kinds = ", ".join(tag.strip('"') for tag in tags if tag)
        return ("tables" if listed else "table") + (f": {kinds}" if kinds else "")
    leaves = [leaf for leaf in _leaves(knob.annotation) if leaf is not type(None)]
    words = list(dict.fromkeys(word for leaf in leaves for word in _words(leaf)))
    if get_origin(knob.annotation) is tuple:
        words.insert(0, "list of")
        return " ".join(words) + _bounds(knob)
    return ", ".join(words) + _bounds(knob)


def _words(leaf: Any) -> list[str]:
    if get_origin(leaf) is Literal:
        return [str(value) for value in get_args(leaf)]
    return [NAMES.get(leaf, str(getattr(leaf, "__name__", leaf)))]


def _bounds(knob: FieldInfo) -> str:
    """What a number must keep to; limits that only guard against damage are not told."""
    rules = [(word, getattr(rule, name, None)) for rule in knob.metadata for name, word in BOUNDS.items()]
    told = [f"{word} {bound}" for word, bound in rules if bound not in (None, limits.SIZE)]
    return f" ({', '.join(told)})" if told else ""


def _default(knob: FieldInfo) -> str:
    if knob.is_required():
        return "(must be given)"
    value = knob.default
    if isinstance(value, BaseModel):
        return tag(type(value)).partition(" = ")[2].strip('"')
    if value is None or value in ((), ""):
        return ""
    return str(value).lower() if isinstance(value, bool) else str(list(value) if isinstance(value, tuple) else value)


def tag(kind: type[BaseModel]) -> str:
    """What a table says to be of this kind: `kind = "linear"`."""
    for name in ("kind", "family"):
        if name in kind.model_fields:
            return f'{name} = "{get_args(kind.model_fields[name].annotation)[0]}"'
    return ""


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
