"""Messages and translations of .po and .mo files, the catalogues of software.

Left out and counted: entries that are not translated, fuzzy (nobody has confirmed them) or obsolete. A plural entry
gives a pair for each form: the first form belongs to the singular, the others to the plural; a language with a single
form (Japanese) uses it for all numbers, so it is paired with the plural. A catalogue is read as a whole.
"""

import re
import struct
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from regard.base.extras import import_optional
from regard.config.run import Gettext
from regard.data.example import CorpusError, Defects, Example, Location
from regard.data.readers.text_files import (
    TruncatedError,
    count_odd_characters,
    iter_lines,
    list_files,
    read_decompressed,
    strip_compression,
)

# polib takes the last character of a string for its quotation mark without looking, so every line is checked first.
_PO_LINE = re.compile(r'\s*(#.*|((msgctxt|msgid|msgid_plural|msgstr(\[[0-9]\])?)\s+)?"[^"\\]*(\\.[^"\\]*)*"\s*)?')
_MSGID = re.compile(r"\s*(#~\s*)?msgid\s")
_CHARSET = re.compile(rb"charset=([\w-]+)")


class _Entry(NamedTuple):
    """A message, and its translation: several, if the message has a plural."""

    where: Location
    message: str
    plural: str
    forms: list[str]


def read_gettext(source: Gettext, defects: Defects) -> Iterator[Example]:
    """The pairs of a catalogue; folders are read file by file."""
    for path in list_files(source.path, defects):
        is_binary = strip_compression(path).suffix.lower() == ".mo"
        for entry in _read_mo_entries(path) if is_binary else _read_po_entries(path, defects):
            for text, target in _make_pairs(entry, defects):
                count_odd_characters(text, entry.where, defects)
                count_odd_characters(target, entry.where, defects)
                yield Example(entry.where, text, target, languages=source.languages)


def _make_pairs(entry: _Entry, defects: Defects) -> Iterator[tuple[str, str]]:
    messages = [entry.message] + [entry.plural] * (len(entry.forms) - 1)
    if entry.plural and len(entry.forms) == 1:
        messages = [entry.plural]
    for message, form in zip(messages, entry.forms, strict=True):
        if message and form:
            yield message, form
        else:
            defects.add("untranslated entry left out", entry.where)


def _read_po_entries(path: str, defects: Defects) -> Iterator[_Entry]:
    polib = import_optional("polib", "formats", "Reading .po")
    with TemporaryDirectory() as folder:  # polib splits a string at U+2028 and its like, but not a file
        copy = Path(folder, "catalogue.po")
        message_count = _copy_checked_lines(path, copy, defects)
        try:
            entries = polib.pofile(str(copy), encoding="utf-8")
        except OSError as error:
            match = re.search(r"line ([0-9]+)\)", str(error))
            where = Location(path, int(match[1]) if match else 1)
            raise CorpusError("Not a PO file.", where=str(where), fix="`msgfmt --check` says more.") from error
    has_header = isinstance(entries.metadata_is_fuzzy, list)
    if len(entries) + has_header != message_count:
        what = f"Of {message_count} messages only {len(entries) + has_header} have an entry of their own."
        fix = "Does every msgid have a msgstr? `msgfmt --check` says more."
        raise CorpusError(what, where=str(Location(path, 1)), fix=fix)
    for entry in entries:
        where = Location(path, max(1, entry.linenum))
        if entry.obsolete:
            defects.add("obsolete entry left out", where)
        elif entry.fuzzy:
            defects.add("fuzzy entry left out", where)
        else:
            forms = [form for _, form in sorted(entry.msgstr_plural.items())] or [entry.msgstr]
            yield _Entry(where, entry.msgid, entry.msgid_plural, forms)


def _copy_checked_lines(path: str, copy: Path, defects: Defects) -> int:
    """Write lines that polib reads as they are meant, and count the messages: polib forgets some without a word."""
    message_count = 0
    with copy.open("w", encoding="utf-8", newline="\n") as file:
        for block in iter_lines(path, defects):
            for number, line in enumerate(block.lines, block.first_line):
                if not _PO_LINE.fullmatch(line):
                    fix = "Is a quotation mark missing at the end, or a backslash before one inside?"
                    raise CorpusError("Not a line of a PO file.", where=str(Location(path, number)), fix=fix)
                message_count += _MSGID.match(line) is not None
                file.write(line.replace("\r", "\\r") + "\n")  # polib would take a carriage return for a line's end
    return message_count


def _read_mo_entries(path: str) -> Iterator[_Entry]:
    """Two tables of texts; the empty message is the header. (polib would give what is left of a cut text as whole.)"""
    content = _read_bytes(path)
    byte_order = ">" if content[:4] == b"\x95\x04\x12\xde" else "<"
    try:
        magic, _, count, message_table, translation_table = struct.unpack_from(f"{byte_order}5I", content)
    except struct.error:
        magic = count = message_table = translation_table = 0
    if magic != 0x950412DE:
        raise CorpusError("Not a MO file.", where=str(Location(path, 1)), fix="Make it again with msgfmt.")
    charset = "utf-8"
    for number in range(count):
        where = Location(path, number + 1)
        message = _read_string(content, message_table + 8 * number, byte_order, where)
        translation = _read_string(content, translation_table + 8 * number, byte_order, where)
        if not message:
            match = _CHARSET.search(translation)
            charset = match[1].decode() if match else charset
            continue
        singular, _, plural = _decode(message, charset, where).rpartition("\x04")[2].partition("\0")
        yield _Entry(where, singular, plural, _decode(translation, charset, where).split("\0"))


def _read_bytes(path: str) -> bytes:
    try:
        return b"".join(read_decompressed(path))
    except TruncatedError as error:
        raise CorpusError(error.what, where=str(Location(path, 1)), fix=error.fix) from error


def _read_string(content: bytes, offset: int, byte_order: str, where: Location) -> bytes:
    """The text that an entry of a table points to; it ends with a NUL inside the file."""
    try:
        length, start = struct.unpack_from(f"{byte_order}2I", content, offset)
    except struct.error:
        length, start = 0, len(content)
    if content[start + length : start + length + 1] != b"\0":
        raise CorpusError("The MO file ends in the middle of an entry.", where=str(where), fix="Take a whole copy.")
    return content[start : start + length]


def _decode(text: bytes, charset: str, where: Location) -> str:
    try:
        return text.decode(charset)
    except (UnicodeDecodeError, LookupError) as error:
        fix = "The header of the catalogue names its charset: is it true?"
        raise CorpusError(f"The entry is not {charset}: {error}.", where=str(where), fix=fix) from error
