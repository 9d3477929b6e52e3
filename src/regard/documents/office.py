"""Word and PowerPoint documents (docx, pptx): the paragraphs of their XML parts.

A paragraph of either format holds runs: texts with the same properties. Word splits runs wherever the spelling checker
or an editing session ended; runs that look the same are one text here. Fields, drawings, notes and deleted text are
points; links and inserted text are pairs. Text boxes inside a drawing are paragraphs of their own.
"""

import re
from collections.abc import Iterator, Sequence

from regard.base.errors import RegardError
from regard.documents.archive import Archive
from regard.documents.inline import PLAIN, Atom, Paragraph, Style
from regard.documents.segment import Segment
from regard.documents.xml import Element, Xml, write_text

_WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml."
_SLIDES = "application/vnd.openxmlformats-officedocument.presentationml."
_DRAWINGS = "application/vnd.openxmlformats-officedocument.drawingml."
_PREFIXES = {
    "http://schemas.openxmlformats.org/wordprocessingml/2006/main": "w",
    "http://purl.oclc.org/ooxml/wordprocessingml/main": "w",
    "http://schemas.openxmlformats.org/drawingml/2006/main": "a",
    "http://purl.oclc.org/ooxml/drawingml/main": "a",
    "http://schemas.openxmlformats.org/package/2006/content-types": "",
}
_CONTAINERS = {
    "w:hyperlink", "w:ins", "w:moveTo", "w:smartTag", "w:customXml", "w:sdt", "w:sdtContent", "w:dir", "w:bdo"
}  # fmt: skip
_NOISE = {"w:proofErr", "w:lastRenderedPageBreak", "w:softHyphen", "w:pPr", "a:pPr", "a:endParaRPr"}
_SPACES = {"w:br": "\n", "w:cr": "\n", "w:tab": "\t", "a:br": "\n"}
_CHARACTERS = {"\n": b"br", "\t": b"tab", "\u2011": b"noBreakHyphen"}
_PROPERTIES = {"w:rPr", "a:rPr"}
_TRANSLATED_FIELDS = re.compile(r"\s*(HYPERLINK|TOC)\b")  # others are computed: page numbers, dates, references
# Properties of a run that do not change how it looks.
_INVISIBLE = re.compile(
    rb"<w:(?:lang|noProof)\b[^>]*/>|(?<=\s)(?:lang|altLang|dirty|err|smtClean|noProof|bmk)=(?:\"[^\"]*\"|'[^']*')|\s+"
)
_EMPTY = re.compile(rb"^<[\w:]+(/>|></[\w:]+>)$")
_HIDDEN = re.compile(rb"<w:vanish(?:\s*/>|\s+w:val=\"(?:1|true|on)\")")


class OfficeDocument:
    """The paragraphs of an office document, in the order of its parts."""

    def __init__(self, archive: Archive, parts: dict[str, Xml], paragraphs: Sequence[Paragraph]) -> None:
        self._archive, self._parts, self._paragraphs = archive, parts, paragraphs
        self.segments = [paragraph.segment for paragraph in paragraphs]

    def write(self, translations: Sequence[Segment]) -> bytes:
        """Return the document with each segment replaced; parts without a change keep their bytes."""
        for part in self._parts.values():
            part.discard_edits()
        for paragraph, translation in reversed(list(zip(self._paragraphs, translations, strict=True))):
            paragraph.edit(translation)
        return self._archive.replace({name: part.write() for name, part in self._parts.items()})


class _OfficeFormat:
    """What Word and PowerPoint share."""

    kinds: tuple[str, ...]  # content types of the translated parts, the main part first

    def read(self, data: bytes) -> OfficeDocument:
        """Read a document."""
        archive = Archive(data)
        names = _find_parts(archive, self.kinds)
        if not names:
            raise RegardError(
                "The archive has no document of this format.",
                location="[Content_Types].xml",
                hint="Check that the suffix of the file is right.",
            )
        parts = {name: Xml(archive.read(name), name, _PREFIXES) for name in names}
        paragraphs = [p for name, part in parts.items() for p in _read_paragraphs(part, name) if p.has_words]
        return OfficeDocument(archive, parts, paragraphs)


