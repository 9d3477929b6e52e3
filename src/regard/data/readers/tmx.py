"""Reader for translation memories (TMX): each unit holds one segment in several languages.

expat parses the file as a stream, so memory use stays constant and every unit has its line number. Entity definitions
are an error (they can expand a small file to gigabytes), and no other file is opened.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple
from xml.parsers import expat

from regard.config.sources import TmxConfig
from regard.data.example import CorpusError, Defects, Example, Location
from regard.data.readers.text_files import (
    MAX_LINE_BYTES,
    TruncatedError,
    count_text_defects,
    list_files,
    read_decompressed,
)

INLINE_CODES = {"bpt", "ept", "it", "ph", "ut"}  # elements inside a segment that hold formatting, not text


class TmxSegment(NamedTuple):
    """The text of a unit in one language."""

    language: str
    text: str


class Unit(NamedTuple):
    """A translation unit (<tu>): the same text in several languages."""

    location: Location
    segments: list[TmxSegment]


def read_tmx(source: TmxConfig, defects: Defects) -> Iterator[Example]:
    """Read the units that have all of `source.languages`, from a file or every file in a folder."""
    for path in list_files(source.path, defects):
        for unit in read_units(path, defects):
            if not source.languages:
                languages = ", ".join(f'"{segment.language}"' for segment in unit.segments)
                hint = f"Set languages = [source, target]; the first unit has {languages}."
                raise CorpusError("The languages to read are not set.", location=str(unit.location), hint=hint)
            texts = _select_texts(unit, source.languages, defects)
            if texts:
                count_text_defects(texts, unit.location, defects)
                target = texts[1] if len(texts) > 1 else None
                yield Example(unit.location, texts[0], target, languages=source.languages)


def find_language(language: str, candidates: Sequence[str]) -> int | None:
    """The index of the candidate that matches a language; None if there is none.

    An exact match wins over a regional variant of the language, which wins over the language without its region.

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
    """The texts in `languages`; empty if the unit lacks one of them."""
    candidates = tuple(segment.language for segment in unit.segments)
    if len(set(candidates)) < len(candidates):
        defects.add("language twice in a unit, first segment read", unit.location)
    indices = _find_segments(languages, candidates)
    if len(indices) < len(languages):
        defects.add(f"unit without {languages[len(indices)]} left out", unit.location)
        return []
    return [unit.segments[index].text for index in indices]


@lru_cache(maxsize=1024)  # most units of a file have the same languages
def _find_segments(languages: tuple[str, ...], candidates: tuple[str, ...]) -> list[int]:
    """The segment index of each language, up to the first missing language."""
    indices: list[int] = []
    for language in languages:
        # one segment cannot match two languages (en-GB and en-US, if there is only en)
        index = find_language(
            language, ["" if position in indices else name for position, name in enumerate(candidates)]
        )
        if index is None:
            break
        indices.append(index)
    return indices


def read_units(path: str, defects: Defects) -> Iterator[Unit]:
    """Read the units of one file."""
    reader = _UnitReader(path, defects)
    try:
        for chunk in read_decompressed(path, defects):
            reader.feed(chunk)
            yield from reader.units
            reader.units.clear()
        reader.feed(b"", is_last=True)
        yield from reader.units
    except TruncatedError as error:
        line = reader.parser.CurrentLineNumber
        raise CorpusError(error.message, location=str(Location(path, line)), hint=error.hint) from error


class _UnitReader:
    """Builds units from the events of expat."""

    def __init__(self, path: str, defects: Defects) -> None:
        self.path = path
        self.defects = defects
        self.units: list[Unit] = []
        self.unit: Unit | None = None
        self.language = ""
        self.text: list[str] | None = None  # of the open segment
        self.text_length = 0
        self.has_root = False  # whether <tmx> was read
        self.is_utf16: bool | None = None
        self.open_codes = 0  # number of open elements of INLINE_CODES
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
            message = f"Not well-formed XML: {expat.ErrorString(error.code)}, character {error.offset + 1} of the line."
            hint = "Check that the file is complete and that its first line names its encoding."
            raise CorpusError(message, location=str(Location(self.path, error.lineno)), hint=hint) from error
        except (ValueError, LookupError) as error:  # an encoding that expat does not support
            hint = "Convert the file to UTF-8 and declare it in the first line."
            raise CorpusError(f"The encoding is not supported: {error}.", location=self.path, hint=hint) from error

    def _count_carriage_returns(self, chunk: bytes) -> None:
        """Count them before XML turns them into line breaks; in UTF-16 the byte is part of other characters."""
        if self.is_utf16 is None:
            self.is_utf16 = b"\0" in chunk[:4]
        if not self.is_utf16 and (times := chunk.count(b"\r")):
            line = self.parser.CurrentLineNumber + chunk.count(b"\n", 0, chunk.index(b"\r"))
            self.defects.add("carriage return, which XML reads as a line break", Location(self.path, line), times)

    def _get_location(self) -> Location:
        return Location(self.path, self.parser.CurrentLineNumber)

    def _start_element(self, name: str, attributes: dict[str, str]) -> None:
        if not self.has_root and name != "tmx":
            message = f"Not a TMX file: the root element is <{name}>."
            raise CorpusError(
                message, location=str(self._get_location()), hint="Give a file with the root element <tmx>."
            )
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
                self.unit.segments.append(TmxSegment(self.language, "".join(self.text)))
            self.text = None
        elif self.open_codes and name in INLINE_CODES:
            self.open_codes -= 1

    def _add_characters(self, text: str) -> None:
        if self.text is not None and not self.open_codes:
            self.text.append(text)
            self.text_length += len(text)
            if self.text_length > MAX_LINE_BYTES:
                message = f"The segment is longer than {MAX_LINE_BYTES >> 20} MiB."
                raise CorpusError(message, location=str(self._get_location()), hint="Look for a missing closing tag.")

    def _reject_entity_definition(self, name: str, *_: object) -> None:
        raise CorpusError(
            f"The file defines an entity, '{name}'.",
            location=str(self._get_location()),
            hint="Replace the entity with its text: entities can expand a small file until memory is full.",
        )

    def _reject_unknown_entity(self, name: str, *_: object) -> None:
        raise CorpusError(
            f"The entity '&{name};' is not defined in the file.",
            location=str(self._get_location()),
            hint="Replace the entity with its character; external definitions are not read.",
        )
