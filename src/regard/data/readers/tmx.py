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
from regard.data.open import MAX_LINE_BYTES, TruncatedError, count_odd_characters, list_files, read_decompressed

CODES = {"bpt", "ept", "it", "ph", "ut"}  # inside a segment: formatting of the program that made it, not text


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
        for unit in units(path, defects):
            if not source.languages:
                languages = ", ".join(f'"{segment.language}"' for segment in unit.segments)
                fix = f"Say languages = [source, target]; the first unit has {languages}."
                raise CorpusError("Which languages are to be read?", where=str(unit.where), fix=fix)
            chosen = _choose(unit, source.languages, defects)
            if chosen:
                for text in chosen:
                    if not text:
                        defects.add("empty text", unit.where)
                    count_odd_characters(text, unit.where, defects)
                target = chosen[1] if len(chosen) > 1 else None
                yield Example(unit.where, chosen[0], target, languages=source.languages)


def find_language(wanted: str, offered: Sequence[str]) -> int | None:
    """Which of the offered languages is the wanted one: itself, one of its regions, or itself without the region.

    >>> find_language("en", ["DE-de", "EN-gb", "en"]), find_language("en", ["de", "en_US"])
    (2, 1)
    >>> find_language("en-GB", ["de", "en"]), find_language("en-GB", ["en-US"])
    (1, None)
    """
    want = wanted.lower().replace("_", "-")
    names = [name.lower().replace("_", "-") for name in offered]
    for suits in (
        lambda name: name == want,
        lambda name: name.startswith(f"{want}-"),
        lambda name: want.startswith(f"{name}-"),
    ):
        for index, name in enumerate(names):
            if name and suits(name):
                return index
    return None


def _choose(unit: Unit, languages: tuple[str, ...], defects: Defects) -> list[str]:
    """The texts in the wanted languages; none if the unit lacks one."""
    offered = tuple(segment.language for segment in unit.segments)
    if len(set(offered)) < len(offered):
        defects.add("language twice in a unit, first one read", unit.where)
    places = _places(languages, offered)
    if len(places) < len(languages):
        defects.add(f"unit without {languages[len(places)]} left out", unit.where)
        return []
    return [unit.segments[place].text for place in places]


@lru_cache(maxsize=1024)  # most units of a file have the same languages
def _places(languages: tuple[str, ...], offered: tuple[str, ...]) -> list[int]:
    """Where each wanted language stands, up to the first that is missing."""
    places: list[int] = []
    for language in languages:
        # one segment cannot stand for two wanted languages (en-GB and en-US, when there is only en)
        place = find_language(language, ["" if at in places else name for at, name in enumerate(offered)])
        if place is None:
            break
        places.append(place)
    return places


def units(path: str, defects: Defects) -> Iterator[Unit]:
    """The units of a file."""
    reader = _Reader(path, defects)
    try:
        for piece in read_decompressed(path):
            reader.feed(piece)
            yield from reader.done
            reader.done.clear()
        reader.feed(b"", last=True)
        yield from reader.done
    except TruncatedError as error:
        line = reader.parser.CurrentLineNumber
        raise CorpusError(error.what, where=str(Location(path, line)), fix=error.fix) from error


class _Reader:
    """Turns expat's events into units."""

    def __init__(self, path: str, defects: Defects) -> None:
        self.path = path
        self.defects = defects
        self.done: list[Unit] = []
        self.unit: Unit | None = None
        self.language = ""
        self.text: list[str] | None = None  # of the segment that is open
        self.size = 0
        self.root = False  # whether it was seen
        self.wide: bool | None = None  # whether the file is UTF-16
        self.codes = 0  # how many elements of CODES are open
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._characters
        self.parser.EntityDeclHandler = self._refuse_definition
        self.parser.SkippedEntityHandler = self._refuse_unknown

    def feed(self, piece: bytes, *, last: bool = False) -> None:
        self._count_returns(piece)
        try:
            self.parser.Parse(piece, last)
        except expat.ExpatError as error:
            what = f"Not well-formed XML: {expat.ErrorString(error.code)}, character {error.offset + 1} of the line."
            fix = "Is the file whole, and is its encoding what its first line says?"
            raise CorpusError(what, where=str(Location(self.path, error.lineno)), fix=fix) from error
        except (ValueError, LookupError) as error:  # an encoding that the parser does not know
            fix = "Convert the file to UTF-8, and say so in its first line."
            raise CorpusError(f"Its encoding cannot be read: {error}.", where=self.path, fix=fix) from error

    def _count_returns(self, piece: bytes) -> None:
        """XML turns them into line breaks before anybody can see them; in UTF-16 the byte is part of other letters."""
        if self.wide is None:
            self.wide = b"\0" in piece[:4]
        if not self.wide and (times := piece.count(b"\r")):
            line = self.parser.CurrentLineNumber + piece.count(b"\n", 0, piece.index(b"\r"))
            self.defects.add("carriage return, which XML reads as a line break", Location(self.path, line), times)

    def _here(self) -> Location:
        return Location(self.path, self.parser.CurrentLineNumber)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if not self.root and name != "tmx":
            what = f"Not a translation memory: its outermost element is <{name}>."
            raise CorpusError(what, where=str(self._here()), fix="A TMX file begins with <tmx>.")
        self.root = True
        if name == "tu":
            self.unit = Unit(self._here(), [])
        elif name == "tuv":
            self.language = attributes.get("xml:lang") or attributes.get("lang") or ""
        elif name == "seg":
            self.text, self.size = [], 0
        elif self.text is not None and name in CODES:
            self.codes += 1
            self.defects.add("formatting code inside a segment left out", self._here())

    def _end(self, name: str) -> None:
        if name == "tu" and self.unit is not None:
            self.done.append(self.unit)
            self.unit = None
        elif name == "seg" and self.text is not None:
            if self.unit is not None:
                self.unit.segments.append(Segment(self.language, "".join(self.text)))
            self.text = None
        elif self.codes and name in CODES:
            self.codes -= 1

    def _characters(self, text: str) -> None:
        if self.text is not None and not self.codes:
            self.text.append(text)
            self.size += len(text)
            if self.size > MAX_LINE_BYTES:
                what = f"The segment is longer than {MAX_LINE_BYTES >> 20} MiB."
                raise CorpusError(what, where=str(self._here()), fix="Is a closing tag missing?")

    def _refuse_definition(self, name: str, *_: object) -> None:
        raise CorpusError(
            f"The file defines an entity, '{name}'.",
            where=str(self._here()),
            fix="Write the text itself: entities can make a small file fill the memory.",
        )

    def _refuse_unknown(self, name: str, *_: object) -> None:
        raise CorpusError(
            f"The entity '&{name};' is not defined in the file.",
            where=str(self._here()),
            fix="Write the character itself; nothing outside the file is read.",
        )
