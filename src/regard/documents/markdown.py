r"""Markdown: paragraphs, headings, list items and table cells are segments, their inline markup is spans.

markdown-it-py finds the blocks and parses their content. Its tokens have no offsets, so they are matched with the
source one after the other. A block where that fails is a segment with its markup as text, and its location says so.

>>> document = MarkdownFormat().read(b"# One\n\n> A **red** [house](x.md) `a_b`\n> now\n\n| a |\n|---|\n")
>>> [(segment.text, len(segment.spans), segment.location) for segment in document.segments]
[('One', 0, 'line 1'), ('A red house a_b now', 3, 'line 3'), ('a', 0, 'line 6')]
"""

import re
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise, takewhile
from typing import Any, cast

from regard.base.errors import RegardError
from regard.base.extras import import_optional
from regard.documents.format import decode_utf8
from regard.documents.html import MAX_TAGS, PAIRS, PROTECTED, read_texts
from regard.documents.inline import Atom, AtomKind, balance, build_segment, trim
from regard.documents.offsets import OffsetDocument, Slot
from regard.documents.segment import Piece, Segment, iter_pieces
from regard.documents.strings import has_words
from regard.documents.txt import join_breaks

MAX_SIZE = 1 << 22  # bytes: the parser reads about 0.5 MB per second
MAX_BLOCK = 20_000  # characters: the time of some patterns of the parser is quadratic in them
MAX_NESTING = 50
_LINE = re.compile(r"([^\r\n]*)(?:\r\n?|\n|\Z)")
_FRONT_MATTER = re.compile(r"(---|\+\+\+)[ \t]*\r?\n(?:.*?\r?\n)?\1[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_FOOTNOTE = re.compile(r"(\[\^[^\]\s]+\])")
_FOOTNOTE_START = re.compile(rf"{_FOOTNOTE.pattern}:[ \t]*")
_LEAD = re.compile(rf"{_FOOTNOTE_START.pattern}|\[[ xX]\][ \t]+|\[![A-Za-z]+\][ \t]*(?:\n|$)")  # also tasks and alerts
_COPIED = re.compile(r"\s*(?::::|\{%)")  # lines of extensions
_BREAK = re.compile(r"( *\\?\n)([ \t]*)")
_HEADING_END = re.compile(r"[ \t]+#+[ \t]*$")
_ROW_START = re.compile(r"(?:[ \t]*+(?:>|[-+*](?=[ \t])|\d{1,9}[.)](?=[ \t])))*+[ \t]*")
_CELL = re.compile(r"(?:[^|]|(?<=\\)\|)*+")
_TAG = re.compile(r"<(/?)([a-zA-Z][\w-]*)")
_ESCAPED = re.compile(
    r"\\(?=[!-/:-@\[-`{-~]|$)|[`\[\]]|(?<!\s)\*|\*(?!\s)|(?<![^\W_])_|_(?![^\W_])|~(?=~|$)|(?<=~)~|^~"
    r"|<(?=[a-zA-Z/!?]|$)|&(?=#?\w+;)"
)
_FIRST = re.compile(r"\d{1,9}(?=[.)](?:\s|$))|(?=(?:#{1,6}|[-+])(?:\s|$)|>|=+\s*$|-[-\s]*$)")  # would start a block


class MarkdownFormat:
    """Markdown with tables, strikethrough, footnotes, tasks and front matter (CommonMark and GitHub)."""

    suffixes = (".md", ".markdown")
    media_type = "text/markdown; charset=utf-8"

    def read(self, data: bytes) -> OffsetDocument:
        """Read a page."""
        mark, text = decode_utf8(data)
        if len(data) > MAX_SIZE or text.count("<") > MAX_TAGS:
            raise RegardError(
                f"The page has more than {MAX_SIZE:,} bytes or {MAX_TAGS:,} tags.",
                location="Markdown",
                hint="Split the page.",
            )
        return OffsetDocument(mark, text, _MarkdownReader(text).read())


