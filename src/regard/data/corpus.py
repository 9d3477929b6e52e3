"""A corpus: named sources with weights and languages, and checksums of their files.

>>> from regard.config.sources import LinesConfig
>>> news = LinesConfig(source="news.en", target="news.de", weight=2.0)
>>> corpus = Corpus([news, LinesConfig(source="talks.en", name="talks")])
>>> corpus.names, corpus.weights
(('news.en', 'talks'), (2.0, 1.0))
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from regard.base.errors import RegardError
from regard.config.sources import AnySourceConfig, AudioConfig, ImagesConfig
from regard.data.example import CorpusError, Defects, Example, FileInfo
from regard.data.readers import read
from regard.data.readers.audio import list_audio_files
from regard.data.readers.detect import detect_source
from regard.data.readers.images import list_image_files
from regard.data.readers.text_files import is_url, list_files, open_binary, read_chunk

__all__ = ["Corpus", "FileInfo", "detect_source"]


class Corpus:
    """The sources of a corpus, in the order of the settings; a source is known by its index."""

    def __init__(self, sources: Sequence[AnySourceConfig]) -> None:
        self.sources = tuple(sources)
        self.names = _unique_names(self.sources)
        self.weights = tuple(source.weight for source in self.sources)

    def examples(self, defects: Defects) -> Iterator[tuple[int, Example]]:
        """Yield every example once, source after source, with the index of its source."""
        for index, source in enumerate(self.sources):
            for example in read(source, defects):
                yield index, example

    def list_files(self) -> list[str]:
        """List the path of every file; folders are expanded."""
        return [file for source in self.sources for file in _list_source_files(source)]

    def hash_files(self, computed: Mapping[str, FileInfo] | None = None) -> dict[str, FileInfo]:
        """Return size and sha256 of every file by path; files in `computed` are not read again.

        Raises:
            CorpusError: If a path is not a regular file (a pipe, a device): training reads a corpus more than once.
        """
        computed = computed or {}
        files = self.list_files()
        for file in files:
            _check_regular(file)
        return {file: computed[file] if file in computed else _hash_file(file) for file in files}

    def check_regular_files(self) -> None:
        """Raise CorpusError if a path is a pipe or a device, because those cannot be read twice."""
        for file in self.list_files():
            _check_regular(file)

    def check_unchanged(self, earlier_infos: Mapping[str, Sequence[int | str]]) -> None:
        """Raise CorpusError, naming every difference, unless the files match an earlier `hash_files()`."""
        current_infos = self.hash_files()
        changes = dict.fromkeys(current_infos.keys() - earlier_infos.keys(), "is new")
        changes |= dict.fromkeys(earlier_infos.keys() - current_infos.keys(), "is gone")
        for path in current_infos.keys() & earlier_infos.keys():
            if tuple(earlier_infos[path]) != tuple(current_infos[path]):
                sizes = f"{earlier_infos[path][0]} bytes before, {current_infos[path].bytes} now"
                changes[path] = f"has different content ({sizes})"
        if changes:
            description = "; ".join(f"{path} {change}" for path, change in sorted(changes.items()))
            hint = "Restore the old files, or prepare the corpus again."
            raise CorpusError(f"The corpus changed: {description}.", location=min(changes), hint=hint)


def _list_source_files(source: AnySourceConfig) -> list[str]:
    if isinstance(source, AudioConfig):
        return list_audio_files(source, Defects())
    if isinstance(source, ImagesConfig):
        return list_image_files(source, Defects())
    # The reader counts the files that it ignores.
    return [file for path in source.paths for file in list_files(path, Defects())]


def _check_regular(path: str) -> None:
    if not is_url(path) and Path(path).exists() and not Path(path).is_file():
        message = "This is not a regular file. A corpus is read more than once."
        raise CorpusError(message, location=path, hint="Write the text into a file first.")


def _hash_file(path: str) -> FileInfo:
    defects = Defects(hash_files=True)
    with open_binary(path) as file:
        for _ in defects.hash_chunks(iter(lambda: read_chunk(file, path), b""), path):
            pass
    return defects.file_infos[path]


def _unique_names(sources: Sequence[AnySourceConfig]) -> tuple[str, ...]:
    """Return the name of each source, by default its path; a path that occurs again gets a number: "a.en (2)"."""
    names: list[str] = []
    for source in sources:
        name = source.name or source.paths[0]
        if name in names and source.name:
            raise RegardError(f"Two sources have the name '{name}'.", hint="Give each source its own name.")
        n_same = sum(existing == name or existing.startswith(f"{name} (") for existing in names)
        names.append(f"{name} ({n_same + 1})" if n_same else name)
    return tuple(names)
