r"""YAML string tables: the strings that are values are translated; keys, comments and formatting are preserved.

>>> document = YamlFormat().read(b"en:\n  open: Open # a verb\n  size: 3\n")
>>> [(segment.text, segment.location) for segment in document.segments]
[('Open', 'en.open')]
>>> document.write([Segment("Öffnen: ja")]).decode()
'en:\n  open: "Öffnen: ja" # a verb\n  size: 3\n'
"""

import json
import re
from collections.abc import Iterator
from functools import partial
from typing import Any, cast

from regard.base.errors import RegardError
from regard.base.extras import import_optional
from regard.documents.format import decode_utf8
from regard.documents.offsets import OffsetDocument, Slot
from regard.documents.segment import Segment
from regard.documents.strings import has_words, make_slot
from regard.documents.txt import join_breaks

MAX_SIZE = 1 << 22  # bytes: the parser reads about 1 MB per second
MAX_DEPTH = 100  # levels: its time is quadratic in them
_STRING = "tag:yaml.org,2002:str"
_PROPERTIES = re.compile(r"(?:[&!]\S*\s+)+")  # an anchor or a tag before a value
_PLAIN = re.compile(r"[^\W\d_](?:[^\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff:#{}\[\],]|:(?=\w)|(?<=\w)#)*(?<!\s)")
_BLOCK_HEADER = re.compile(r"[|>][-+0-9]*[ \t]*(?:#[^\r\n]*)?(?:\r\n|\r|\n)")
_LINE = re.compile(r"([^\r\n]*)(?:\r\n|\r|\n|\Z)")


class YamlFormat:
    """Values of YAML mappings and lists."""

    suffixes = (".yaml", ".yml")
    media_type = "application/yaml"

    def read(self, data: bytes) -> OffsetDocument:
        """Read the strings."""
        yaml = import_optional("yaml", "documents", "Translating YAML files")
        mark, text = decode_utf8(data)
        if len(data) > MAX_SIZE:
            raise _error(f"The file has {len(data):,} bytes, more than {MAX_SIZE:,}", "Split the file.")
        try:
            slots = [slot for event, path in _read_values(yaml, text) for slot in _make_slots(yaml, text, event, path)]
        except yaml.YAMLError as error:
            where = getattr(error, "problem_mark", None)
            message = f"Not a YAML file: {str(getattr(error, 'problem', None) or error)[:200]}"
            raise _error(message, "Correct the line.", f"line {where.line + 1}" if where else "YAML") from error
        return OffsetDocument(mark, text, slots)


def _read_values(yaml: Any, text: str) -> Iterator[tuple[Any, str]]:
    """Yield the events of strings that are not keys, and their paths."""
    resolver = yaml.resolver.Resolver()
    path = list[str | int | None]()  # of each open mapping or list: the key, or None before it; the index
    for event in yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        if isinstance(
            event, yaml.DocumentStartEvent | yaml.DocumentEndEvent | yaml.StreamStartEvent | yaml.StreamEndEvent
        ):
            continue
        if isinstance(event, yaml.CollectionEndEvent):
            path.pop()
        elif path and path[-1] is None:  # a key
            is_scalar = isinstance(event, yaml.ScalarEvent)
            path[-1] = event.value[:100] if is_scalar else "?"
            if not isinstance(event, yaml.ScalarEvent | yaml.AliasEvent):
                raise _error(
                    "A key is a list or a mapping", "Use strings as keys.", f"line {event.start_mark.line + 1}"
                )
            continue
        elif isinstance(event, yaml.CollectionStartEvent):
            path.append(None if isinstance(event, yaml.MappingStartEvent) else 0)
            if len(path) > MAX_DEPTH:
                raise _error(f"Lists or mappings are nested more than {MAX_DEPTH} deep", "Remove the nesting.")
            continue
        elif isinstance(event, yaml.ScalarEvent):
            is_implied = event.tag is None and event.implicit[0]
            tag = resolver.resolve(yaml.ScalarNode, event.value, (True, False)) if is_implied else event.tag or _STRING
            if tag == _STRING:
                yield event, ".".join(str(key) for key in path)
        if path:  # a value has ended
            last = path[-1]
            path[-1] = last + 1 if isinstance(last, int) else None


def _make_slots(yaml: Any, text: str, event: Any, path: str) -> Iterator[Slot]:
    if not has_words(event.value):
        return
    start, end = event.start_mark.index, event.end_mark.index
    if (properties := _PROPERTIES.match(text, start, end)) and (event.anchor or event.tag):
        start = properties.end()
    if event.style in ("|", ">"):
        yield from _split_block(text, start, end, path, is_folded=event.style == ">")
    else:
        quote = {"'": _quote_single, '"': _quote_double}.get(event.style, partial(_quote_plain, yaml))
        yield make_slot(start, end, event.value, path, quote)


def _split_block(text: str, start: int, end: int, path: str, *, is_folded: bool) -> Iterator[Slot]:
    """Yield the lines of a block; in a folded one, the paragraphs."""
    header = _BLOCK_HEADER.match(text, start)
    position = header.end() if header else end
    opened: tuple[int, int] | None = None  # the range of the open paragraph
    indent = None  # of the block
    while position < end:
        line = cast(re.Match[str], _LINE.match(text, position, end))  # matches everywhere
        content = line[1].strip()
        first, depth = position + line[1].index(content), line[1].find(content)
        indent = depth if indent is None and content else indent
        if opened and (not content or not is_folded or depth != indent):
            yield from _make_block_slot(text, *opened, path)
            opened = None
        if content:
            opened = (opened[0] if opened and depth == indent else first, first + len(content))
            if depth != indent:
                yield from _make_block_slot(text, *opened, path)
                opened = None
        position = line.end()
    if opened:
        yield from _make_block_slot(text, *opened, path)


def _make_block_slot(text: str, start: int, end: int, path: str) -> Iterator[Slot]:
    value = join_breaks(text[start:end])
    if has_words(value):
        yield Slot(start, end, Segment(value, location=path), escape=join_breaks)


def _quote_plain(yaml: Any, text: str) -> str:
    """Write a string without quotation marks if it would be read as the same string."""
    if _PLAIN.fullmatch(text) and yaml.resolver.Resolver().resolve(yaml.ScalarNode, text, (True, False)) == _STRING:
        return text
    return _quote_double(text)


def _quote_single(text: str) -> str:
    return "'" + text.replace("'", "''") + "'" if text.isprintable() else _quote_double(text)


def _quote_double(text: str) -> str:
    quoted = json.dumps(text, ensure_ascii=False)
    return "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in quoted)


def _error(message: str, hint: str, location: str = "YAML") -> RegardError:
    return RegardError(f"{message}.", location=location, hint=hint)
