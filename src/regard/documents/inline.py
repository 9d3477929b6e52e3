"""Paragraphs of XML formats: their text as a segment, their runs, links and other content as spans.

A format describes a paragraph as a list of atoms in reading order. Texts with the same style are joined, because
programs split words into runs at random places; the most frequent style of a paragraph needs no span, and every other
style becomes a pair. Content before the first and after the last word stays where it is.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from regard.documents.segment import Segment, SegmentBuilder, iter_pieces
from regard.documents.xml import Xml

AtomKind = Literal["text", "open", "close", "point", "protected"]


class Style(NamedTuple):
    """The run around a text."""

    key: bytes = b""
    """What the reader sees; styles with the same key are equal."""
    open: bytes = b""
    close: bytes = b""
    properties: bytes = b""
    """The part of `open` that describes the look."""


PLAIN = Style()


@dataclass(frozen=True)
class Atom:
    """A part of a paragraph: a text, one tag of a pair, a point, or a protected text."""

    kind: AtomKind
    start: int
    end: int
    """Its range in the document."""
    text: str = ""
    """The text, also of a protected one; line breaks and tabs are "\\n" and "\\t"."""
    style: Style = PLAIN
    parts: tuple["Atom", ...] = ()
    """The atoms that a field consists of; instead of a range."""
    opens: str = ""
    """Names the other point of a range, e.g. a bookmark, that starts here."""
    closes: str = ""
    """Names the other point of a range that ends here."""

    def markup(self, xml: Xml) -> bytes:
        """Return the atom as it is in the document, with the edits inside it."""
        if self.parts:
            return b"".join(part.markup(xml) for part in self.parts)
        return self.style.open + xml.slice(self.start, self.end) + self.style.close

    @property
    def is_blank(self) -> bool:
        """Whether the atom is a point or white space."""
        return self.kind == "point" or (self.kind == "text" and not self.text.strip())


class Paragraph:
    """A paragraph with its segment.

    Args:
        xml: The document.
        start: Where the content of the paragraph starts.
        end: Where it ends.
        atoms: The atoms of the paragraph in order; pairs are balanced.
        location: Where the paragraph is, for reports.
        write_run: Writes a text with a style.
    """

    def __init__(
        self,
        xml: Xml,
        start: int,
        end: int,
        atoms: Sequence[Atom],
        location: str,
        write_run: Callable[[Style, str], bytes],
    ) -> None:
        self.xml, self.start, self.end, self.atoms, self.write_run = xml, start, end, atoms, write_run
        self._first, self._last = trim(atoms)
        inner = atoms[self._first : self._last]
        counts = Counter[bytes]()
        styles = dict[bytes, Style]()
        for atom in inner:
            if atom.kind == "text" and not atom.is_blank:
                counts[atom.style.key] += len(atom.text)
                styles.setdefault(atom.style.key, atom.style)
        self._base = styles[counts.most_common(1)[0][0]] if counts else PLAIN
        self._markup: list[Atom | Style] = []  # by span id
        self._pair_style: dict[int, Style] = {}  # the style of all text in a pair
        self._closing: dict[int, Atom] = {}  # the closing tags by span id
        self.segment = self._build(inner, location)

    @property
    def has_words(self) -> bool:
        """Whether there is something to translate."""
        return any(character.isalpha() for character in self.segment.text)

    def render(self, translation: Segment) -> bytes:
        """Return the content of the paragraph with a translation."""
        before = b"".join(atom.markup(self.xml) for atom in self.atoms[: self._first])
        after = b"".join(atom.markup(self.xml) for atom in self.atoms[self._last :])
        parts, styles = [before, self._space(0)], [self._base]
        order = self._order_ranges([piece.id for piece in iter_pieces(translation) if piece.kind == "point"])
        for piece in iter_pieces(translation):
            if piece.kind == "text":
                parts.append(self.write_run(styles[-1], piece.text))
                continue
            markup = self._markup[piece.id]
            if piece.kind == "open":
                styles.append(markup if isinstance(markup, Style) else self._pair_style.get(piece.id, styles[-1]))
                parts.append(markup.markup(self.xml) if isinstance(markup, Atom) else b"")
            elif piece.kind == "close":
                styles.pop()
                parts.append(self._closing[piece.id].markup(self.xml) if isinstance(markup, Atom) else b"")
            else:
                point = self._markup[order.get(piece.id, piece.id)]
                parts.append(point.markup(self.xml) if isinstance(point, Atom) else b"")
        return b"".join([*parts, self._space(1), after])

    def edit(self, translation: Segment) -> None:
        """Replace the content of the paragraph, unless the translation equals it."""
        if (translation.text, translation.spans) != (self.segment.text, self.segment.spans):
            self.xml.edit(self.start, self.end, self.render(translation))

    def _space(self, side: Literal[0, 1]) -> bytes:
        """Return the white space before the first or after the last word."""
        atom = self.atoms[self._last - 1 if side else self._first]
        text = atom.text
        space = text[len(text.rstrip()) :] if side else text[: len(text) - len(text.lstrip())]
        return self.write_run(atom.style, space) if space and atom.kind == "text" else b""

    def _build(self, atoms: Sequence[Atom], location: str) -> Segment:
        """Return the segment and remember the markup of its spans."""
        builder, open_pairs = SegmentBuilder(), list[int]()
        styled = list[Style]()  # the style of each open pair, and that of the paragraph
        current = self._base  # of the last text; differs from that of the pair if a pair of a style is open
        next_styles, inner_styles = _find_next_styles(atoms), _find_inner_styles(atoms)
        for index, atom in enumerate(atoms):
            around = styled[-1] if styled else self._base
            if atom.kind == "text":
                text = atom.text
                if index == 0:
                    text = text.lstrip()
                if index == len(atoms) - 1:
                    text = text.rstrip()
                style = atom.style if text.strip() else current
                if style.key != current.key:
                    if current.key != around.key:
                        builder.close()
                    if style.key != around.key:
                        builder.open()
                        self._markup.append(style)
                    current = style
                builder.text(text)
                continue
            following = next_styles[index]
            is_inside = atom.kind in ("point", "protected") and following is not None and following.key == current.key
            if current.key != around.key and not is_inside:
                builder.close()
                current = around
            if atom.kind in ("point", "protected"):
                if atom.kind == "protected":
                    builder.protect(atom.text)
                else:
                    builder.point()
                self._markup.append(atom)
            elif atom.kind == "open":
                identifier = builder.open()
                open_pairs.append(identifier)
                self._markup.append(atom)
                if len(inner_styles[index]) == 1:
                    self._pair_style[identifier] = current = inner_styles[index][0]
                else:
                    current = around
                styled.append(current)
            else:
                builder.close()
                self._closing[open_pairs.pop()] = atom
                styled.pop()
                current = styled[-1] if styled else self._base
        if current.key != self._base.key:
            builder.close()
        return builder.build(location)

    def _order_ranges(self, points: list[int]) -> dict[int, int]:
        """Return which points change places, because a range would end before its start."""
        position = {identifier: place for place, identifier in enumerate(points)}
        starts = dict[str, int]()
        swaps = dict[int, int]()
        for identifier, markup in enumerate(self._markup):
            if isinstance(markup, Atom) and markup.opens:
                starts[markup.opens] = identifier
            elif isinstance(markup, Atom) and markup.closes in starts:
                start = starts[markup.closes]
                if start in position and identifier in position and position[start] > position[identifier]:
                    swaps |= {start: identifier, identifier: start}
        return swaps


def build_segment(source: str, atoms: Iterable[Atom], location: str) -> tuple[Segment, dict[int, tuple[str, str]]]:
    """Return a segment, and by span id its markup in the source; the text of a closing tag replaces that markup."""
    builder, markup = SegmentBuilder(), dict[int, tuple[str, str]]()
    for atom in atoms:
        raw = source[atom.start : atom.end]
        if atom.kind == "text":
            builder.text(atom.text)
        elif atom.kind == "open":
            markup[builder.open()] = raw, ""
        elif atom.kind == "close":
            span = builder.close()
            markup[span] = markup[span][0], atom.text or raw
        else:
            markup[builder.protect(atom.text) if atom.kind == "protected" else builder.point()] = raw, ""
    return builder.build(location), markup


def balance(atoms: Sequence[tuple[Atom, str]]) -> list[Atom]:
    """Make points of tags that have no partner, or overlap another pair. Linear time, however the tags cross.

    Args:
        atoms: Atoms with a key that both tags of a pair share. Tags with a space in it may lose their partner; the
            others are known to be nested.
    """
    opened, places, fixed = list[int](), dict[str, list[int]](), list[int]()  # indices, and places among them
    is_matched = set[int]()
    for index, (atom, key) in enumerate(atoms):
        if atom.kind == "open":
            places.setdefault(key, []).append(len(opened))
            if " " not in key:
                fixed.append(len(opened))
            opened.append(index)
        elif atom.kind == "close" and places.get(key):
            place = places[key][-1]
            if fixed and place < fixed[-1]:
                continue
            is_matched |= {opened[place], index}
            while len(opened) > place:
                places[atoms[opened.pop()][1]].pop()
            if fixed and fixed[-1] == place:
                fixed.pop()
    return [
        replace(atom, kind="point", style=PLAIN) if atom.kind in ("open", "close") and index not in is_matched else atom
        for index, (atom, _) in enumerate(atoms)
    ]


def trim(atoms: Sequence[Atom]) -> tuple[int, int]:
    """Return the range of the atoms between the first and the last word, without the pairs around them."""
    matches = match_tags(atoms)
    first, last = 0, len(atoms)
    while first < last:
        if atoms[first].is_blank:
            first += 1
        elif atoms[last - 1].is_blank:
            last -= 1
        elif matches.get(first) == last - 1:
            first, last = first + 1, last - 1
        else:
            break
    return first, last


def match_tags(atoms: Sequence[Atom]) -> dict[int, int]:
    """Return the index of the closing tag of each opening tag."""
    matches, opened = dict[int, int](), list[int]()
    for index, atom in enumerate(atoms):
        if atom.kind == "open":
            opened.append(index)
        elif atom.kind == "close":
            matches[opened.pop()] = index
    return matches


def _find_next_styles(atoms: Sequence[Atom]) -> list[Style | None]:
    """Return the style of the text after each atom, None if a tag is between."""
    styles, following = list[Style | None](), None
    for atom in reversed(atoms):
        styles.append(following)
        if atom.kind == "text" and atom.text.strip():
            following = atom.style
        elif atom.kind in ("open", "close"):
            following = None
    return styles[::-1]


def _find_inner_styles(atoms: Sequence[Atom]) -> dict[int, list[Style]]:
    """Return the styles in the pair that each opening tag starts: none, one, or two of several."""
    inside, opened = dict[int, list[Style]](), list[int]()
    for index, atom in enumerate(atoms):
        styles = [atom.style] if atom.kind == "text" and atom.text.strip() else []
        if atom.kind == "open":
            opened.append(index)
            inside[index] = []
        elif atom.kind == "close":
            styles = inside[opened.pop()]
        if opened:
            around = inside[opened[-1]]
            around += [style for style in styles if style.key not in {other.key for other in around}][: 2 - len(around)]
    return inside
