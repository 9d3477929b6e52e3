"""One example as it was read, where it stood, and what was wrong on the way: the words that all of `data` shares."""

from collections import Counter
from dataclasses import dataclass

from regard.base.errors import RegardError


@dataclass(frozen=True, slots=True)
class Location:
    """A place in a corpus: a file, and a line of it counted from 1 (for formats without lines, a record)."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Example:
    """A sentence, a pair, a labelled sentence, tagged words or a document."""

    where: Location
    source: str
    target: str | None = None  # the other side of a pair
    label: str | None = None  # the class of the whole
    tags: tuple[str, ...] | None = None  # one for each of the source's words, which spaces separate
    languages: tuple[str, ...] = ()  # of source and target, where they are known


class CorpusError(RegardError):
    """A corpus that cannot be read as what it says it is; `where` names file and line."""


class Defects:
    """What readers met and went on from: counted by kind, with the first place of each. Nothing passes silently.

    >>> defects = Defects()
    >>> defects.add("empty line", Location("a.en", 7))
    >>> defects.add("empty line", Location("a.en", 9))
    >>> print(defects)
    empty line: 2, first at a.en:7
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.first_location: dict[str, Location] = {}

    def add(self, kind: str, where: Location, count: int = 1) -> None:
        """Count a defect."""
        self.counts[kind] += count
        self.first_location.setdefault(kind, where)

    def __str__(self) -> str:
        return "\n".join(
            f"{kind}: {count}, first at {self.first_location[kind]}" for kind, count in self.counts.items()
        )