@dataclass(frozen=True)
class MarkdownSlot(Slot):
    """A block; the range is its content with all markup."""

    before: tuple[str, str] = ("", "")
    after: tuple[str, str] = ("", "")
    """The markup around the words (of a text that is bold as a whole), and its shape."""
    prefix: str = ""
    """What every further line of the block starts with, e.g. "> "."""
    is_cell: bool = False
    references: dict[str, Any] = field(default_factory=dict)
    """The link definitions of the page."""

    def render(self, translation: Segment) -> str:
        """Return a translation; markup that Markdown cannot express at its place becomes HTML."""
        content = self._write(translation, self.markup)
        shape = [self.before[1], _shape(iter_pieces(translation)), self.after[1]]
        if _shape(_parse_again(content, self.references)).split() != " ".join(shape).split():
            html = {span: _to_html(*markup) for span, markup in self.markup.items()}
            content = self._write(translation, html)
        content = content.replace("|", "\\|") if self.is_cell else content
        return re.sub(r"\n[ \t]*", lambda _: "\n" + self.prefix, content)

    def _write(self, translation: Segment, markup: Mapping[int, tuple[str, str]]) -> str:
        parts = [self.before[0]]
        for piece in iter_pieces(translation):
            is_first = not parts[-1] or parts[-1].endswith("\n")
            if piece.kind == "text":
                text = _ESCAPED.sub(r"\\\g<0>", join_breaks(piece.text))
                if is_first:
                    text = (
                        _FIRST.sub(r"\g<0>\\", text.lstrip(), count=1) if _FIRST.match(text.lstrip()) else text.lstrip()
                    )
                parts.append(text)
                continue
            raw = markup[piece.id][piece.kind == "close"]
            if raw.startswith("[") and parts[-1].endswith("!"):
                parts[-1] = parts[-1][:-1] + "\\!"  # not an image
            parts.append(raw)
        return "".join([*parts, self.after[0]])


