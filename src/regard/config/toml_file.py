"""Settings files: TOML tables to checked settings and back, with `a.b=c` changes; all faults are reported at once.

RUN_FILES = SettingsFile(Run)
run = RUN_FILES.load(Path("run.toml"), parse_settings(["train.steps=100"]))
"""

import difflib
import json
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from pkgutil import resolve_name
from typing import Annotated, Any, Generic, TypeVar, get_args

import tomli_w
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from regard.base import limits
from regard.base.errors import ConfigError, Fault, RegardError
from regard.base.files import read_regular_file, write_atomic
from regard.base.formatting import truncate
from regard.base.parsing import parse_toml
from regard.config.foreign_names import REPLACEMENTS

TomlTable = dict[str, Any]
Settings = TypeVar("Settings", bound=BaseModel)
STRICT = ConfigDict(strict=True)  # as in all tables: a number must not be a string
DISCRIMINATORS = ("family", "kind")  # keys that select the type of their table
MAX_SUGGESTED = 3  # suggest at most this many settings of the same name in other tables
_ADDED_KEYS = ("preset",)  # keys that are expanded before the settings are checked


class SettingsFile(Generic[Settings]):
    """One kind of settings file: reads, checks, changes and writes it."""

    def __init__(self, annotation: Any, prepare: Callable[[TomlTable], TomlTable] = lambda table: table) -> None:
        """Create the reader of a settings type, or of "module:name", which is imported on first use.

        `prepare` rewrites tables before the check (expands presets).
        """
        self._annotation = annotation
        self._prepare = prepare

    @cached_property
    def annotation(self) -> Any:
        """The type of the settings."""
        return resolve_name(self._annotation) if isinstance(self._annotation, str) else self._annotation

    @cached_property
    def _adapter(self) -> TypeAdapter[Settings]:
        return TypeAdapter(self.annotation)

    def load(self, path: Path, changes: Mapping[str, Any] | None = None) -> Settings:
        """Read a TOML file, with `{"a.b": value}` changes."""
        return self.parse(read_toml(path), changes, location=str(path))

    def save(self, settings: Settings, path: Path) -> None:
        """Write a TOML file atomically; raises an error if `load` would reject it."""
        content = self.dumps(settings).encode()
        if len(content) > limits.SETTINGS:
            message = f"These settings take {len(content):,} bytes, and the limit is {limits.SETTINGS:,}."
            raise RegardError(message, location=str(path), hint="Use fewer labels, or add fewer tokens.")
        write_atomic(path, content)

    def dumps(self, settings: Settings) -> str:
        """Return the settings as TOML: values first, then tables; `parse` is the inverse."""
        return tomli_w.dumps(dict(sorted(to_dict(settings).items(), key=lambda item: isinstance(item[1], dict))))

    def parse(
        self, table: TomlTable, changes: Mapping[str, Any] | None = None, *, location: str | None = None
    ) -> Settings:
        """Check tables and return the settings.

        Args:
            table: The tables of a settings file.
            changes: Changes by dotted key; they also apply to settings that the tables leave at their defaults.
            location: The file, for errors.

        Raises:
            ConfigError: If anything is wrong; it lists every fault.
        """
        if not changes:
            return self._validate(table, location)
        complete_table = table
        with suppress(ConfigError):  # the changes may correct the faults
            complete_table = to_dict(self._validate(table, location))
        return self._validate(with_changes(complete_table, changes), location)

    def change(self, settings: Settings, changes: Mapping[str, Any], *, location: str | None = None) -> Settings:
        """Return a checked copy of the settings with `{"a.b": value}` changes; None removes a key."""
        return self._validate(with_changes(to_dict(settings), changes), location)

    def schema(self) -> str:
        """Return the JSON schema, for completion and checks in editors."""
        from regard.config.docstrings import DescribedSchema  # slow import, only needed here

        return json.dumps(self._adapter.json_schema(schema_generator=DescribedSchema), indent=2, sort_keys=True) + "\n"

    def _validate(self, table: TomlTable, location: str | None) -> Settings:
        table = self._prepare(table)
        try:
            return self._adapter.validate_python(table)
        except ValidationError as error:
            faults = list(islice(self._find_faults(error, table), limits.MAX_REPORTED))
            omitted = max(0, error.error_count() - len(faults)) if len(faults) == limits.MAX_REPORTED else 0
            raise ConfigError(faults, location=location, omitted=omitted) from None

    def find_wrong_changes(self, changes: Mapping[str, Any]) -> Iterator[Fault]:
        """Yield a fault for each dotted name or value that no kind of table has, whatever the other settings are."""
        for path, value in changes.items():
            nodes, parts = [self.annotation], path.split(".")
            fields: list[FieldInfo] = []
            for depth, part in enumerate(parts):
                members = [member for node in nodes for member in _union_members(node)]
                keys = {key for member in members for key in member.model_fields}
                if not members or part in _ADDED_KEYS:  # the content of a value is checked later
                    break
                if part.isdigit():  # an element of a list
                    continue
                if part not in keys:
                    yield self._report_unknown(".".join(parts[: depth + 1]), sorted(keys))
                    break
                fields = [member.model_fields[part] for member in members if part in member.model_fields]
                nodes = [field.annotation for field in fields]
            else:
                if value is not None and not any(_union_members(node) for node in nodes):  # None removes a setting
                    yield from self._find_value_fault(path, value, fields)

    def _find_value_fault(self, path: str, value: Any, fields: Iterable[FieldInfo]) -> Iterator[Fault]:
        """Yield the first fault of a value that none of these fields takes."""
        if path.rpartition(".")[2] in DISCRIMINATORS:
            tags = sorted({tag for field in fields for tag in get_args(field.annotation)})
            if value not in tags:
                yield Fault(path, f"is '{value}'.", suggest(str(value), tags))
            return
        faults: list[Fault] = []
        for field in fields:
            annotation: Any = Annotated[field.annotation, field]
            try:
                TypeAdapter(annotation, config=STRICT).validate_python(value)
            except ValidationError as error:
                faults += self._find_faults(error, {})
            else:
                return
        yield from (replace(fault, path=path) for fault in faults[:1])

    def _report_unknown(self, path: str, keys: list[str]) -> Fault:
        """Return the fault of an unknown name, with a suggestion from this table or another one."""
        parent, name = path.rpartition(".")[::2]
        if replacements := self._find_replacements(parent, name):
            return Fault(path, "is not a key here.", f"Use {' or '.join(replacements)}.")
        paths = sorted(_find_paths(self.annotation, name))
        paths = [setting for setting in paths if setting.startswith(f"{parent}.")] or paths
        named = " or ".join(f"'{setting}'" for setting in paths)
        is_misspelt = bool(difflib.get_close_matches(name, keys, n=1, cutoff=0.8))
        is_clear = 0 < len(paths) <= MAX_SUGGESTED and path not in paths and not is_misspelt
        return Fault(path, "is not a key here.", f"Did you mean {named}?" if is_clear else suggest(name, keys))

    def _find_replacements(self, parent: str, name: str) -> list[str]:
        """Return the settings that replace a setting of other tools, in the same table if possible."""
        spellings = (text for path in REPLACEMENTS.get(name, ()) for text in {path, path.removeprefix("model.")})
        exists = (path for path in sorted(spellings) if path in _find_paths(self.annotation, path.rpartition(".")[2]))
        paths = [f"'{path}'" for path in exists]
        return [path for path in paths if parent and path.startswith(f"'{parent}.")] or paths

    def _find_faults(self, error: ValidationError, table: TomlTable) -> Iterator[Fault]:
        for details in error.errors(include_url=False):
            path = _dotted_path(details["loc"], table)
            match details["type"]:
                case "inconsistent":
                    prefix = f"{path}." if path else ""
                    yield from (replace(fault, path=prefix + fault.path) for fault in details["ctx"]["faults"])
                case "extra_forbidden":
                    yield self._report_unknown(path, _list_keys(self.annotation, details["loc"][:-1]))
                case "missing":
                    yield Fault(path, "is missing.")
                case "union_tag_not_found":
                    tag = details["ctx"]["discriminator"].strip("'")
                    yield Fault(f"{path}.{tag}".lstrip("."), "is missing: it selects the type of its table.")
                case "union_tag_invalid":
                    tag, value = details["ctx"]["discriminator"].strip("'"), details["ctx"]["tag"]
                    expected_tags = [name.strip(" '") for name in details["ctx"]["expected_tags"].split(",")]
                    yield Fault(f"{path}.{tag}".lstrip("."), f"is '{value}'.", suggest(value, expected_tags))
                case _:
                    yield Fault(path, f"is {_format_input(details)}: {details['msg'][0].lower()}{details['msg'][1:]}.")


