"""Translation files with sources and targets (XLIFF, TMX): missing targets are written, the rest is preserved."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from regard.documents.inline import Atom, Paragraph, Style, balance
from regard.documents.segment import Segment
from regard.documents.xml import Element, Xml, write_text


@dataclass(frozen=True)
class BilingualUnit:
    """A source and the place of its target."""

    content: Element
    """The element whose content becomes that of the target, with its paragraphs translated."""
    paragraphs: tuple[Paragraph, ...]
    start: int
    end: int
    """The range that the target replaces; empty if it is new."""
    before: bytes
    after: bytes
    """What is written around the content of the target."""
    tags: tuple[tuple[Element, dict[str, str]], ...] = ()
    """Attributes to set in other elements, the last element first."""


class BilingualDocument:
    """The sources of a file that have no target yet."""

    def __init__(self, xml: Xml, units: Iterable[BilingualUnit]) -> None:
        self._xml = xml
        self._units = [unit for unit in units if any(paragraph.has_words for paragraph in unit.paragraphs)]
        self.segments = [p.segment for unit in self._units for p in unit.paragraphs if p.has_words]

    def write(self, translations: Sequence[Segment]) -> bytes:
        """Return the file with a target for each segment."""
        xml, remaining = self._xml, list(translations)
        xml.discard_edits()
        for unit in reversed(self._units):
            parts, end = list[bytes](), unit.content.close_start
            for paragraph in reversed(unit.paragraphs):
                if paragraph.has_words:
                    parts += [xml.data[paragraph.end : end], paragraph.render(remaining.pop())]
                    end = paragraph.start
            content = xml.data[unit.content.open_end : end] + b"".join(reversed(parts))
            xml.edit(unit.start, unit.end, unit.before + content + unit.after)
            for element, attributes in unit.tags:
                xml.edit(element.start, element.open_end, set_attributes(xml, element, attributes))
        if remaining:
            raise ValueError(f"{len(translations)} translations for {len(self.segments)} segments.")
        return xml.write()


def make_paragraph(
    xml: Xml, element: Element, location: str, *, pairs: Collection[str], marks: dict[str, tuple[str, str]]
) -> Paragraph:
    """Return the content of an element as a paragraph.

    Args:
        xml: The document.
        element: The element.
        location: Where it is, for reports.
        pairs: Names of elements around translated text.
        marks: By name of an element that starts or ends a pair: "open" or "close", and the attribute that both share.
    """
    keeps_space = next(
        (e.attributes["xml:space"] for e in [element, *element.ancestors()] if "xml:space" in e.attributes), ""
    )
    atoms = list(_read_atoms(xml, element, pairs, marks, keeps_space=keeps_space == "preserve"))
    return Paragraph(xml, element.open_end, element.close_start, balance(atoms), location, _write)


def is_locked(element: Element) -> bool:
    """Return whether the nearest `translate` attribute is "no"."""
    values = (e.attributes["translate"] for e in [element, *element.ancestors()] if "translate" in e.attributes)
    return next(values, "yes") == "no"


def set_attributes(xml: Xml, element: Element, attributes: dict[str, str]) -> bytes:
    """Return the opening tag of an element with other values of some attributes."""
    tag = xml.data[element.start : element.open_end]
    for name, value in attributes.items():
        written = f'{name}="{value}"'.encode()
        tag, count = re.subn(rb"(?<=\s)%s\s*=\s*(\"[^\"]*\"|'[^']*')" % name.encode(), written, tag, count=1)
        if not count:
            tag = re.sub(rb"(\s*/?>)$", rb" %s\1" % written, tag)
    return tag


def indent_of(xml: Xml, parent: Element) -> bytes:
    """Return the white space before the first child of an element."""
    space = xml.data[parent.open_end : parent.children[0].start]
    return space if not space.strip() else b""


def prefix_of(xml: Xml, element: Element) -> bytes:
    """Return the prefix of an element's tag with its colon."""
    match = re.match(rb"<([^\s/>:]*:)?", xml.data[element.start : element.open_end])
    return match[1] if match and match[1] else b""


def _write(_: Style, text: str) -> bytes:
    return write_text(text)


_KeyedAtom = tuple[Atom, str]  # the key names a pair


def _read_atoms(
    xml: Xml, element: Element, pairs: Collection[str], marks: dict[str, tuple[str, str]], *, keeps_space: bool
) -> Iterator[_KeyedAtom]:
    for item in xml.parts(element):
        if not isinstance(item, Element):
            start, end, text = item
            if not keeps_space:
                text = re.sub(r"[ \t]*\n[ \t]{2,}", " ", text)  # indented by a program
            yield Atom("text", start, end, text), ""
        elif item.name in pairs and is_locked(item):
            yield Atom("protected", item.start, item.end, "".join(_texts(xml, item))), ""
        elif item.name in pairs and item.close_start > item.open_end:
            key = f"{item.start}"
            yield Atom("open", item.start, item.open_end), key
            yield from _read_atoms(xml, item, pairs, marks, keeps_space=keeps_space)
            yield Atom("close", item.close_start, item.end), key
        elif item.name in marks:
            kind, name = marks[item.name]
            identifier = item.attributes.get(name) or item.attributes.get("id", "")
            yield Atom("open" if kind == "open" else "close", item.start, item.end), f"{name} {identifier}"
        else:
            yield Atom("point", item.start, item.end), ""


def _texts(xml: Xml, element: Element) -> Iterator[str]:
    for item in xml.parts(element):
        if isinstance(item, Element):
            yield from _texts(xml, item)
        else:
            yield item[2]