class _MarkdownReader:
    """Finds the segments of a page."""

    def __init__(self, text: str) -> None:
        self.text = text.replace("\0", "\ufffd")  # as the parser does
        self.lines = [match.span(1) for match in _LINE.finditer(text)]
        self.references: dict[str, Any] = {}

    def read(self) -> Iterator[Slot]:
        """Yield the segments in order."""
        env: dict[str, Any] = {}
        front = _FRONT_MATTER.match(self.text)
        blank = re.sub(r"[^\r\n]", " ", front[0]) if front else ""
        tokens = _parser().parse(blank + self.text[len(blank) :], env)
        self.references = env.get("references", {})
        for index, token in enumerate(tokens):
            if token.type == "html_block":
                yield from self._read_html(*token.map)
            elif token.type == "tr_open":
                following = (tokens[place] for place in range(index, len(tokens)))
                cells = takewhile(lambda other: other.type != "tr_close", following)
                yield from self._read_row(token.map[0], [cell.content for cell in cells if cell.type == "inline"])
            elif token.type == "inline" and tokens[index - 1].tag not in ("td", "th"):
                yield from self._read_paragraph(token.map[0], token.content)

    def _read_html(self, first: int, last: int) -> Iterator[Slot]:
        start, end = self.lines[first][0], self.lines[last - 1][1]
        if not re.search(r"^\s*>", self.text[start:end], re.MULTILINE):  # HTML in a quote is copied
            for slot in read_texts(self.text[start:end], first + 1):
                yield replace(slot, start=start + slot.start, end=start + slot.end)

    def _read_row(self, number: int, cells: Sequence[str]) -> Iterator[Slot]:
        start, end = self.lines[number]
        start += cast(re.Match[str], _ROW_START.match(self.text[start:end])).end()  # matches everywhere
        start += self.text.startswith("|", start)
        for content in cells:
            stop = start + cast(re.Match[str], _CELL.match(self.text[start:end])).end()
            raw = self.text[start:stop]
            first = start + len(raw) - len(raw.lstrip())
            is_equal = raw.strip().replace("\\|", "|") == content
            yield from self._make_slot(
                number, first, first + len(raw.strip()), content if is_equal else None, is_cell=True
            )
            start = stop + 1

    def _read_paragraph(self, first: int, content: str) -> Iterator[Slot]:
        """Yield the slots of a paragraph or heading: several, if it has footnotes or lines that are copied."""
        lines = [] if content.startswith("$$") else content.split("\n")  # no formulas
        starts = [number for number, line in enumerate(lines) if _FOOTNOTE_START.match(line) or _COPIED.match(line)]
        starts += [number + 1 for number in starts if _COPIED.match(lines[number])]
        for start, end in pairwise(sorted({0, *starts, len(lines)})):
            part = "\n".join(lines[start:end]).strip()
            lead = _LEAD.match(part)
            part, number = part[lead.end() :] if lead else part, first + start + (lead[0].count("\n") if lead else 0)
            if not _COPIED.match(part):
                yield from self._read_lines(number, part)

    def _read_lines(self, first: int, content: str) -> Iterator[Slot]:
        """Yield the slot of the content of a block, of which every line ends a line of the page."""
        parts = content.split("\n")
        bounds = self.lines[first : first + len(parts)]
        sources = [self.text[start:end].rstrip() for start, end in bounds]
        if len(parts) == 1 and not sources[0].endswith(content):
            sources[0] = _HEADING_END.sub("", sources[0])
        starts = [len(source) - len(part.strip()) for source, part in zip(sources, parts, strict=True)]
        is_equal = all(source.endswith(part.strip()) for source, part in zip(sources, parts, strict=True))
        start, end = bounds[0][0] + (starts[0] if is_equal else 0), bounds[-1][0] + len(sources[-1])
        prefix = sources[1][: starts[1]] if len(parts) > 1 else ""
        yield from self._make_slot(first, start, end, content if is_equal else None, prefix=prefix)

    def _make_slot(
        self, line: int, start: int, end: int, content: str | None, *, prefix: str = "", is_cell: bool = False
    ) -> Iterator[Slot]:
        """Yield the slot of a block with words; without its content or if that cannot be read, with markup as text."""
        raw, location = self.text[start:end], f"line {line + 1}"
        atoms = _parse(content, self.references) if content is not None and len(content) <= MAX_BLOCK else None
        if atoms is None:
            text = " ".join(raw.split())
            if has_words(text):
                yield Slot(start, end, Segment(text, location=f"{location} (markup as text)"))
            return
        if not any(atom.kind == "text" and has_words(atom.text) for atom in atoms):
            return
        content = cast(str, content)
        first, last = (0, len(atoms)) if any(atom.kind == "close" and atom.text for atom in atoms) else trim(atoms)
        segment, markup = build_segment(content, atoms[first:last], location)
        before, after = content[: atoms[first].start], content[atoms[last - 1].end :]
        yield MarkdownSlot(
            start,
            end,
            segment,
            markup,
            before=(before, _shape(atoms[:first])),
            after=(after, _shape(atoms[last:])),
            prefix=prefix,
            is_cell=is_cell,
            references=self.references,
        )


