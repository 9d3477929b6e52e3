"""Reader for plain text with one sentence per line; with a target file, line n of both files is a pair.

Every line is an example, even an empty one: skipping it on one side would shift all later pairs.
"""

from collections.abc import Iterator
from pathlib import PurePosixPath

from regard.base.formatting import pluralize
from regard.config.sources import LinesConfig
from regard.data.example import CorpusError, Defects, Example, Location
from regard.data.readers.text_files import Block, count_odd_characters, iter_lines, list_files, strip_compression


def read_lines(source: LinesConfig, defects: Defects) -> Iterator[Example]:
    """Read the lines of a file, or the pairs of two aligned files; folders work as well."""
    if source.target is None:
        for path in list_files(source.source, defects):
            yield from _read_single(path, source.languages, defects)
    else:
        for source_path, target_path in pair_files(source.source, source.target, defects):
            yield from _read_pairs(source_path, target_path, source.languages, defects)


def _read_single(path: str, languages: tuple[str, ...], defects: Defects) -> Iterator[Example]:
    for block in _read_blocks(path, defects):
        for number, text in enumerate(block.lines, block.first_line):
            yield Example(Location(path, number), text, None, None, None, languages)


def _read_pairs(source_path: str, target_path: str, languages: tuple[str, ...], defects: Defects) -> Iterator[Example]:
    for first_line, sources, targets in _align_blocks(source_path, target_path, defects):
        for line, (text, target) in enumerate(zip(sources, targets, strict=True), first_line):
            yield Example(Location(source_path, line), text, target, None, None, languages)


def _align_blocks(source_path: str, target_path: str, defects: Defects) -> Iterator[tuple[int, list[str], list[str]]]:
    """Yield runs of aligned lines with the number of their first line; the blocks of both files end anywhere."""
    source_blocks = (block.lines for block in _read_blocks(source_path, defects))
    target_blocks = (block.lines for block in _read_blocks(target_path, defects))
    number, sources, targets = 1, next(source_blocks, []), next(target_blocks, [])
    while sources and targets:
        length = min(len(sources), len(targets))
        yield number, sources[:length], targets[:length]
        number += length
        sources = sources[length:] or next(source_blocks, [])
        targets = targets[length:] or next(target_blocks, [])
    if sources or targets:
        remaining = len(sources) + sum(map(len, source_blocks)), len(targets) + sum(map(len, target_blocks))
        counts = number - 1 + remaining[0], number - 1 + remaining[1]
        longer, shorter = (source_path, target_path) if counts[0] > counts[1] else (target_path, source_path)
        raise CorpusError(
            f"The files are not aligned: {source_path} has {pluralize(counts[0], 'line')}, "
            f"{target_path} has {counts[1]:,}. "
            f"Line {number} of {longer} has no counterpart.",
            location=str(Location(shorter, number)),
            hint="Find the line that was lost or split: `regard check` on both files shows where they drift apart.",
        )


def _read_blocks(path: str, defects: Defects) -> Iterator[Block]:
    """Read the blocks of a file; only blocks with odd characters or empty lines are checked line by line."""
    for block in iter_lines(path, defects):
        if block.has_odd_characters or "" in block.lines:
            for number, text in enumerate(block.lines, block.first_line):
                if not text:
                    defects.add("empty line", Location(path, number))
                count_odd_characters(text, Location(path, number), defects)
        yield block


def pair_files(source: str, target: str, defects: Defects) -> Iterator[tuple[str, str]]:
    """Pair two files, or the files of two folders whose names are equal except for the language suffix."""
    source_files, target_files = list_files(source, defects), list_files(target, defects)
    if source_files == [source] and target_files == [target]:
        yield source, target
        return
    sides = ((source_files, source), (target_files, target))
    source_by_key, target_by_key = ({_relative_path(name, top): name for name in names} for names, top in sides)
    if source_by_key.keys() != target_by_key.keys():
        source_by_key, target_by_key = (_index_by_key(names, top) for names, top in sides)
    if unpaired := sorted(source_by_key.keys() ^ target_by_key.keys()):
        raise CorpusError(
            f"The folders hold different files ({len(source_files)} and {len(target_files)}): "
            f"'{unpaired[0]}' has no counterpart.",
            location=f"{source} and {target}",
            hint="Give aligned files the same name except for the language suffix: a.en and a.de.",
        )
    yield from ((name, target_by_key[key]) for key, name in source_by_key.items())


def _index_by_key(names: list[str], folder: str) -> dict[str, str]:
    """Index files by name without language and compression suffix; two files with the same key are an error."""
    name_by_key: dict[str, str] = {}
    for name in names:
        key = str(strip_compression(_relative_path(name, folder)).with_suffix(""))
        if (existing := name_by_key.setdefault(key, name)) != name:
            raise CorpusError(
                f"'{PurePosixPath(existing).name}' and '{PurePosixPath(name).name}' differ only in the suffix.",
                location=folder,
                hint="Make the names differ before the last dot (train-00.en, train-01.en), or join the files.",
            )
    return name_by_key


def _relative_path(name: str, folder: str) -> str:
    """The path of a file relative to the folder."""
    return str(PurePosixPath(name).relative_to(folder) if name != folder else PurePosixPath(name).name)
