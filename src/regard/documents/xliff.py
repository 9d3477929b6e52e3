"""XLIFF 1.2 and 2.0: targets are written for sources that have none.

A target is written if it is missing or empty, if its state says that it is new, or (1.2) if it repeats the source and
has no state. The new target is marked: `state="needs-review-translation" state-qualifier="mt-suggestion"` in 1.2,
`state="translated"` of the segment in 2.0. Sources with translate="no" are left alone.
"""

from collections.abc import Iterator

from regard.base.errors import RegardError
from regard.documents.bilingual import (
    BilingualDocument,
    BilingualUnit,
    indent_of,
    is_locked,
    make_paragraph,
    prefix_of,
    set_attributes,
)
from regard.documents.inline import Paragraph
from regard.documents.xml import Element, Xml

_VERSION_1, _VERSION_2 = "urn:oasis:names:tc:xliff:document:1.2", "urn:oasis:names:tc:xliff:document:2.0"
_PREFIXES = {
    "urn:oasis:names:tc:xliff:document:1.1": "",
    _VERSION_1: "",
    _VERSION_2: "",
    "urn:oasis:names:tc:xliff:document:2.1": "",
}
_PAIRS = {"g", "pc", "mrk"}
_MARKS = {
    "bpt": ("open", "rid"),
    "ept": ("close", "rid"),
    "bx": ("open", "rid"),
    "ex": ("close", "rid"),
    "sc": ("open", "startRef"),
    "ec": ("close", "startRef"),
}
_NEW_STATES = {"new", "needs-translation", "initial"}
_STATE_1 = {"state": "needs-review-translation", "state-qualifier": "mt-suggestion"}


class XliffFormat:
    """XLIFF files."""

    suffixes = (".xlf", ".xliff")
    media_type = "application/xliff+xml"

    def read(self, data: bytes) -> BilingualDocument:
        """Read the sources that need a target."""
        xml = Xml(data, "XLIFF", _PREFIXES, doctype=True)
        if xml.root.name != "xliff":
            raise RegardError(
                f"Not an XLIFF file: the root element is <{xml.root.name[:100]}>.",
                location="XLIFF",
                hint="Save it as XLIFF 1.2 or 2.0.",
            )
        is_version_1 = xml.root.attributes.get("version", "1").startswith("1")
        read = _read_trans_unit if is_version_1 else _read_segment
        name = "trans-unit" if is_version_1 else "segment"
        return BilingualDocument(xml, (unit for e in xml.root.walk() if e.name == name for unit in read(xml, e)))


def _read_trans_unit(xml: Xml, element: Element) -> Iterator[BilingualUnit]:
    source, target = element.find("source"), element.find("target")
    if source is None or is_locked(element) or element.attributes.get("approved") == "yes":
        return
    if target is not None and not _is_open(xml, source, target, target.attributes.get("state")):
        return
    location = f"unit {element.attributes.get('id', '')}"
    content = element.find("seg-source") or source
    segments = [child for child in content.children if child.name == "mrk" and child.attributes.get("mtype") == "seg"]
    paragraphs = tuple(_make(xml, part, location) for part in segments or [content])
    if target is not None:
        opening = set_attributes(xml, target, _STATE_1)
        opening = opening[: opening.rindex(b"/")] + b">" if target.open_end == target.end else opening
        closing = b"</%starget>" % prefix_of(xml, source)
        yield BilingualUnit(content, paragraphs, target.start, target.end, opening, closing)
    else:
        states = " ".join(f'{name}="{value}"' for name, value in _STATE_1.items())
        yield _make_new(xml, element, content, paragraphs, f" {states}".encode())


def _read_segment(xml: Xml, element: Element) -> Iterator[BilingualUnit]:
    source, target = element.find("source"), element.find("target")
    if source is None or is_locked(element):
        return
    state = element.attributes.get("state", "initial")
    if target is not None and not _is_open(xml, source, target, state):
        return
    unit = element.parent.attributes.get("id", "") if element.parent else ""
    paragraphs = (_make(xml, source, f"unit {unit}"),)
    tags = ((element, {"state": "translated"}),)
    if target is not None:
        opening = set_attributes(xml, target, {})
        opening = opening[: opening.rindex(b"/")] + b">" if target.open_end == target.end else opening
        closing = b"</%starget>" % prefix_of(xml, source)
        yield BilingualUnit(source, paragraphs, target.start, target.end, opening, closing, tags)
    else:
        new = _make_new(xml, element, source, paragraphs, b"")
        yield BilingualUnit(source, paragraphs, new.start, new.end, new.before, new.after, tags)


def _make(xml: Xml, element: Element, location: str) -> Paragraph:
    return make_paragraph(xml, element, location, pairs=_PAIRS, marks=_MARKS)


def _make_new(
    xml: Xml, parent: Element, content: Element, paragraphs: tuple[Paragraph, ...], attributes: bytes
) -> BilingualUnit:
    prefix = prefix_of(xml, content)
    before = indent_of(xml, parent) + b"<%starget%s>" % (prefix, attributes)
    return BilingualUnit(content, paragraphs, content.end, content.end, before, b"</%starget>" % prefix)


def _is_open(xml: Xml, source: Element, target: Element, state: str | None) -> bool:
    """Return whether a target is to be written."""
    written = xml.data[target.open_end : target.close_start].strip()
    original = xml.data[source.open_end : source.close_start].strip()
    return not written or state in _NEW_STATES or (state is None and written == original)
