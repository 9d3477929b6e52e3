"""Translation memories (TMX): units of one segment in several languages; `languages` says which two are read.

Read by expat as the file streams by, so that memory stays flat and every unit knows its line. Entities cannot be
defined (no file that grows to gigabytes when read) and nothing outside the file is ever opened.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple
from xml.parsers import expat

from regard.config.run import Tmx
from regard.data.example import CorpusError, Defects, Example, Location
from regard.data.readers.text_files import (
    MAX_LINE_BYTES,
    TruncatedError,
    count_odd_characters,
    list_files,
    read_decompressed,
)

INLINE_CODES = {"bpt", "ept", "it", "ph", "ut"}  # inside a segment: formatting of the program that made it, not text


class Segment(NamedTuple):
    """One language of a unit."""

    language: str
    text: str


class Unit(NamedTuple):
    """A <tu>: the same in several languages."""

    where: Location
    segments: list[Segment]


def read_tmx(source: Tmx, defects: Defects) -> Iterator[Example]:
    """The units that have the wanted languages; folders are read file by file."""
    for path in list_files(source.path, defects):
        for unit in read_units(path, defects):
            if not source.languages:
                languages = ", ".join(f'"{segment.language}"' for segment in unit.segments)
                fix = f"Say languages = [source, target]; the first unit has {languages}."
                raise CorpusError("Which languages are to be read?", where=str(unit.where), fix=fix)
            texts = _select_texts(unit, source.languages, defects)
            if texts:
                for text in texts:
                    if not text:
                        defects.add("empty text", unit.where)
                    count_odd_characters(text, unit.where, defects)
                target = texts[1] if len(texts) > 1 else None
                yield Example(unit.where, texts[0], target, languages=source.languages)


def find_language(language: str, candidates: Sequence[str]) -> int | None:
    """Which of the offered languages is the wanted one: itself, one of its regions, or itself without the region.

    >>> find_language("en", ["DE-de", "EN-gb", "en"]), find_language("en", ["de", "en_US"])
    (2, 1)
    >>> find_language("en-GB", ["de", "en"]), find_language("en-GB", ["en-US"])
    (1, None)
    """
    code = language.lower().replace("_", "-")
    names = [name.lower().replace("_", "-") for name in candidates]
    for is_match in (
        lambda name: name == code,
        lambda name: name.startswith(f"{code}-"),
        lambda name: code.startswith(f"{name}-"),
    ):
        for index, name in enumerate(names):
            if name and is_match(name):
                return index
    return None


def _select_texts(unit: Unit, languages: tuple[str, ...], defects: Defects) -> list[str]:
    """The texts in the wanted languages; none if the unit lacks one."""
    candidates = tuple(segment.language for segment in unit.segments)
    if len(set(candidates)) < len(candidates):
        defects.add("language twice in a unit, first one read", unit.where)
    indices = _find_segments(languages, candidates)
    if len(indices) < len(languages):
        defects.add(f"unit without {languages[len(indices)]} left out", unit.where)
        return []
    return [unit.segments[index].text for index in indices]


@lru_cache(maxsize=1024)  # most units of a file have the same languages
def _find_segments(languages: tuple[str, ...], candidates: tuple[str, ...]) -> list[int]:
    """Where each wanted language stands, up to the first that is missing."""
    indices: list[int] = []
    for language in languages:
        # one segment cannot stand for two wanted languages (en-GB and en-US, when there is only en)
        index = find_language(
            language, ["" if position in indices else name for position, name in enumerate(candidates)]
        )
        if index is None:
            break
        indices.append(index)
    return indices


def read_units(path: str, defects: Defects) -> Iterator[Unit]:
    """The units of a file."""
    reader = _UnitReader(path, defects)
    try:
        for chunk in read_decompressed(path):
            reader.feed(chunk)
            yield from reader.units
            reader.units.clear()
        reader.feed(b"", is_last=True)
        yield from reader.units
    except TruncatedError as error:
        line = reader.parser.CurrentLineNumber
        raise CorpusError(error.what, where=str(Location(path, line)), fix=error.fix) from error


class _UnitReader:
    """Turns expat's events into units."""

    def __init__(self, path: str, defects: Defects) -> None:
        self.path = path
        self.defects = defects
        self.units: list[Unit] = []
        self.unit: Unit | None = None
        self.language = ""
        self.text: list[str] | None = None  # of the segment that is open
        self.text_length = 0
        self.has_root = False  # whether it was seen
        self.is_utf16: bool | None = None  # whether the file is UTF-16
        self.open_codes = 0  # how many elements of CODES are open
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start_element
        self.parser.EndElementHandler = self._end_element
        self.parser.CharacterDataHandler = self._add_characters
        self.parser.EntityDeclHandler = self._reject_entity_definition
        self.parser.SkippedEntityHandler = self._reject_unknown_entity

    def feed(self, chunk: bytes, *, is_last: bool = False) -> None:
        self._count_carriage_returns(chunk)
        try:
            self.parser.Parse(chunk, is_last)
        except expat.ExpatError as error:
            what = f"Not well-formed XML: {expat.ErrorString(error.code)}, character {error.offset + 1} of the line."
            fix = "Is the file whole, and is its encoding what its first line says?"
            raise CorpusError(what, where=str(Location(self.path, error.lineno)), fix=fix) from error
        except (ValueError, LookupError) as error:  # an encoding that the parser does not know
            fix = "Convert the file to UTF-8, and say so in its first line."
            raise CorpusError(f"Its encoding cannot be read: {error}.", where=self.path, fix=fix) from error

    def _count_carriage_returns(self, chunk: bytes) -> None:
        """XML turns them into line breaks before anybody can see them; in UTF-16 the byte is part of other letters."""
        if self.is_utf16 is None:
            self.is_utf16 = b"\0" in chunk[:4]
        if not self.is_utf16 and (times := chunk.count(b"\r")):
            line = self.parser.CurrentLineNumber + chunk.count(b"\n", 0, chunk.index(b"\r"))
            self.defects.add("carriage return, which XML reads as a line break", Location(self.path, line), times)

    def _get_location(self) -> Location:
        return Location(self.path, self.parser.CurrentLineNumber)

    def _start_element(self, name: str, attributes: dict[str, str]) -> None:
        if not self.has_root and name != "tmx":
            what = f"Not a translation memory: its outermost element is <{name}>."
            raise CorpusError(what, where=str(self._get_location()), fix="A TMX file begins with <tmx>.")
        self.has_root = True
        if name == "tu":
            self.unit = Unit(self._get_location(), [])
        elif name == "tuv":
            self.language = attributes.get("xml:lang") or attributes.get("lang") or ""
        elif name == "seg":
            self.text, self.text_length = [], 0
        elif self.text is not None and name in INLINE_CODES:
            self.open_codes += 1
            self.defects.add("formatting code inside a segment left out", self._get_location())

    def _end_element(self, name: str) -> None:
        if name == "tu" and self.unit is not None:
            self.units.append(self.unit)
            self.unit = None
        elif name == "seg" and self.text is not None:
            if self.unit is not None:
                self.unit.segments.append(Segment(self.language, "".join(self.text)))
            self.text = None
        elif self.open_codes and name in INLINE_CODES:
            self.open_codes -= 1

    def _add_characters(self, text: str) -> None:
        if self.text is not None and not self.open_codes:
            self.text.append(text)
            self.text_length += len(text)
            if self.text_length > MAX_LINE_BYTES:
                what = f"The segment is longer than {MAX_LINE_BYTES >> 20} MiB."
                raise CorpusError(what, where=str(self._get_location()), fix="Is a closing tag missing?")

    def _reject_entity_definition(self, name: str, *_: object) -> None:
        raise CorpusError(
            f"The file defines an entity, '{name}'.",
            where=str(self._get_location()),
            fix="Write the text itself: entities can make a small file fill the memory.",
        )

    def _reject_unknown_entity(self, name: str, *_: object) -> None:
        raise CorpusError(
            f"The entity '&{name};' is not defined in the file.",
            where=str(self._get_location()),
            fix="Write the character itself; nothing outside the file is read.",
        )
