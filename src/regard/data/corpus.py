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
from regard.data.readers import read
from regard.data.readers.detect import detect_source
from regard.data.readers.text_files import is_url, list_files, open_binary, read_chunk

__all__ = ["Corpus", "FileInfo", "detect_source"]


class FileInfo(NamedTuple):
    """What a file holds, as it is stored."""

    bytes: int
    sha256: str


class Corpus:
    """Sources in the order of the configuration; an example is known by its source and its place in it."""

    def __init__(self, sources: Sequence[AnySource]) -> None:
        self.sources = tuple(sources)
        self.names = _unique_names(self.sources)
        self.weights = tuple(source.weight for source in self.sources)

    def examples(self, defects: Defects) -> Iterator[tuple[int, Example]]:
        """Every example once, source after source, with the index of its source."""
        for index, source in enumerate(self.sources):
            for example in read(source, defects):
                yield index, example

    def list_files(self) -> list[str]:
        """The path of every file."""
        return [file for source in self.sources for path in _source_paths(source) for file in _list_files(path)]

    def hash_files(self) -> dict[str, FileInfo]:
        """The size and sha256 of every file, by path."""
        return {file: _hash_file(file) for file in self.list_files()}

    def fingerprint(self) -> str:
        """One sha256 over what the files hold and how they are read; names, folders and weights may change."""
        infos, ignored_fields = self.hash_files(), {"name", "weight", "path"}
        parts = []
        for source in self.sources:
            contents = [[infos[file] for file in _list_files(path)] for path in _source_paths(source)]
            path_fields = {"source", "target"} if isinstance(source, Lines) else set()
            parts.append([source.model_dump(mode="json", exclude=ignored_fields | path_fields), contents])
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def check_unchanged(self, earlier_infos: Mapping[str, Sequence[int | str]]) -> None:
        """Refuse to go on with files that are not what they were: `before` is an earlier `facts()`."""
        current_infos = self.hash_files()
        changes = dict.fromkeys(current_infos.keys() - earlier_infos.keys(), "is new")
        changes |= dict.fromkeys(earlier_infos.keys() - current_infos.keys(), "is gone")
        for path in current_infos.keys() & earlier_infos.keys():
            if tuple(earlier_infos[path]) != tuple(current_infos[path]):
                changes[path] = (
                    f"has other content ({earlier_infos[path][0]} bytes before, {current_infos[path].bytes} now)"
                )
        if changes:
            description = "; ".join(f"{path} {change}" for path, change in sorted(changes.items()))
            fix = "Bring the old files back, or prepare the corpus anew."
            raise CorpusError(f"The corpus changed: {description}.", where=min(changes), fix=fix)


def _source_paths(source: AnySource) -> list[str]:
    if isinstance(source, Lines):
        return [path for path in (source.source, source.target) if path is not None]
    return [source.path]


def _list_files(path: str) -> list[str]:
    return list_files(path, Defects())  # the reader counts what is left out


def _hash_file(path: str) -> FileInfo:
    digest, size = hashlib.sha256(), 0
    if not is_url(path) and Path(path).exists() and not Path(path).is_file():
        what = "This is no plain file, and a corpus is read more than once."
        raise CorpusError(what, where=path, fix="Write the text into a file first.")
    with open_binary(path) as file:
        while piece := read_chunk(file, path):
            digest.update(piece)
            size += len(piece)
    return FileInfo(size, digest.hexdigest())


def _unique_names(sources: Sequence[AnySource]) -> tuple[str, ...]:
    """The given names, else the paths; a path that is read twice (in both directions, say) gets a number."""
    names: list[str] = []
    for source in sources:
        name = source.name or _source_paths(source)[0]
        if name in names and source.name:
            raise RegardError(f"Two sources are called '{name}'.", fix="Give each a name of its own.")
        n_same = sum(existing == name or existing.startswith(f"{name} (") for existing in names)
        names.append(f"{name} ({n_same + 1})" if n_same else name)
    return tuple(names)