def parse_settings(settings: Iterable[str]) -> dict[str, Any]:
    """Parse `--set a.b=c` options: TOML values; anything else is a string.

    >>> parse_settings(["d_model=256", "decoder.position.kind=rotary"])
    {'d_model': 256, 'decoder.position.kind': 'rotary'}
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


def read_toml(path: Path) -> TomlTable:
    """Read the tables of a TOML file."""
    try:
        return parse_toml(read_regular_file(path, limits.SETTINGS))
    except OSError as error:
        raise RegardError(
            f"The file cannot be read: {error.strerror}.", location=str(path), hint="Check the path."
        ) from error
    except ValueError as error:
        raise ConfigError([Fault("file", f"is not TOML: {error}.")], location=str(path)) from error


def to_dict(settings: BaseModel) -> TomlTable:
    """Convert settings to nested dicts; None values are left out."""
    return settings.model_dump(mode="json", exclude_none=True)


def with_changes(table: TomlTable, changes: Mapping[str, Any]) -> TomlTable:
    """Return a copy of the table with each `a.b` set; a new `kind` clears the rest of its table."""
    table = deepcopy(table)

    # Kinds first, outer ones before inner ones: a kind clears its table, and must not clear a change to that table.
    def precedence(change: tuple[str, Any]) -> tuple[bool, int]:
        keys = change[0].split(".")
        return keys[-1] not in DISCRIMINATORS, len(keys) if keys[-1] in DISCRIMINATORS else 0

    for path, value in sorted(changes.items(), key=precedence):
        *parents, key = path.split(".")
        node: Any = table
        for parent in parents:
            node = _descend(node, parent, path)
        if isinstance(node, list):
            node[_parse_index(node, key, path)] = value
            continue
        if not isinstance(node, dict):
            raise ConfigError([Fault(path, f"'{parents[-1]}' is a value, not a table: it has no keys.")])
        if key in DISCRIMINATORS and node.get(key, value) != value:
            node.clear()
        node[key] = value
    return table


def _descend(node: Any, parent: str, path: str) -> Any:
    if isinstance(node, list):
        return node[_parse_index(node, parent, path)]
    if not isinstance(node, dict):
        raise ConfigError([Fault(path, f"'{parent}' cannot be set: the key before it holds a value, not a table.")])
    return node.setdefault(parent, {})


def _parse_index(items: list[Any], key: str, path: str) -> int:
    if not key.isdigit() or int(key) >= len(items):
        raise ConfigError(
            [Fault(path, f"'{key}' is not an index of this list of {len(items)}.", "Indices start at 0.")]
        )
    return int(key)


def _format_input(details: ErrorDetails) -> str:
    try:
        text = repr(details["input"])
    except ValueError:  # Python prints at most a few thousand digits
        text = "a number of too many digits"
    return truncate(text, 60)


def _dotted_path(location: tuple[int | str, ...], table: TomlTable) -> str:
    """Return the dotted path as the user wrote it, without the union tags that pydantic adds."""
    parts: list[str] = []
    node: Any = table
    is_tagged = False  # a table has at most one tag, before its keys: a key may have the same name
    for part in location:
        if not is_tagged and isinstance(node, dict) and part in (node.get(tag) for tag in DISCRIMINATORS):
            is_tagged = True
            continue
        is_tagged = False
        parts.append(str(part)[:80])
        if isinstance(node, list | tuple) and isinstance(part, int):
            node = node[part]
        else:
            node = node.get(part) if isinstance(node, dict) else None
    return ".".join(parts)


def _list_keys(annotation: Any, location: tuple[int | str, ...]) -> list[str]:
    """List the keys of the table at this location."""
    node = annotation
    is_tagged = False  # as in `_dotted_path`
    for part in location:
        if isinstance(part, int):
            continue  # all elements of a list have one type
        members = {member_tag: member for member in _union_members(node) for member_tag in _tag_values(member)}
        if part in members and not is_tagged:
            node, is_tagged = members[part], True
            continue
        is_tagged = False
        fields = [
            member.model_fields[part].annotation for member in _union_members(node) if part in member.model_fields
        ]
        if not fields:
            return []
        node = fields[0]
    return sorted({key for member in _union_members(node) for key in member.model_fields})


def _find_paths(annotation: Any, name: str, path: str = "", depth: int = 4) -> set[str]:
    """Return the dotted paths of all settings of this name, at most `depth` tables deep."""
    paths = set[str]()
    for member in _union_members(annotation) if depth else ():
        for key, field in member.model_fields.items():
            inner = f"{path}.{key}".lstrip(".")
            paths |= {inner} if key == name else _find_paths(field.annotation, name, inner, depth - 1)
    return paths


def _union_members(annotation: Any) -> list[type[BaseModel]]:
    """List the models of an annotation, through unions and `Annotated`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    arguments = getattr(annotation, "__origin__", None), *getattr(annotation, "__args__", ())
    return [
        member for part in arguments if part is not None and part is not annotation for member in _union_members(part)
    ]


def _tag_values(member: type[BaseModel]) -> list[str]:
    return [str(member.model_fields[tag].default) for tag in DISCRIMINATORS if tag in member.model_fields]


def suggest(name: str, choices: list[str]) -> str | None:
    """Suggest the closest choice, or list all."""
    if not choices:
        return None
    matches = difflib.get_close_matches(name, choices, n=1, cutoff=0.5)
    return f"Did you mean '{matches[0]}'?" if matches else f"Choose from: {', '.join(choices)}."
