"""The settings reference: values, default and description of every setting, derived from the settings classes.

>>> [setting.default for table in iter_tables() for setting in table.settings if setting.path == "train.max_grad_norm"]
['1.0']
"""

import types
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from regard.base import limits
from regard.config.docstrings import read_docstrings
from regard.config.run import RunConfig
from regard.config.task_spec import SPECS

BOUND_PHRASES = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
TYPE_NAMES = {int: "whole number", float: "number", str: "text", bool: "true, false", dict: "table"}
OMITTED_KEYS = ("kind", "family", "format")  # they select the table's type; its heading shows them


@dataclass(frozen=True)
class Setting:
    """One setting of a run file."""

    path: str
    values: str
    default: str
    description: str


@dataclass(frozen=True)
class SettingsTable:
    """A table of the file, or one of the kinds that it may have."""

    path: str
    tag: str
    description: str
    settings: tuple[Setting, ...]
    repeated: tuple[str, ...]
    """Settings that are already described under an earlier kind."""


@dataclass
class _DescribedTables:
    """Tables (with their paths) and settings that have been described already."""

    tables: dict[type[BaseModel], str] = field(default_factory=dict)
    settings: set[Setting] = field(default_factory=set)


def iter_tables(model_class: type[BaseModel] = RunConfig, path: str = "") -> Iterator[SettingsTable]:
    """List the tables of a kind of file, outer ones first; each setting is described once."""
    yield from _iter_tables(model_class, path, _DescribedTables())
    if model_class is RunConfig:
        for spec in SPECS.values():
            if spec.options is not None:
                for table in _iter_tables(spec.options, "task_options", _DescribedTables()):
                    yield replace(table, tag=f'task = "{spec.name}"')


def _iter_tables(model_class: type[BaseModel], path: str, described: _DescribedTables) -> Iterator[SettingsTable]:
    described.tables[model_class] = path
    names = [name for name in model_class.model_fields if name not in OMITTED_KEYS]
    settings = {name: _make_setting(_join_path(path, name), model_class, name, described) for name in names}
    new_settings = tuple(setting for setting in settings.values() if setting not in described.settings)
    repeated = tuple(name for name, setting in settings.items() if setting in described.settings)
    yield SettingsTable(
        path, format_tag(model_class), " ".join((model_class.__doc__ or "").split()), new_settings, repeated
    )
    described.settings.update(new_settings)
    for name in names:
        for inner in _list_tables(model_class.model_fields[name]):
            if inner not in described.tables:
                yield from _iter_tables(inner, _join_path(path, name), described)


def _make_setting(path: str, model_class: type[BaseModel], name: str, described: _DescribedTables) -> Setting:
    field_info = model_class.model_fields[name]
    other_paths = {described.tables[table] for table in _list_tables(field_info) if table in described.tables} - {path}
    description = " ".join((field_info.description or read_docstrings(model_class).get(name, "")).split()) or (
        f"As `{min(other_paths)}`." if other_paths else ""
    )
    return Setting(path, _describe_values(field_info), _describe_default(field_info), description)


def _list_tables(field_info: FieldInfo) -> list[type[BaseModel]]:
    return [
        leaf
        for leaf in _list_leaf_types(field_info.annotation)
        if isinstance(leaf, type) and issubclass(leaf, BaseModel)
    ]


def _list_leaf_types(annotation: Any) -> list[Any]:
    """List the types that a value may have, through unions and lists."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return _list_leaf_types(get_args(annotation)[0])
    if origin in (Union, types.UnionType, tuple):
        return [
            leaf for argument in get_args(annotation) if argument is not Ellipsis for leaf in _list_leaf_types(argument)
        ]
    return [annotation]


def _describe_values(field_info: FieldInfo) -> str:
    tables = _list_tables(field_info)
    if tables:
        tags = [format_tag(table).partition(" = ")[2] for table in tables]
        is_list = get_origin(field_info.annotation) is tuple
        kinds = ", ".join(tag.strip('"') for tag in tags if tag)
        return ("tables" if is_list else "table") + (f": {kinds}" if kinds else "")
    leaves = [leaf for leaf in _list_leaf_types(field_info.annotation) if leaf is not type(None)]
    names = list(dict.fromkeys(name for leaf in leaves for name in _describe_type(leaf)))
    if get_origin(field_info.annotation) is tuple:
        names.insert(0, "list of")
        return " ".join(names) + _describe_bounds(field_info)
    return ", ".join(names) + _describe_bounds(field_info)


def _describe_type(leaf: Any) -> list[str]:
    if get_origin(leaf) is Literal:
        return [str(value) for value in get_args(leaf)]
    leaf = get_origin(leaf) or leaf  # dict[str, Any] -> dict
    return [TYPE_NAMES.get(leaf, str(getattr(leaf, "__name__", leaf)))]


def _describe_bounds(field_info: FieldInfo) -> str:
    """Describe a number's limits, except limits that only guard against damaged files."""
    rules = [
        (phrase, getattr(rule, name, None)) for rule in field_info.metadata for name, phrase in BOUND_PHRASES.items()
    ]
    phrases = [f"{phrase} {bound}" for phrase, bound in rules if bound not in (None, limits.SIZE)]
    return f" ({', '.join(phrases)})" if phrases else ""


def _describe_default(field_info: FieldInfo) -> str:
    if field_info.is_required():
        return "(required)"
    value = field_info.get_default(call_default_factory=True)
    if isinstance(value, BaseModel):
        return format_tag(type(value)).partition(" = ")[2].strip('"')
    if value is None or value in ((), "", {}):
        return ""
    return str(value).lower() if isinstance(value, bool) else str(list(value) if isinstance(value, tuple) else value)


def format_tag(model_class: type[BaseModel]) -> str:
    """Return the line that selects this kind: `kind = "linear"`."""
    for name in ("kind", "family"):
        if name in model_class.model_fields:
            return f'{name} = "{get_args(model_class.model_fields[name].annotation)[0]}"'
    return ""


def _join_path(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
