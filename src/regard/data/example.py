"""The types that all of `data` shares: one example, its location, and the defects that readers count."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from regard.base.errors import RegardError
from regard.base.formatting import CompactRepr


@dataclass(slots=True, unsafe_hash=True)  # not frozen: frozen dataclasses take three times as long to create
class Location:
    """A file and a line of it, counted from 1. In formats without lines, `line` counts records."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Image:
    """An image of 8 bits per value."""

    channels: int
    height: int
    width: int
    pixels: bytes  # channel after channel, row after row

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height and width."""
        return self.channels, self.height, self.width


BYTES_PER_SAMPLE = 2


@dataclass(frozen=True, slots=True)
class AudioClip:
    """An audio clip of one channel, 16 bits per sample."""

    rate: int  # samples per second
    samples: bytes  # little-endian

    def __len__(self) -> int:
        return len(self.samples) // BYTES_PER_SAMPLE


@dataclass(slots=True, unsafe_hash=True)  # not frozen: frozen dataclasses take three times as long to create
class Example:
    """A sentence, a sentence pair, a labeled sentence, a tagged sentence, a document, an image or an audio clip."""

    location: Location
    source: str
    target: str | None = None  # the second side of a pair
    label: str | None = None  # the class of the whole text
    tags: tuple[str, ...] | None = None  # one per word of the source; spaces separate words
    languages: tuple[str, ...] = ()  # of source and target, if known
    image: Image | None = None  # replaces the source, which is empty
    audio: AudioClip | None = None  # replaces the source, which is empty

    @property
    def content(self) -> str | bytes:
        """The model's input: the source, the pixels of the image, or the samples of the audio clip."""
        if self.audio is not None:
            return self.audio.samples
        return self.source if self.image is None else self.image.pixels

    @property
    def size(self) -> int:
        """Characters of the text, values of the image, or bytes of the audio clip."""
        return len(self.content) + len(self.target or "")


class CorpusError(RegardError):
    """A corpus does not have the format that its settings declare. `location` names file and line."""


class FileInfo(NamedTuple):
    """Size and sha256 of a file as it is stored."""

    bytes: int
    sha256: str


class Defects:
    """Defects that readers tolerate, counted by kind, with the location of the first of each kind.

    Args:
        hash_files: Also record size and sha256 of every file that is read to its end, in `file_infos`. This saves
            reading the corpus once more for its checksums.

    >>> defects = Defects()
    >>> defects.add("empty line", Location("a.en", 7))
    >>> defects.add("empty line", Location("a.en", 9))
    >>> print(defects)
    empty line: 2, first at a.en:7
    """

    def __init__(self, *, hash_files: bool = False) -> None:
        self.counts: Counter[str] = Counter()
        self.first_location: dict[str, Location] = {}
        self.file_infos: dict[str, FileInfo] = {}
        self._hash_files = hash_files

    def add(self, kind: str, location: Location, count: int = 1) -> None:
        """Count a defect."""
        self.counts[kind] += count
        self.first_location.setdefault(kind, location)

    def hash_chunks(self, chunks: Iterable[bytes], path: str) -> Iterator[bytes]:
        """Pass the stored bytes of a file through; after the last chunk, record its `FileInfo` if requested."""
        if not self._hash_files:
            yield from chunks
            return
        digest, size = hashlib.sha256(), 0
        for chunk in chunks:
            digest.update(chunk)
            size += len(chunk)
            yield chunk
        self.file_infos[path] = FileInfo(size, digest.hexdigest())

    def __str__(self) -> str:
        return "\n".join(
            f"{kind}: {count}, first at {self.first_location[kind]}" for kind, count in self.counts.items()
        )


@dataclass(frozen=True, repr=False)
class SampleOutput(CompactRepr):
    """One output of the model and its reference."""

    source: str
    output: str
    reference: str
