r"""One JSON object a line.

What the format leaves open is refused instead of guessed: a key that is given twice, a missing key, a text that is no
string, and half a surrogate pair (`"\ud800"`), which is no character and could not be written again.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from regard.config.run import Jsonl
from regard.data.example import CorpusError, Defects, Example, Location
from regard.data.readers.text_files import count_odd_characters, iter_lines, list_files

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def read_jsonl(source: Jsonl, defects: Defects) -> Iterator[Example]:
    """The objects of a file; folders are read file by file."""
    parse = _Parser(tuple(key for key in (source.source, source.target, source.label) if key is not None))
    for path in list_files(source.path, defects):
        for block in iter_lines(path, defects):
            for number, line in enumerate(block.lines, block.first_line):
                where = Location(path, number)
                if not line.strip(" \t\r"):
                    defects.add("blank line left out", where)
                elif (example := _make_example(source, parse(line, where, defects), where, defects)) is not None:
                    yield example


def _make_example(source: Jsonl, record: dict[str, Any], where: Location, defects: Defects) -> Example | None:
    text = _get_text(record, source.source, where)
    target = None if source.target is None else _get_text(record, source.target, where)
    label = None if source.label is None else format_label(_get_value(record, source.label, where), source.label, where)
    if text is None or (source.target is not None and target is None):
        defects.add("null left out", where)
        return None
    for part in (text, target):
        if part == "":
            defects.add("empty text", where)
        if part:
            count_odd_characters(part, where, defects)
    return Example(where, text, target, label, None, source.languages)


def _get_value(record: dict[str, Any], key: str, where: Location) -> Any:
    if key not in record:
        raise CorpusError(f"There is no '{key}'.", where=str(where), fix=f"The object has: {', '.join(record)}.")
    return record[key]


def _get_text(record: dict[str, Any], key: str, where: Location) -> str | None:
    value = _get_value(record, key, where)
    if value is not None and not isinstance(value, str):
        raise CorpusError(f"'{key}' is no string: {json.dumps(value)[:60]}", where=str(where), fix="Quote texts.")
    if value and not value.isascii() and (surrogate := _LONE_SURROGATE.search(value)):
        raise CorpusError(
            f"'{key}' has half a surrogate pair, \\u{ord(surrogate[0]):04x}, at character {surrogate.start() + 1}.",
            where=str(where),
            fix="A character was cut in two where the file was made: write it whole.",
        )
    return value


def format_label(value: Any, key: str, where: Location) -> str:
    """A label as text: strings as they are, whole numbers and truth values as JSON writes them."""
    if isinstance(value, str) and not _LONE_SURROGATE.search(value):
        return value
    if isinstance(value, int):
        return json.dumps(value)
    raise CorpusError(f"'{key}' is no label: {str(value)[:60]!r}.", where=str(where), fix="Use a string or an integer.")


class _Parser:
    """JSON's own parser, and the keys that were given twice."""

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

    def __call__(self, line: str, where: Location, defects: Defects) -> dict[str, Any]:
        self.duplicate_keys.clear()
        try:
            record = self.decoder.decode(line)
        except (ValueError, RecursionError) as error:
            fix = "Every line must be one whole object: {...}"
            raise CorpusError(f"Not JSON: {error}.", where=str(where), fix=fix) from error
        if not isinstance(record, dict):
            raise CorpusError("The line is no JSON object.", where=str(where), fix="Write {...} in every line.")
        for key in self.duplicate_keys:
            if key in self.keys:
                fix = "Nobody can say which one is meant: keep one."
                raise CorpusError(f"'{key}' is given twice.", where=str(where), fix=fix)
            defects.add("key given twice (not read)", where)
        return record
