"""XML that is edited by byte offsets: everything outside the edits stays as it was.

expat parses the document and reports where each element starts, so attributes, entities, prefixes and spaces that no
edit touches keep their bytes. Documents with entity definitions are refused; no other file is opened.
"""

import codecs
import re
from collections.abc import Iterator, Mapping
from html import escape
from typing import cast
from xml.parsers import expat

from regard.base import limits
from regard.base.errors import RegardError

MAX_DEPTH = 256
MAX_TAGS = 1_000_000
_TAG = re.compile(rb"<(?:[^\"'>]|\"[^\"]*\"|'[^']*')*>")
_GAP = re.compile(rb"<!--.*?-->|<\?.*?\?>|<!\[CDATA\[(.*?)\]\]>|([^<]+)", re.DOTALL)
_DECLARATION = re.compile(rb"<\?xml[^>]*?encoding\s*=\s*[\"']([A-Za-z0-9._-]{1,30})[\"']")
_REFERENCE = re.compile(r"&(?:#x([0-9a-fA-F]{1,6})|#([0-9]{1,7})|(\w+));")
_ENTITIES = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}
_ENCODINGS = re.compile(
    r"utf-?(8|16)|(us-)?ascii|iso-?8859-\d+|latin-?1|windows-125\d|cp125\d|koi8-[ru]|shift_jis|euc-(jp|kr)|gb(k|2312|18030)"
    r"|big5"
)
_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Element:
    """An element and the positions of its parts in `Xml.data`: start < open_end <= close_start <= end."""

    __slots__ = ("attributes", "children", "close_start", "end", "name", "open_end", "parent", "start")

    def __init__(self, name: str, attributes: dict[str, str], parent: "Element | None", start: int, open_end: int):
        self.name = name
        self.attributes = attributes
        self.parent = parent
        self.start = start
        self.open_end = open_end
        self.close_start = self.end = open_end
        self.children: list[Element] = []

    def walk(self) -> "Iterator[Element]":
        """Yield the element and its descendants in document order."""
        stack = [self]
        while stack:
            element = stack.pop()
            yield element
            stack += reversed(element.children)

    def find(self, *names: str) -> "Element | None":
        """Return the first child with the first name, its first child with the second, and so on."""
        element: Element | None = self
        for name in names:
            element = next((child for child in element.children if child.name == name), None) if element else None
        return element

    def ancestors(self) -> "Iterator[Element]":
        """Yield the parent, its parent, and so on."""
        element = self.parent
        while element is not None:
            yield element
            element = element.parent


class Xml:
    """A parsed document."""

    def __init__(self, data: bytes, location: str, prefixes: Mapping[str, str], *, doctype: bool = False) -> None:
        """Parse a document.

        Args:
            data: The document.
            location: Its name in error messages.
            prefixes: Prefixes for namespaces: an element is named "prefix:local", or "local" if the prefix is empty.
            doctype: Whether a document type without definitions is accepted.

        Raises:
            RegardError: The document is not well-formed, defines entities, or exceeds a limit.
        """
        self.location = location
        if len(data) > limits.DOCUMENT:
            raise _error(
                f"The XML has {len(data):,} bytes, more than {limits.DOCUMENT:,}", location, "Split the document."
            )
        self._encoding = _find_encoding(data, location)
        self.data = _to_utf8(data, self._encoding, location)
        if b"\0" in self.data:  # UTF-32, which expat would read as UTF-16
            raise _error("The XML has NUL bytes", location, "Save the file as UTF-8.")
        if (tags := self.data.count(b"<")) > MAX_TAGS:
            raise _error(f"The XML has {tags:,} tags, more than {MAX_TAGS:,}", location, "Split the document.")
        self.root = _Builder(self, prefixes, doctype=doctype).build()
        self._edits: list[tuple[int, int, bytes]] = []

    def parts(self, element: Element) -> "Iterator[Element | tuple[int, int, str]]":
        """Yield the children of an element and the texts between them as (start, end, text), without comments."""
        position = element.open_end
        for child in element.children:
            yield from self._texts(position, child.start)
            yield child
            position = child.end
        yield from self._texts(position, element.close_start)

    def text(self, element: Element) -> str:
        """Return the text of an element without that of its children."""
        return "".join(part[2] for part in self.parts(element) if not isinstance(part, Element))

    def _texts(self, start: int, end: int) -> Iterator[tuple[int, int, str]]:
        if start == end:
            return
        for match in _GAP.finditer(self.data, start, end):
            cdata, text = match.groups()
            if cdata is not None:
                yield *match.span(), cdata.decode().replace("\r\n", "\n")
            elif text is not None:
                yield *match.span(), self.unescape(text.decode())

    def unescape(self, text: str) -> str:
        """Replace character references.

        Raises:
            RegardError: An entity is not one of the five of XML.
        """
        text = text.replace("\r\n", "\n")
        return _REFERENCE.sub(self._resolve, text) if "&" in text else text

    def _resolve(self, match: re.Match[str]) -> str:
        hexadecimal, decimal, name = match.groups()
        if name is None:
            return chr(int(hexadecimal, 16) if hexadecimal else int(decimal))
        if name not in _ENTITIES:
            raise _error(f"The entity '&{name};' is not defined", self.location, "Replace it with its character.")
        return _ENTITIES[name]

    def edit(self, start: int, end: int, replacement: bytes) -> None:
        """Replace a range. Edits go from the end of the document to its start.

        An edit replaces those inside it: take `slice` before to keep them.
        """
        while self._edits and self._edits[-1][0] < end:
            self._edits.pop()
        self._edits.append((start, end, replacement))

    def slice(self, start: int, end: int) -> bytes:
        """Return a range of the document with the edits inside it."""
        parts, position = list[bytes](), start
        for edit_start, edit_end, replacement in reversed(self._edits):
            if edit_start >= end:
                break
            if edit_start >= start:
                parts += [self.data[position:edit_start], replacement]
                position = edit_end
        return b"".join([*parts, self.data[position:end]])

    def discard_edits(self) -> None:
        """Return to the original."""
        self._edits.clear()

    def write(self) -> bytes:
        """Return the edited document in its own encoding."""
        return self.slice(0, len(self.data)).decode().encode(self._encoding, "xmlcharrefreplace")


