"""Reader for gettext catalogs (.po and .mo): messages of software and their translations.

Untranslated, fuzzy (unconfirmed) and obsolete entries are skipped and counted. A plural entry gives one pair per
form: the first form belongs to the singular, the others to the plural. A language with a single form (Japanese) uses it
for all numbers, so it is paired with the plural. The reader holds a whole catalog in memory.
"""

import re
import struct
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from regard.base.extras import import_optional
from regard.config.sources import GettextConfig
from regard.data.example import CorpusError, Defects, Example, Location
from regard.data.readers.text_files import (
    TruncatedError,
    count_text_defects,
    iter_lines,
    list_files,
    read_decompressed,
    strip_compression,
)

# polib drops the last character of a string without checking that it is a quotation mark, so lines are checked first.
_PO_LINE = re.compile(r'\s*(#.*|((msgctxt|msgid|msgid_plural|msgstr(\[[0-9]\])?)\s+)?"[^"\\]*(\\.[^"\\]*)*"\s*)?')
_MSGID = re.compile(r"\s*(#~\s*)?msgid\s")
_CHARSET = re.compile(rb"charset=([\w-]+)")


class _Entry(NamedTuple):
    """A message and its translation; a message with a plural has several `forms`."""

    location: Location
    message: str
    plural: str
    forms: list[str]


def read_gettext(source: GettextConfig, defects: Defects) -> Iterator[Example]:
    """Read the pairs of a catalog or of every catalog in a folder."""
    for path in list_files(source.path, defects):
        is_binary = strip_compression(path).suffix.lower() == ".mo"
        for entry in _read_mo_entries(path) if is_binary else _read_po_entries(path, defects):
            for text, target in _make_pairs(entry, defects):
                count_text_defects((text, target), entry.location, defects)
                yield Example(entry.location, text, target, languages=source.languages)


def _make_pairs(entry: _Entry, defects: Defects) -> Iterator[tuple[str, str]]:
    messages = [entry.message] + [entry.plural] * (len(entry.forms) - 1)
    if entry.plural and len(entry.forms) == 1:
        messages = [entry.plural]
    for message, form in zip(messages, entry.forms, strict=True):
        if message and form:
            yield message, form
        else:
            defects.add("untranslated entry left out", entry.location)


def _read_po_entries(path: str, defects: Defects) -> Iterator[_Entry]:
    polib = import_optional("polib", "formats", "Reading .po")
    with TemporaryDirectory() as folder:  # polib splits strings, but not files, at U+2028
        copy = Path(folder, "catalog.po")
        message_count = _copy_checked_lines(path, copy, defects)
        try:
            entries = polib.pofile(str(copy), encoding="utf-8")
        except OSError as error:
            match = re.search(r"line ([0-9]+)\)", str(error))
            location = Location(path, int(match[1]) if match else 1)
            raise CorpusError(
                "Not a PO file.", location=str(location), hint="Run `msgfmt --check` for details."
            ) from error
    has_header = isinstance(entries.metadata_is_fuzzy, list)
    if len(entries) + has_header != message_count:
        message = f"Only {len(entries) + has_header} of {message_count} messages have their own entry."
        hint = "Check that every msgid has a msgstr; run `msgfmt --check` for details."
        raise CorpusError(message, location=str(Location(path, 1)), hint=hint)
    for entry in entries:
        location = Location(path, max(1, entry.linenum))
        if entry.obsolete:
            defects.add("obsolete entry left out", location)
        elif entry.fuzzy:
            defects.add("fuzzy entry left out", location)
        else:
            forms = [form for _, form in sorted(entry.msgstr_plural.items())] or [entry.msgstr]
            yield _Entry(location, entry.msgid, entry.msgid_plural, forms)


def _copy_checked_lines(path: str, copy: Path, defects: Defects) -> int:
    """Copy the lines for polib and count the messages, because polib drops malformed ones silently."""
    message_count = 0
    with copy.open("w", encoding="utf-8", newline="\n") as file:
        for block in iter_lines(path, defects):
            for number, line in enumerate(block.lines, block.first_line):
                if not _PO_LINE.fullmatch(line):
                    hint = "Look for a missing closing quotation mark, or a quotation mark without a backslash."
                    raise CorpusError("Not a line of a PO file.", location=str(Location(path, number)), hint=hint)
                message_count += _MSGID.match(line) is not None
                file.write(line.replace("\r", "\\r") + "\n")  # polib would end the line here
    return message_count


def _read_mo_entries(path: str) -> Iterator[_Entry]:
    """Read the two string tables; the empty message is the header. (polib accepts truncated strings.)"""
    content = _read_bytes(path)
    byte_order = ">" if content[:4] == b"\x95\x04\x12\xde" else "<"
    try:
        magic, _, count, message_table, translation_table = struct.unpack_from(f"{byte_order}5I", content)
    except struct.error:
        magic = count = message_table = translation_table = 0
    if magic != 0x950412DE:
        raise CorpusError("Not an MO file.", location=str(Location(path, 1)), hint="Compile it again with msgfmt.")
    charset = "utf-8"
    for number in range(count):
        location = Location(path, number + 1)
        message = _read_string(content, message_table + 8 * number, byte_order, location)
        translation = _read_string(content, translation_table + 8 * number, byte_order, location)
        if not message:
            match = _CHARSET.search(translation)
            charset = match[1].decode() if match else charset
            continue
        singular, _, plural = _decode(message, charset, location).rpartition("\x04")[2].partition("\0")
        yield _Entry(location, singular, plural, _decode(translation, charset, location).split("\0"))


def _read_bytes(path: str) -> bytes:
    try:
        return b"".join(read_decompressed(path))
    except TruncatedError as error:
        raise CorpusError(error.message, location=str(Location(path, 1)), hint=error.hint) from error


def _read_string(content: bytes, offset: int, byte_order: str, location: Location) -> bytes:
    """The string of a table entry; a NUL inside the file must end it."""
    try:
        length, start = struct.unpack_from(f"{byte_order}2I", content, offset)
    except struct.error:
        length, start = 0, len(content)
    if content[start + length : start + length + 1] != b"\0":
        raise CorpusError("The MO file is truncated.", location=str(location), hint="Replace it with a complete copy.")
    return content[start : start + length]


def _decode(text: bytes, charset: str, location: Location) -> str:
    try:
        return text.decode(charset)
    except (UnicodeDecodeError, LookupError) as error:
        hint = "Correct the charset in the header of the catalog."
        raise CorpusError(f"The entry is not {charset}: {error}.", location=str(location), hint=hint) from error
