r"""Reader for JSON Lines: one JSON object per line.

The reader rejects ambiguous records instead of guessing: a duplicate key, a missing key, a text that is not a string,
and a lone surrogate (`"\ud800"`), which is not a character and cannot be encoded again.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from regard.config.sources import JsonlConfig
from regard.data.example import CorpusError, Defects, Example, Location
from regard.data.readers.text_files import count_text_defects, iter_lines, list_files

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def read_jsonl(source: JsonlConfig, defects: Defects) -> Iterator[Example]:
    """Read the objects of a file or of every file in a folder."""
    parse = _JsonParser(tuple(key for key in (source.source, source.target, source.label) if key is not None))
    for path in list_files(source.path, defects):
        for block in iter_lines(path, defects):
            for number, line in enumerate(block.lines, block.first_line):
                location = Location(path, number)
                if not line.strip(" \t\r"):
                    defects.add("blank line left out", location)
                elif (example := _make_example(source, parse(line, location, defects), location, defects)) is not None:
                    yield example


def _make_example(source: JsonlConfig, record: dict[str, Any], location: Location, defects: Defects) -> Example | None:
    text = _get_text(record, source.source, location)
    target = None if source.target is None else _get_text(record, source.target, location)
    label = (
        None
        if source.label is None
        else format_label(_get_value(record, source.label, location), source.label, location)
    )
    if text is None or (source.target is not None and target is None):
        defects.add("null left out", location)
        return None
    count_text_defects((text, target), location, defects)
    return Example(location, text, target, label, None, source.languages)


def _get_value(record: dict[str, Any], key: str, location: Location) -> Any:
    if key not in record:
        hint = f"The object has these keys: {', '.join(record)}."
        raise CorpusError(f"The object has no key '{key}'.", location=str(location), hint=hint)
    return record[key]


def _get_text(record: dict[str, Any], key: str, location: Location) -> str | None:
    value = _get_value(record, key, location)
    if value is not None and not isinstance(value, str):
        message = f"'{key}' is not a string: {json.dumps(value)[:60]}."
        raise CorpusError(message, location=str(location), hint="Put the text in quotation marks.")
    if value and not value.isascii() and (surrogate := _LONE_SURROGATE.search(value)):
        raise CorpusError(
            f"'{key}' has a lone surrogate, \\u{ord(surrogate[0]):04x}, at character {surrogate.start() + 1}.",
            location=str(location),
            hint="The program that wrote the file split a character: export the text again.",
        )
    return value


def format_label(value: Any, key: str, location: Location) -> str:
    """Format a label as text: strings unchanged, integers and booleans as in JSON."""
    if isinstance(value, str) and not _LONE_SURROGATE.search(value):
        return value
    if isinstance(value, int):
        return json.dumps(value)
    message = f"'{key}' is not a label: {str(value)[:60]!r}."
    raise CorpusError(message, location=str(location), hint="Use a string, an integer or a boolean.")


class _JsonParser:
    """Parses JSON objects and detects duplicate keys."""

    def __init__(self, keys: tuple[str, ...]) -> None:
        self.keys = keys
        self.duplicate_keys: list[str] = []
        self.decoder = json.JSONDecoder(object_pairs_hook=self._make_object)

    def _make_object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        fields = dict(pairs)
        if len(fields) < len(pairs):
            keys = [key for key, _ in pairs]
            self.duplicate_keys += [key for key in fields if keys.count(key) > 1]
        return fields

    def __call__(self, line: str, location: Location, defects: Defects) -> dict[str, Any]:
        self.duplicate_keys.clear()
        try:
            record = self.decoder.decode(line)
        except (ValueError, RecursionError) as error:
            hint = "Write one complete object per line: {...}"
            raise CorpusError(f"Not JSON: {error}.", location=str(location), hint=hint) from error
        if not isinstance(record, dict):
            raise CorpusError(
                "The line is not a JSON object.", location=str(location), hint="Write one object per line: {...}"
            )
        for key in self.duplicate_keys:
            if key in self.keys:
                raise CorpusError(
                    f"The key '{key}' occurs twice.", location=str(location), hint="Keep one of the two values."
                )
            defects.add("duplicate key (not read)", location)
        return record
