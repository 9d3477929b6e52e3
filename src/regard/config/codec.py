"""TOML in and out, presets, and `a.b=c` on the command line. Every fault is named at once, with a hint.

>>> from regard.config.codec import preset
>>> preset("tiny", {"encoder.layers": 2}).encoder.layers
2
"""

import difflib
import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from copy import deepcopy
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import tomli_w
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from regard.base.errors import ConfigError, Fault, RegardError
from regard.base.files import write_atomic
from regard.config.model import AnyModel, ModelConfig

Table = dict[str, Any]
TAGS = ("family", "kind")  # the keys that choose what the other keys of their table mean


def presets() -> list[str]:
    """The names of the presets that come with Regard."""
    folder = files("regard.config") / "presets"
    return sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))


def preset(name: str, changes: Mapping[str, Any] | None = None) -> AnyModel:
    """The model of a preset, with `{"a.b": value}` changes."""
    if name not in presets():
        raise RegardError(f"There is no preset '{name}'.", fix=_suggest(name, presets()))
    text = (files("regard.config") / "presets" / f"{name}.toml").read_text(encoding="utf-8")
    return _parse_changed(tomllib.loads(text), changes or {}, where=f"preset {name}")


def load(path: Path, changes: Mapping[str, Any] | None = None) -> AnyModel:
    """The model that a TOML file describes, with `{"a.b": value}` changes."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RegardError(f"The file cannot be read: {error.strerror}.", where=str(path)) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError([Fault("file", f"is not TOML: {error}.")], where=str(path)) from error
    return _parse_changed(table, changes or {}, where=str(path))


def save(config: AnyModel, path: Path) -> None:
    """Write the model to a TOML file, whole or not at all."""
    write_atomic(path, dumps(config).encode())


def dumps(config: AnyModel) -> str:
    """The model as TOML: plain values first, then its tables; `parse` gives the same model back."""
    return tomli_w.dumps(dict(sorted(_plain(config).items(), key=lambda item: isinstance(item[1], dict))))


def parse(table: Table, *, where: str | None = None) -> AnyModel:
    """A checked model from plain tables; raises one `ConfigError` that names every fault."""
    try:
        return _adapter().validate_python(table)
    except ValidationError as error:
        raise ConfigError(list(_faults(error, table)), where=where) from None


def parse_settings(settings: Iterable[str]) -> dict[str, Any]:
    """What `--set a.b=c` says: TOML values, and bare words as text.

    >>> parse_settings(["width=256", "decoder.position.kind=rotary"])
    {'width': 256, 'decoder.position.kind': 'rotary'}
    """
    changes = {}
    for setting in settings:
        path, equals, text = setting.partition("=")
        if not equals or not path.strip():
            raise ConfigError([Fault(setting, "is not a setting.", "Write it as a.b=c.")])
        try:
            value = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            value = text.strip()
        changes[path.strip()] = value
    return changes


def schema() -> str:
    """The JSON schema of `model.toml`, for editors that complete and check."""
    return json.dumps(_adapter().json_schema(), indent=2, sort_keys=True) + "\n"


@cache
def _adapter() -> TypeAdapter[AnyModel]:
    return TypeAdapter(ModelConfig)


def _parse_changed(table: Table, changes: Mapping[str, Any], where: str) -> AnyModel:
    """Changes apply to the whole model, also to knobs that the file leaves at their defaults."""
    if not changes:
        return parse(table, where=where)
    with suppress(ConfigError):  # a file that is wrong by itself may be what the changes mend
        table = _plain(parse(table))
    return parse(_change(table, changes), where=where)


def _plain(config: AnyModel) -> Table:
    return config.model_dump(mode="json", exclude_none=True)


def _change(table: Table, changes: Mapping[str, Any]) -> Table:
    """A copy of the table with each `a.b` set. Another `kind` starts its table anew: its knobs are others."""
    table = deepcopy(table)
    # Kinds first: what is said about a kind must not be lost when the kind is said after it.
    for path, value in sorted(changes.items(), key=lambda change: change[0].split(".")[-1] not in TAGS):
        *parents, key = path.split(".")
        inner = table
        for parent in parents:
            inner = inner.setdefault(parent, {})
            if not isinstance(inner, dict):
                raise ConfigError([Fault(path, f"'{parent}' is a value and has no keys.")])
        if key in TAGS and inner.get(key, value) != value:
            inner.clear()
        inner[key] = value
    return table


def _faults(error: ValidationError, table: Table) -> Iterator[Fault]:
    for details in error.errors():
        path = _path(details["loc"], table)
        match details["type"]:
            case "inconsistent":
                yield from details["ctx"]["faults"]
            case "extra_forbidden":
                yield Fault(path, "is not a key here.", _suggest(str(details["loc"][-1]), _keys(details["loc"][:-1])))
            case "missing":
                yield Fault(path, "is missing.")
            case "union_tag_not_found":
                tag = details["ctx"]["discriminator"].strip("'")
                yield Fault(f"{path}.{tag}".lstrip("."), "is missing: it says what the other keys mean.")
            case "union_tag_invalid":
                tag, given = details["ctx"]["discriminator"].strip("'"), details["ctx"]["tag"]
                known = [name.strip(" '") for name in details["ctx"]["expected_tags"].split(",")]
                yield Fault(f"{path}.{tag}".lstrip("."), f"is '{given}'.", _suggest(given, known))
            case _:
                yield Fault(path, f"is {_show(details)}: {details['msg'][0].lower()}{details['msg'][1:]}.")


def _show(details: ErrorDetails) -> str:
    shown = repr(details["input"])
    return shown if len(shown) <= 60 else f"{shown[:57]}..."


def _path(location: tuple[int | str, ...], table: Table) -> str:
    """The dotted path as the user wrote it: pydantic adds the tag of every union, which is no key."""
    parts: list[str] = []
    here: Any = table
    for part in location:
        if isinstance(here, dict) and part in (here.get(tag) for tag in TAGS) and part not in here:
            continue
        parts.append(str(part))
        here = here.get(part) if isinstance(here, dict) else None
    return ".".join(parts)


def _keys(location: tuple[int | str, ...]) -> list[str]:
    """The keys that the table at this location knows."""
    here: Any = ModelConfig
    for part in location:
        members = {member_tag: member for member in _members(here) for member_tag in _tags(member)}
        if part in members:
            here = members[part]
            continue
        fields = [member.model_fields[part].annotation for member in _members(here) if part in member.model_fields]
        if not fields:
            return []
        here = fields[0]
    return sorted({key for member in _members(here) for key in member.model_fields})


def _members(annotation: Any) -> list[type[BaseModel]]:
    """The models inside an annotation, through unions and `Annotated`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    inner = getattr(annotation, "__origin__", None), *getattr(annotation, "__args__", ())
    return [member for part in inner if part is not None and part is not annotation for member in _members(part)]


def _tags(member: type[BaseModel]) -> list[str]:
    return [str(member.model_fields[tag].default) for tag in TAGS if tag in member.model_fields]


def _suggest(word: str, known: list[str]) -> str | None:
    if not known:
        return None
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    return f"Did you mean '{close[0]}'?" if close else f"Known: {', '.join(known)}."
