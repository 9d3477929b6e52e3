"""TOML tables to checked settings and back, and `a.b=c` changes. Every fault is named at once, with a hint.

runs = Kind(Run)
run = runs.load(Path("run.toml"), parse_settings(["train.updates=100"]))
"""

import difflib
import json
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, Generic, TypeVar

import tomli_w
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from regard.base import limits
from regard.base.documents import parse_toml
from regard.base.errors import ConfigError, Fault, RegardError
from regard.base.files import read_plain, write_atomic

Table = dict[str, Any]
Settings = TypeVar("Settings", bound=BaseModel)
TAGS = ("family", "kind")  # the keys that choose what the other keys of their table mean


class Kind(Generic[Settings]):
    """One kind of settings file: how it is read, checked, changed and written."""

    def __init__(self, annotation: Any, prepare: Callable[[Table], Table] = lambda table: table) -> None:
        """`prepare` turns what a user may write into what the settings hold (a preset's name into its tables)."""
        self.annotation = annotation
        self._prepare = prepare
        self._adapter: TypeAdapter[Settings] = TypeAdapter(annotation)

    def load(self, path: Path, changes: Mapping[str, Any] | None = None) -> Settings:
        """What a TOML file says, with `{"a.b": value}` changes."""
        return self.parse(read(path), changes, where=str(path))

    def save(self, settings: Settings, path: Path) -> None:
        """Write a TOML file, whole or not at all."""
        write_atomic(path, self.dumps(settings).encode())

    def dumps(self, settings: Settings) -> str:
        """The settings as TOML: plain values first, then tables; `parse` gives the same back."""
        return tomli_w.dumps(dict(sorted(plain(settings).items(), key=lambda item: isinstance(item[1], dict))))

    def parse(self, table: Table, changes: Mapping[str, Any] | None = None, *, where: str | None = None) -> Settings:
        """Checked settings from plain tables; raises one `ConfigError` that names every fault.

        Changes apply to the whole, also to knobs that the tables leave at their defaults.
        """
        if not changes:
            return self._checked(table, where)
        whole = table
        with suppress(ConfigError):  # what is wrong by itself may be what the changes mend
            whole = plain(self._checked(table, where))
        return self._checked(change(whole, changes), where)

    def schema(self) -> str:
        """The JSON schema, for editors that complete and check."""
        return json.dumps(self._adapter.json_schema(), indent=2, sort_keys=True) + "\n"

    def _checked(self, table: Table, where: str | None) -> Settings:
        table = self._prepare(table)
        try:
            return self._adapter.validate_python(table)
        except ValidationError as error:
            faults = list(islice(self._faults(error, table), limits.TOLD))
            more = max(0, error.error_count() - len(faults)) if len(faults) == limits.TOLD else 0
            raise ConfigError(faults, where=where, more=more) from None

    def _faults(self, error: ValidationError, table: Table) -> Iterator[Fault]:
        for details in error.errors(include_url=False):
            path = _path(details["loc"], table)
            match details["type"]:
                case "inconsistent":
                    before = f"{path}." if path else ""
                    yield from (replace(fault, path=before + fault.path) for fault in details["ctx"]["faults"])
                case "extra_forbidden":
                    yield Fault(
                        path,
                        "is not a key here.",
                        suggest(str(details["loc"][-1]), _keys(self.annotation, details["loc"][:-1])),
                    )
                case "missing":
                    yield Fault(path, "is missing.")
                case "union_tag_not_found":
                    tag = details["ctx"]["discriminator"].strip("'")
                    yield Fault(f"{path}.{tag}".lstrip("."), "is missing: it says what the other keys mean.")
                case "union_tag_invalid":
                    tag, given = details["ctx"]["discriminator"].strip("'"), details["ctx"]["tag"]
                    known = [name.strip(" '") for name in details["ctx"]["expected_tags"].split(",")]
                    yield Fault(f"{path}.{tag}".lstrip("."), f"is '{given}'.", suggest(given, known))
                case _:
                    yield Fault(path, f"is {_show(details)}: {details['msg'][0].lower()}{details['msg'][1:]}.")


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


def read(path: Path) -> Table:
    """The tables of a TOML file."""
    try:
        return parse_toml(read_plain(path, limits.SETTINGS))
    except OSError as error:
        raise RegardError(f"The file cannot be read: {error.strerror}.", where=str(path)) from error
    except ValueError as error:
        raise ConfigError([Fault("file", f"is not TOML: {error}.")], where=str(path)) from error


def plain(settings: BaseModel) -> Table:
    """Settings as tables of plain values; what is None is left out."""
    return settings.model_dump(mode="json", exclude_none=True)


def change(table: Table, changes: Mapping[str, Any]) -> Table:
    """A copy of the table with each `a.b` set. Another `kind` starts its table anew: its knobs are others."""
    table = deepcopy(table)
    # Kinds first: what is said about a kind must not be lost when the kind is said after it.
    for path, value in sorted(changes.items(), key=lambda item: item[0].split(".")[-1] not in TAGS):
        *parents, key = path.split(".")
        inner: Any = table
        for parent in parents:
            inner = _inside(inner, parent, path)
        if isinstance(inner, list):
            inner[_index(inner, key, path)] = value
            continue
        if not isinstance(inner, dict):
            raise ConfigError([Fault(path, f"'{parents[-1]}' is a value and has no keys.")])
        if key in TAGS and inner.get(key, value) != value:
            inner.clear()
        inner[key] = value
    return table


def _inside(inner: Any, parent: str, path: str) -> Any:
    if isinstance(inner, list):
        return inner[_index(inner, parent, path)]
    if not isinstance(inner, dict):
        raise ConfigError([Fault(path, f"'{parent}' is asked of a value, which has no keys.")])
    return inner.setdefault(parent, {})


def _index(inner: list[Any], key: str, path: str) -> int:
    if not key.isdigit() or int(key) >= len(inner):
        raise ConfigError([Fault(path, f"'{key}' is none of the {len(inner)} here.", "They count from 0.")])
    return int(key)


def _show(details: ErrorDetails) -> str:
    try:
        shown = repr(details["input"])
    except ValueError:  # Python writes no more than a few thousand digits
        shown = "a number of too many digits"
    return shown if len(shown) <= 60 else f"{shown[:57]}..."


def _path(location: tuple[int | str, ...], table: Table) -> str:
    """The dotted path as the user wrote it: pydantic adds the tag of every union, which is no key."""
    parts: list[str] = []
    here: Any = table
    for part in location:
        if isinstance(here, dict) and part in (here.get(tag) for tag in TAGS) and part not in here:
            continue
        parts.append(str(part)[:80])
        if isinstance(here, list | tuple) and isinstance(part, int):
            here = here[part]
        else:
            here = here.get(part) if isinstance(here, dict) else None
    return ".".join(parts)


def _keys(annotation: Any, location: tuple[int | str, ...]) -> list[str]:
    """The keys that the table at this location knows."""
    here = annotation
    for part in location:
        if isinstance(part, int):
            continue  # one of many: all are alike
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


def suggest(word: str, known: list[str]) -> str | None:
    """A hint at what was meant."""
    if not known:
        return None
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    return f"Did you mean '{close[0]}'?" if close else f"Known: {', '.join(known)}."