class _Builder:
    """Builds the elements from the events of expat."""

    def __init__(self, xml: Xml, prefixes: Mapping[str, str], *, doctype: bool) -> None:
        self.xml, self.prefixes = xml, {**prefixes, "http://www.w3.org/XML/1998/namespace": "xml"}
        self.parser = expat.ParserCreate("utf-8", " ")
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.StartDoctypeDeclHandler = self._start_doctype if doctype else self._refuse_doctype
        self.parser.EntityDeclHandler = self._refuse_definition
        self.root: Element | None = None
        self.open: Element | None = None
        self.depth = 0
        self.names: dict[str, str] = {}

    def build(self) -> Element:
        try:
            self.parser.Parse(self.xml.data, True)
        except expat.ExpatError as error:
            message = f"Not well-formed XML: {expat.ErrorString(error.code)}, line {error.lineno}"
            raise _error(message, self.xml.location, "Open the file in its program and save it again.") from error
        return cast(Element, self.root)  # a well-formed document has one

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise _error(f"Elements are nested more than {MAX_DEPTH} deep", self.xml.location, "Remove the nesting.")
        start = self.parser.CurrentByteIndex
        tag = cast(re.Match[bytes], _TAG.match(self.xml.data, start))  # expat has read it
        names = {self._name(key): value for key, value in attributes.items()} if attributes else attributes
        element = Element(self._name(name), names, self.open, start, tag.end())
        if self.open is None:
            self.root = element
        else:
            self.open.children.append(element)
        self.open = element

    def _end(self, _: str) -> None:
        element = cast(Element, self.open)  # expat checks the balance
        if self.xml.data[element.open_end - 2 : element.open_end] != b"/>":
            element.close_start = self.parser.CurrentByteIndex
            element.end = self.xml.data.index(b">", element.close_start) + 1
        self.open = element.parent
        self.depth -= 1

    def _name(self, name: str) -> str:
        short = self.names.get(name)
        if short is None:
            uri, _, local = name.rpartition(" ")
            prefix = self.prefixes.get(uri, f"{{{uri}}}") if uri else ""
            short = self.names[name] = (
                local if not prefix else prefix + local if prefix[0] == "{" else f"{prefix}:{local}"
            )
        return short

    def _start_doctype(self, _name: str, _system: str | None, _public: str | None, has_definitions: int) -> None:
        if has_definitions:
            self._refuse_doctype()

    def _refuse_doctype(self, *_: object) -> None:
        raise _error(
            "The XML has a document type with definitions", self.xml.location, "Remove the <!DOCTYPE ...> declaration."
        )

    def _refuse_definition(self, name: str, *_: object) -> None:
        raise _error(f"The XML defines an entity, '{name}'", self.xml.location, "Replace it with its text.")


def write_text(text: str) -> bytes:
    """Escape a text for XML; characters that XML does not allow are left out."""
    return escape(_ILLEGAL.sub("", text), quote=False).encode()


def write_attribute(text: str) -> bytes:
    """Escape the value of an attribute in double quotes."""
    return escape(_ILLEGAL.sub("", text)).encode()


def _find_encoding(data: bytes, location: str) -> str:
    for mark, encoding in (
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
        (codecs.BOM_UTF8, "utf-8"),
    ):
        if data.startswith(mark):
            return encoding
    match = _DECLARATION.match(data)
    encoding = match[1].decode().lower() if match else "utf-8"
    if not _ENCODINGS.fullmatch(encoding) or encoding.replace("-", "") == "utf16":
        raise _error(f"The encoding '{encoding}' is not supported", location, "Save the file as UTF-8.")
    return encoding


def _to_utf8(data: bytes, encoding: str, location: str) -> bytes:
    if encoding.replace("-", "") == "utf8":
        return data  # expat checks it
    try:
        text = data.decode(encoding)
        if text.encode(encoding) == data:  # big-endian UTF-16 would come back as little-endian
            return text.encode()
    except (UnicodeError, LookupError):
        pass
    raise _error(f"The file cannot be read as {encoding}", location, "Save the file as UTF-8.")


def _error(message: str, location: str, hint: str) -> RegardError:
    return RegardError(f"{message}.", location=location, hint=hint)
