"""One sentence a line; with a target, line n of both files is a pair.

Every line is an example, an empty one too: leaving it out on one side would shift all pairs after it.
"""

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import NamedTuple

from regard.config.run import Lines
from regard.data.example import CorpusError, Defects, Example, Location
from regard.data.open import Block, count_odd_characters, iter_lines, list_files, strip_compression


def read_lines(source: Lines, defects: Defects) -> Iterator[Example]:
    """The lines of a file, or the pairs of two; folders are read file by file."""
    if source.target is None:
        for path in list_files(source.source, defects):
            yield from _single(path, source.languages, defects)
    else:
        for left, right in partners(source.source, source.target, defects):
            yield from _pairs(left, right, source.languages, defects)


def _single(path: str, languages: tuple[str, ...], defects: Defects) -> Iterator[Example]:
    for block in _looked_at(path, defects):
        for number, text in enumerate(block.lines, block.first_line):
            yield Example(Location(path, number), text, None, None, None, languages)


def _pairs(left: str, right: str, languages: tuple[str, ...], defects: Defects) -> Iterator[Example]:
    for number, sources, targets in _side_by_side(left, right, defects):
        for line, (text, target) in enumerate(zip(sources, targets, strict=True), number):
            yield Example(Location(left, line), text, target, None, None, languages)


class _Run(NamedTuple):
    """Lines of two files that belong together."""

    first: int
    sources: list[str]
    targets: list[str]


def _side_by_side(left: str, right: str, defects: Defects) -> Iterator[_Run]:
    """Both files in runs of equally many lines; the blocks they come in end at different lines."""
    lefts = (block.lines for block in _looked_at(left, defects))
    rights = (block.lines for block in _looked_at(right, defects))
    number, sources, targets = 1, next(lefts, []), next(rights, [])
    while sources and targets:
        length = min(len(sources), len(targets))
        yield _Run(number, sources[:length], targets[:length])
        number += length
        sources = sources[length:] or next(lefts, [])
        targets = targets[length:] or next(rights, [])
    if sources or targets:
        rest = len(sources) + sum(map(len, lefts)), len(targets) + sum(map(len, rights))
        raise _unequal(left, right, (number - 1 + rest[0], number - 1 + rest[1]), number)


def _unequal(left: str, right: str, counts: tuple[int, int], number: int) -> CorpusError:
    longer, shorter = (left, right) if counts[0] > counts[1] else (right, left)
    return CorpusError(
        f"The files are not aligned: {left} has {counts[0]} lines, {right} has {counts[1]}. "
        f"Line {number} of {longer} has no partner.",
        where=str(Location(shorter, number)),
        fix="A line was lost or split on the way, perhaps long before the end: compare both with the originals.",
    )


def _looked_at(path: str, defects: Defects) -> Iterator[Block]:
    """The blocks of a file; only those with something odd are looked at line by line."""
    for block in iter_lines(path, defects):
        if block.has_odd_characters or "" in block.lines:
            for number, text in enumerate(block.lines, block.first_line):
                if not text:
                    defects.add("empty line", Location(path, number))
                count_odd_characters(text, Location(path, number), defects)
        yield block


def partners(source: str, target: str, defects: Defects) -> Iterator[tuple[str, str]]:
    """Files that belong together: the two files, or those of two folders with the same names up to the language."""
    lefts, rights = list_files(source, defects), list_files(target, defects)
    if lefts == [source] and rights == [target]:
        yield source, target
        return
    sides = ((lefts, source), (rights, target))
    left, right = ({_inside(name, top): name for name in names} for names, top in sides)
    if left.keys() != right.keys():
        left, right = (_by_key(names, top) for names, top in sides)
    if alone := sorted(left.keys() ^ right.keys()):
        raise CorpusError(
            f"The folders do not hold the same files: {len(lefts)} and {len(rights)}, '{alone[0]}' has no partner.",
            where=f"{source} and {target}",
            fix="Name partners alike up to the language: a.en and a.de.",
        )
    yield from ((name, right[key]) for key, name in left.items())


def _by_key(names: list[str], folder: str) -> dict[str, str]:
    """Files by their names without language and packing; two that differ in nothing else are refused."""
    found: dict[str, str] = {}
    for name in names:
        if (other := found.setdefault(_key(name, folder), name)) != name:
            raise CorpusError(
                f"'{PurePosixPath(other).name}' and '{PurePosixPath(name).name}' are one name up to the language.",
                where=folder,
                fix="Name them apart before the last dot (train-00.en, train-01.en), or join them into one file.",
            )
    return found


def _key(name: str, folder: str) -> str:
    """The place of a file in its folder, without its language and packing: what partners have in common."""
    return str(strip_compression(_inside(name, folder)).with_suffix(""))


def _inside(name: str, folder: str) -> str:
    """The place of a file in its folder."""
    return str(PurePosixPath(name).relative_to(folder) if name != folder else PurePosixPath(name).name)
