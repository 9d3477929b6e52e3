"""OpenDocument text (odt): paragraphs and headings of the text, its headers, footers, notes and text boxes."""

import re
from collections.abc import Iterator

from regard.base.errors import RegardError
from regard.documents.archive import Archive
from regard.documents.inline import Atom, Paragraph, Style
from regard.documents.office import OfficeDocument
from regard.documents.xml import Element, Xml, write_text

_NAMESPACE = "urn:oasis:names:tc:opendocument:xmlns:"
_PREFIXES = {f"{_NAMESPACE}text:1.0": "text", f"{_NAMESPACE}office:1.0": "office", f"{_NAMESPACE}drawing:1.0": "draw"}
_PARAGRAPHS = {"text:p", "text:h"}
_CONTAINERS = {"text:span", "text:a", "text:meta"}
_DROPPED = {"text:soft-page-break"}
_SPACES = {"text:line-break": "\n", "text:tab": "\t"}
_SKIPPED = {"office:annotation", "text:tracked-changes"}  # comments and deleted text
_PARTS = ("content.xml", "styles.xml")


class OdtFormat:
    """OpenDocument text: text, tables, headers, footers, notes and text boxes; not comments."""

    suffixes = (".odt",)
    media_type = "application/vnd.oasis.opendocument.text"

    def read(self, data: bytes) -> OfficeDocument:
        """Read a document."""
        archive = Archive(data)
        if "mimetype" not in archive.names or archive.read("mimetype").strip() != self.media_type.encode():
            raise RegardError(
                "The archive is not an OpenDocument text.",
                location="mimetype",
                hint="Check that the suffix of the file is right, and that the document has no password.",
            )
        parts = {
            name: Xml(archive.read(name), name, _PREFIXES)
            for name in _PARTS
            if name in archive.names or name == _PARTS[0]
        }
        paragraphs = [p for name, part in parts.items() for p in _read_paragraphs(part, name) if p.has_words]
        return OfficeDocument(archive, parts, paragraphs)


def _read_paragraphs(part: Xml, name: str) -> Iterator[Paragraph]:
    number, skipped_end = 0, 0
    for element in part.root.walk():
        if element.start < skipped_end:
            continue
        if element.name in _SKIPPED:
            skipped_end = element.end
        elif element.name in _PARAGRAPHS and element.close_start > element.open_end:
            number += 1
            atoms = list(_read_atoms(part, element))
            start, end = element.open_end, element.close_start
            yield Paragraph(part, start, end, atoms, f"{name}, paragraph {number}", _Writer(part, element))


def _read_atoms(part: Xml, element: Element) -> Iterator[Atom]:
    for item in part.parts(element):
        if not isinstance(item, Element):
            start, end, text = item
            yield Atom("text", start, end, re.sub(r"[ \t\r\n]+", " ", text).replace("\u00ad", ""))
        elif item.name == "text:s":
            yield Atom("text", item.start, item.end, " ")
        elif item.name in _SPACES:
            yield Atom("text", item.start, item.end, _SPACES[item.name])
        elif item.name in _CONTAINERS and item.close_start > item.open_end:
            yield Atom("open", item.start, item.open_end)
            yield from _read_atoms(part, item)
            yield Atom("close", item.close_start, item.end)
        elif item.name not in _DROPPED:
            kind = item.name.removesuffix("-start").removesuffix("-end")
            identifier = kind + item.attributes.get("text:name", item.attributes.get("text:change-id", ""))
            yield Atom(
                "point",
                item.start,
                item.end,
                opens=identifier if item.name.endswith("-start") else "",
                closes=identifier if item.name.endswith("-end") else "",
            )


class _Writer:
    """Writes text: OpenDocument reads several spaces as one, and line breaks as spaces, so they become elements."""

    def __init__(self, part: Xml, paragraph: Element) -> None:
        tag = re.match(rb"<([^\s/>]*:)?", part.data[paragraph.start : paragraph.open_end])
        self.prefix = tag[1] if tag and tag[1] else b""

    def __call__(self, _: Style, text: str) -> bytes:
        return re.sub(rb"(?<= ) |[\n\t]", self._write_space, write_text(text))

    def _write_space(self, match: re.Match[bytes]) -> bytes:
        return b"<%s%s/>" % (self.prefix, {b"\n": b"line-break", b"\t": b"tab"}.get(match[0], b"s"))