class _InlineReader:
    """Matches the tokens of a block with its content."""

    def __init__(self, content: str) -> None:
        self.content, self.position, self.is_equal = content, 0, True
        self.atoms = list[tuple[Atom, str]]()  # with the key of a pair; that of an HTML tag has a space
        self._labels = list[int]()  # where the text of each open link starts

    def read(self, tokens: Sequence[Any], base: int = 0) -> None:
        """Read tokens, of which `base` is the offset."""
        copied = ""  # the markup of a link whose text is copied
        for token in tokens:
            source, stop = token.markup or token.content, base + token.meta.get("end", 0)
            if copied:
                if token.type == "link_close":
                    text = self.content[self.position + 1 : stop - 1]
                    self._add("protected" if copied == "<" else "point", self.content[self.position : stop], text)
                    copied = ""
            elif token.type == "text":
                for number, part in enumerate(_FOOTNOTE.split(token.content)):
                    self._add("point" if number % 2 else "text", part, part)
            elif token.type == "text_special":  # an entity or an escaped character
                self._add("text", token.markup, token.content)
            elif token.type in ("softbreak", "hardbreak"):
                match = _BREAK.match(self.content, self.position)
                source = match[1] if match else "\n"
                self._add("point" if token.type == "hardbreak" else "text", source)
                self._add("text", match[2] if match else "", " ")
            elif token.type == "code_inline":
                code = re.compile(rf"{source}(?!`).*?(?<!`){source}(?!`)", re.DOTALL).match(self.content, self.position)
                self._add("protected", code[0] if code else "\0", token.content)
            elif token.type == "html_inline":
                tag = _TAG.match(source)
                is_pair = tag is not None and tag[2].lower() in PAIRS | PROTECTED and not source.endswith("/>")
                kind: AtomKind = "point" if not (tag and is_pair) else "close" if tag[1] else "open"
                self._add(kind, source, key=f"tag {tag and tag[2].lower()}")
                self._add("text", "", " " if tag and tag[2].lower() == "br" else "")
            elif token.type == "link_open":
                copied = "<" if token.markup == "autolink" else "[^" if self._starts("[^") else ""
                if not copied:
                    self._open_link("[")
            elif token.type == "link_close":
                self._close_link(stop)
            elif token.type == "image" and token.content:
                self._open_link("![")
                self.read(token.children, self.position)
                self._close_link(stop)
            elif token.type == "image":
                self._add("point", self.content[self.position : stop])
            else:  # emphasis
                self._add("open" if token.nesting > 0 else "close", source, key=token.tag)

    def _starts(self, source: str) -> bool:
        return self.content.startswith(source, self.position)

    def _add(self, kind: AtomKind, source: str, text: str = "", key: str = "") -> None:
        self.is_equal &= self._starts(source)
        end = self.position + len(source)
        self.atoms.append((Atom(kind, self.position, end, text), key))
        self.position = end

    def _open_link(self, source: str) -> None:
        self._add("open", source, key="link")
        self._labels.append(self.position)

    def _close_link(self, end: int) -> None:
        """Add the end of a link; if its text names its definition, the name stays when the text is translated."""
        source, label = self.content[self.position : end], self.content[self._labels.pop() : self.position]
        self._add("close", source, f"][{label}]" if source in ("]", "][]") else "", "link")


@cache
def _parser() -> Any:
    markdown_it = import_optional("markdown_it", "documents", "Translating Markdown files")
    parser = markdown_it.MarkdownIt("commonmark", {"maxNesting": MAX_NESTING})
    parser.enable(["table", "strikethrough"]).disable(["inline", "text_join"])
    for name in ("autolink", "image", "link"):
        parser.inline.ruler.at(name, _remember_end(getattr(markdown_it.rules_inline, name)))
    return parser


def _remember_end(rule: Callable[[Any, bool], bool]) -> Callable[[Any, bool], bool]:
    """Return a rule of the parser that also notes where its markup ends, in its last token."""

    def apply(state: Any, silent: bool) -> bool:
        is_found = rule(state, silent)
        if is_found and not silent:
            state.tokens[-1].meta["end"] = state.pos
        return is_found

    return apply


def _parse(content: str, references: dict[str, Any]) -> list[Atom] | None:
    """Return the atoms of the content of a block, or None if the tokens do not match it."""
    tokens, reader = list[Any](), _InlineReader(content)
    _parser().inline.parse(content, _parser(), {"references": references}, tokens)
    reader.read(tokens)
    return balance(reader.atoms) if reader.is_equal and reader.position == len(content) else None


def _parse_again(content: str, references: dict[str, Any]) -> list[Atom]:
    """Return the atoms of a written paragraph; none if it is not a paragraph."""
    tokens = _parser().parse(content, {"references": ChainMap({}, references)})
    is_paragraph = [token.type for token in tokens] == ["paragraph_open", "inline", "paragraph_close"]
    return (_parse(tokens[1].content, references) or []) if is_paragraph else []


def _shape(pieces: Iterable[Atom | Piece]) -> str:
    """Return texts and markup, without what the markup is."""
    return "".join(
        piece.text if piece.kind == "text" else f" \0{piece.kind} {piece.text * (piece.kind == 'protected')} "
        for piece in pieces
    )


def _to_html(opening: str, closing: str) -> tuple[str, str]:
    """Return emphasis and line breaks as HTML, and other markup as it is."""
    if _BREAK.fullmatch(opening):
        return "<br>", ""
    tag = {"**": "strong", "__": "strong", "*": "em", "_": "em", "~~": "del"}.get(opening)
    return (f"<{tag}>", f"</{tag}>") if tag else (opening, closing)