class DocxFormat(_OfficeFormat):
    """Word documents: text, tables, headers, footers, notes, text boxes and diagrams; not comments."""

    suffixes = (".docx",)
    media_type = f"{_WORD}document"
    kinds = (
        *(f"{_WORD}{name}+xml" for name in ("document.main", "header", "footer", "footnotes", "endnotes")),
        *(f"{_DRAWINGS}{name}+xml" for name in ("diagramData", "chart")),
        "application/vnd.ms-office.drawingml.diagramDrawing+xml",
    )


class PptxFormat(_OfficeFormat):
    """PowerPoint presentations: slides, notes, tables and diagrams; not comments and masters."""

    suffixes = (".pptx",)
    media_type = f"{_SLIDES}presentation"
    kinds = (
        f"{_SLIDES}presentation.main+xml",
        f"{_SLIDES}slide+xml",
        f"{_SLIDES}notesSlide+xml",
        *DocxFormat.kinds[-3:],
    )


def _find_parts(archive: Archive, kinds: Sequence[str]) -> list[str]:
    """Return the parts to translate in reading order; empty if the main part is missing."""
    types = Xml(archive.read("[Content_Types].xml"), "[Content_Types].xml", _PREFIXES).root
    names = set(archive.names)
    found = list[tuple[int, int, str]]()
    for override in types.children:
        name, kind = override.attributes.get("PartName", "").lstrip("/"), override.attributes.get("ContentType", "")
        if "macroEnabled" in kind:
            raise RegardError(
                "The document is refused: it contains macros.",
                location="[Content_Types].xml",
                hint="Save it in its program as a document without macros.",
            )
        if kind in kinds and name in names:
            number = re.search(r"(\d{1,9})\.xml$", name)
            found.append((kinds.index(kind), int(number[1]) if number else 0, name))
    return [name for _, _, name in sorted(found)] if any(place == 0 for place, _, _ in found) else []


def _read_paragraphs(part: Xml, name: str) -> Iterator[Paragraph]:
    number = 0
    for element in part.root.walk():
        if element.name in ("w:p", "a:p"):
            number += 1
            children = [child for child in element.children if child.name not in _NOISE or child.name == "w:proofErr"]
            if children:
                reader = _ParagraphReader(part, element)
                reader.read(children)
                atoms, location = reader.finish(), f"{name}, paragraph {number}"
                yield Paragraph(part, children[0].start, children[-1].end, atoms, location, reader.write_run)


