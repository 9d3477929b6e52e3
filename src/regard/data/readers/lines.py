"""One sentence a line; with a target, line n of both files is a pair.

Every line is an example, an empty one too: leaving it out on one side would shift all pairs after it.
"""

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import NamedTuple

from regard.config.run import Lines
from regard.data.example import CorpusError, Defects, Example, Location
from regard.data.readers.text_files import Block, count_odd_characters, iter_lines, list_files, strip_compression


def read_lines(source: Lines, defects: Defects) -> Iterator[Example]:
    """The lines of a file, or the pairs of two; folders are read file by file."""
    if source.target is None:
        for path in list_files(source.source, defects):
            yield from _read_single(path, source.languages, defects)
    else:
        for left, right in pair_files(source.source, source.target, defects):
            yield from _read_pairs(left, right, source.languages, defects)


def _read_single(path: str, languages: tuple[str, ...], defects: Defects) -> Iterator[Example]:
    for block in _read_blocks(path, defects):
        for number, text in enumerate(block.lines, block.first_line):
            yield Example(Location(path, number), text, None, None, None, languages)


def _read_pairs(left: str, right: str, languages: tuple[str, ...], defects: Defects) -> Iterator[Example]:
    for number, sources, targets in _align_blocks(left, right, defects):
        for line, (text, target) in enumerate(zip(sources, targets, strict=True), number):
            yield Example(Location(left, line), text, target, None, None, languages)


class _LinePairs(NamedTuple):
    """Lines of two files that belong together."""

    first_line: int
    sources: list[str]
    targets: list[str]


def _align_blocks(left: str, right: str, defects: Defects) -> Iterator[_LinePairs]:
    """Both files in runs of equally many lines; the blocks they come in end at different lines."""
    source_blocks = (block.lines for block in _read_blocks(left, defects))
    target_blocks = (block.lines for block in _read_blocks(right, defects))
    number, sources, targets = 1, next(source_blocks, []), next(target_blocks, [])
    while sources and targets:
        length = min(len(sources), len(targets))
        yield _LinePairs(number, sources[:length], targets[:length])
        number += length
        sources = sources[length:] or next(source_blocks, [])
        targets = targets[length:] or next(target_blocks, [])
    if sources or targets:
        remaining = len(sources) + sum(map(len, source_blocks)), len(targets) + sum(map(len, target_blocks))
        raise _unaligned_error(left, right, (number - 1 + remaining[0], number - 1 + remaining[1]), number)


def _unaligned_error(left: str, right: str, counts: tuple[int, int], number: int) -> CorpusError:
    longer, shorter = (left, right) if counts[0] > counts[1] else (right, left)
    return CorpusError(
        f"The files are not aligned: {left} has {counts[0]} lines, {right} has {counts[1]}. "
        f"Line {number} of {longer} has no partner.",
        where=str(Location(shorter, number)),
        fix="A line was lost or split on the way, perhaps long before the end: compare both with the originals.",
    )


def _read_blocks(path: str, defects: Defects) -> Iterator[Block]:
    """The blocks of a file; only those with something odd are looked at line by line."""
    for block in iter_lines(path, defects):
        if block.has_odd_characters or "" in block.lines:
            for number, text in enumerate(block.lines, block.first_line):
                if not text:
                    defects.add("empty line", Location(path, number))
                count_odd_characters(text, Location(path, number), defects)
        yield block


def pair_files(source: str, target: str, defects: Defects) -> Iterator[tuple[str, str]]:
    """Files that belong together: the two files, or those of two folders with the same names up to the language."""
    source_files, target_files = list_files(source, defects), list_files(target, defects)
    if source_files == [source] and target_files == [target]:
        yield source, target
        return
    sides = ((source_files, source), (target_files, target))
    left, right = ({_relative_path(name, top): name for name in names} for names, top in sides)
    if left.keys() != right.keys():
        left, right = (_index_by_key(names, top) for names, top in sides)
    if unpaired := sorted(left.keys() ^ right.keys()):
        raise CorpusError(
            f"The folders do not hold the same files: {len(source_files)} and {len(target_files)}, '{unpaired[0]}' has no partner.",
            where=f"{source} and {target}",
            fix="Name partners alike up to the language: a.en and a.de.",
        )
    yield from ((name, right[key]) for key, name in left.items())


def _index_by_key(names: list[str], folder: str) -> dict[str, str]:
    """Files by their names without language and packing; two that differ in nothing else are refused."""
    name_by_key: dict[str, str] = {}
    for name in names:
        if (existing := name_by_key.setdefault(_make_key(name, folder), name)) != name:
            raise CorpusError(
                f"'{PurePosixPath(existing).name}' and '{PurePosixPath(name).name}' are one name up to the language.",
                where=folder,
                fix="Name them apart before the last dot (train-00.en, train-01.en), or join them into one file.",
            )
    return name_by_key


def _make_key(name: str, folder: str) -> str:
    """The place of a file in its folder, without its language and packing: what partners have in common."""
    return str(strip_compression(_relative_path(name, folder)).with_suffix(""))


def _relative_path(name: str, folder: str) -> str:
    """The place of a file in its folder."""
    return str(PurePosixPath(name).relative_to(folder) if name != folder else PurePosixPath(name).name)
