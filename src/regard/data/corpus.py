"""A corpus: a mixture of named sources with weights and languages, and a fingerprint of what their files hold.

>>> from regard.config.run import Lines
>>> corpus = Corpus([Lines(source="news.en", target="news.de", weight=2.0), Lines(source="talks.en", name="talks")])
>>> corpus.names, corpus.weights
(('news.en', 'talks'), (2.0, 1.0))
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from regard.base.errors import RegardError
from regard.config.run import AnySource, Lines
from regard.data.example import CorpusError, Defects, Example
from regard.data.guess import guess
from regard.data.open import files, is_url, opened, read_piece
from regard.data.readers import read

__all__ = ["Corpus", "Facts", "guess"]


class Facts(NamedTuple):
    """What a file holds, as it is stored."""

    bytes: int
    sha256: str


class Corpus:
    """Sources in the order of the configuration; an example is known by its source and its place in it."""

    def __init__(self, sources: Sequence[AnySource]) -> None:
        self.sources = tuple(sources)
        self.names = _names(self.sources)
        self.weights = tuple(source.weight for source in self.sources)

    def examples(self, defects: Defects) -> Iterator[tuple[int, Example]]:
        """Every example once, source after source, with the index of its source."""
        for index, source in enumerate(self.sources):
            for example in read(source, defects):
                yield index, example

    def files(self) -> list[str]:
        """The path of every file."""
        return [file for source in self.sources for path in _paths(source) for file in _files(path)]

    def facts(self) -> dict[str, Facts]:
        """The size and sha256 of every file, by path."""
        return {file: _facts(file) for file in self.files()}

    def fingerprint(self) -> str:
        """One sha256 over what the files hold and how they are read; names, folders and weights may change."""
        facts, free = self.facts(), {"name", "weight", "path"}
        parts = []
        for source in self.sources:
            held = [[facts[file] for file in _files(path)] for path in _paths(source)]
            paths = {"source", "target"} if isinstance(source, Lines) else set()
            parts.append([source.model_dump(mode="json", exclude=free | paths), held])
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def check(self, before: Mapping[str, Sequence[int | str]]) -> None:
        """Refuse to go on with files that are not what they were: `before` is an earlier `facts()`."""
        now = self.facts()
        changes = dict.fromkeys(now.keys() - before.keys(), "is new")
        changes |= dict.fromkeys(before.keys() - now.keys(), "is gone")
        for path in now.keys() & before.keys():
            if tuple(before[path]) != tuple(now[path]):
                changes[path] = f"has other content ({before[path][0]} bytes before, {now[path].bytes} now)"
        if changes:
            told = "; ".join(f"{path} {change}" for path, change in sorted(changes.items()))
            fix = "Bring the old files back, or prepare the corpus anew."
            raise CorpusError(f"The corpus changed: {told}.", where=min(changes), fix=fix)


def _paths(source: AnySource) -> list[str]:
    if isinstance(source, Lines):
        return [path for path in (source.source, source.target) if path is not None]
    return [source.path]


def _files(path: str) -> list[str]:
    return files(path, Defects())  # the reader counts what is left out


def _facts(path: str) -> Facts:
    digest, size = hashlib.sha256(), 0
    if not is_url(path) and Path(path).exists() and not Path(path).is_file():
        what = "This is no plain file, and a corpus is read more than once."
        raise CorpusError(what, where=path, fix="Write the text into a file first.")
    with opened(path) as file:
        while piece := read_piece(file, path):
            digest.update(piece)
            size += len(piece)
    return Facts(size, digest.hexdigest())


def _names(sources: Sequence[AnySource]) -> tuple[str, ...]:
    """The given names, else the paths; a path that is read twice (in both directions, say) gets a number."""
    names: list[str] = []
    for source in sources:
        name = source.name or _paths(source)[0]
        if name in names and source.name:
            raise RegardError(f"Two sources are called '{name}'.", fix="Give each a name of its own.")
        times = sum(known == name or known.startswith(f"{name} (") for known in names)
        names.append(f"{name} ({times + 1})" if times else name)
    return tuple(names)