class _ParagraphReader:
    """Reads the atoms of a paragraph."""

    def __init__(self, part: Xml, paragraph: Element) -> None:
        self.part = part
        self.atoms: list[Atom] = []
        self.fields: list[tuple[int, list[str], bool]] = []  # first atom, instruction, and whether its result is text
        tag = part.data[paragraph.start + 1 : paragraph.open_end]
        self.is_word = paragraph.name == "w:p"
        self.prefix = tag[: tag.index(b":") + 1] if re.match(rb"[^\s/>]*:", tag) else b""

    def write_run(self, style: Style, text: str) -> bytes:
        """Return a run; in PowerPoint, a line break ends it."""
        tag, space = self.prefix + b"t", b' xml:space="preserve"' if self.is_word else b""
        parts, run = list[bytes](), [style.open, style.close]
        for part in re.split("([\n\t\u2011])" if self.is_word else "(\n)", text):
            if part == "\n" and not self.is_word:
                parts.append(b"<%sbr>%s</%sbr>" % (self.prefix, style.properties, self.prefix))
            elif part in _CHARACTERS:
                parts.append((b"<%s%s/>" % (self.prefix, _CHARACTERS[part])).join(run))
            elif part:
                parts.append((b"<%s%s>%s</%s>" % (tag, space, write_text(part), tag)).join(run))
        return b"".join(parts)

    def read(self, elements: Sequence[Element]) -> None:
        for element in elements:
            if element.name in ("w:r", "a:r"):
                self._read_run(element)
            elif element.name in _CONTAINERS:
                self._read_container(element)
            elif element.name not in _NOISE:
                identifier = element.attributes.get("w:id", "")
                kind = element.name.removesuffix("Start").removesuffix("End")
                self._add_point(
                    element,
                    opens=kind + identifier if element.name.endswith("Start") else "",
                    closes=kind + identifier if element.name.endswith("End") else "",
                )

    def finish(self) -> list[Atom]:
        """Return the atoms; a field that ends in another paragraph leaves its text outside."""
        for index, _, is_text in reversed(self.fields):
            if is_text:
                opening = self.atoms[index]
                self.atoms[index] = Atom("point", opening.start, opening.end, parts=opening.parts)
        return self.atoms

    def _add_point(self, element: Element, style: Style = PLAIN, opens: str = "", closes: str = "") -> None:
        space = _SPACES.get(element.name) if not element.attributes else None  # a page break has an attribute
        if space is not None and not self._is_in_instruction():
            self.atoms.append(Atom("text", element.start, element.end, space, style))
        else:
            self.atoms.append(Atom("point", element.start, element.end, style=style, opens=opens, closes=closes))

    def _read_container(self, element: Element) -> None:
        inner, start, end = element, element.open_end, element.close_start
        if element.name == "w:sdt":
            content = element.find("w:sdtContent")
            if content is None:
                return self._add_point(element)
            inner, start, end = content, content.open_end, content.close_start
        children = inner.children
        if children and children[0].name.endswith("Pr"):
            start, children = children[0].end, children[1:]
        if not children or self._has_part_of_field(children):
            return self._add_point(element)
        self.atoms.append(Atom("open", element.start, start))
        self.read(children)
        self.atoms.append(Atom("close", end, element.end))
        return None

    def _has_part_of_field(self, elements: Sequence[Element]) -> bool:
        """Return whether a field starts but does not end in elements, or the reverse."""
        balance = 0
        for root in elements:
            for element in root.walk():
                if element.name == "w:fldChar":
                    kind = element.attributes.get("w:fldCharType")
                    balance += (kind == "begin") - (kind == "end")
                    if balance < 0:
                        return True
        return balance != 0

    def _read_run(self, run: Element) -> None:
        data = self.part.data
        properties = run.children[0] if run.children and run.children[0].name in _PROPERTIES else None
        raw = data[properties.start : properties.end] if properties else b""
        key = _EMPTY.sub(b"", _INVISIBLE.sub(b"", raw))
        style = Style(key, data[run.start : run.open_end] + raw, data[run.close_start : run.end], raw)
        is_hidden = _HIDDEN.search(raw) is not None
        for child in run.children:
            if child is properties or child.name in _NOISE:
                continue
            if child.name == "w:fldChar":
                self._read_field_mark(child, style)
            elif child.name in ("w:t", "a:t") and not is_hidden and not self._is_in_instruction():
                text = self.part.text(child)
                if child.name == "w:t" and child.attributes.get("xml:space") != "preserve":
                    text = text.strip(" \t\r\n")
                if text := text.replace("\u00ad", "").replace("\n", " "):
                    self.atoms.append(Atom("text", child.start, child.end, text, style))
            elif child.name == "w:noBreakHyphen":
                self.atoms.append(Atom("text", child.start, child.end, "\u2011", style))
            else:
                if child.name == "w:instrText" and self.fields:
                    self.fields[-1][1].append(self.part.text(child))
                self._add_point(child, style)

    def _is_in_instruction(self) -> bool:
        return any(not is_text for _, _, is_text in self.fields)

    def _read_field_mark(self, mark: Element, style: Style) -> None:
        """Read the begin, the separator or the end of a field."""
        atoms, kind = self.atoms, mark.attributes.get("w:fldCharType")
        self._add_point(mark, style)
        if kind == "begin":
            self.fields.append((len(atoms) - 1, [], False))
        elif self.fields:
            first, instruction, is_text = self.fields.pop()
            if kind == "separate":
                is_text = _TRANSLATED_FIELDS.match("".join(instruction)) is not None and not self._is_in_instruction()
                if is_text:
                    atoms[first:] = [Atom("open", mark.start, mark.end, parts=tuple(atoms[first:]))]
                self.fields.append((first, instruction, is_text))
            elif is_text:
                end = atoms.pop()
                atoms.append(Atom("close", mark.start, mark.end, parts=(end,)))
            else:
                atoms[first:] = [Atom("point", mark.start, mark.end, parts=tuple(atoms[first:]))]
