"""Repeat a run without some of its samples: `regard train RUN --without FILE --out NEW`.

The new run has the same settings, tokenizer, initial weights, batches and number of steps. The removed samples keep
their place and contribute nothing (`regard.data.batches.tombstones`), so all differences between the two models come
from them: the weights are equal, bit by bit, until the step that first used one of them.

What was chosen from the whole corpus stays as it was: the vocabulary, the lengths of the samples, and settings.
"""

import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from regard.base.errors import RegardError
from regard.base.files import write_atomic
from regard.config.codec import RUN_FILES
from regard.config.run import RunConfig
from regard.data.corpus import Corpus
from regard.data.example import Defects, Location
from regard.store.run_folder import RunFolder

Removed = Mapping[str, Sequence[int]]


def write_replay(original: Path, out: Path, removed: Removed) -> RunConfig:
    """Write a run folder that repeats a run without some samples, ready for `regard.training.run.resume`.

    Args:
        original: The folder of the run.
        out: A new folder.
        removed: Lines of each corpus file, in addition to those that the run itself leaves out.

    Returns:
        The settings of the new run.

    Raises:
        RegardError: If the run cannot be repeated exactly.
    """
    old, new = RunFolder(original), RunFolder(out)
    if not old.run.is_file():
        raise RegardError("This is not a run folder.", location=str(original), hint="Give the folder of a run.")
    if old.extensions.is_file():
        message = "This run was trained with a loss or metrics from Python, which its folder does not contain."
        raise RegardError(message, location=str(original), hint="Train without the samples from Python.")
    if old.accepted.is_file():
        message = "The settings of this run changed when it was resumed, so its settings do not repeat it."
        raise RegardError(message, location=str(original), hint="Train it again without a change, then repeat it.")
    run = RUN_FILES.load(old.run)
    merged = merge_removed(run.data.removed, removed)
    run = RUN_FILES.change(run, {"data.removed": {file: list(lines) for file, lines in merged.items()}})
    out.mkdir(parents=True, exist_ok=True)
    for source, target in ((old.tokenizer, new.tokenizer), (old.shards, new.shards)):
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True)
    for source, target in ((old.corpus, new.corpus), (old.examples, new.examples)):
        if source.is_file():
            write_atomic(target, source.read_bytes())
    RUN_FILES.save(run, new.run)  # last: a folder without it is not a run
    return run


def merge_removed(*parts: Removed) -> dict[str, tuple[int, ...]]:
    """Join removed lines, sorted.

    >>> merge_removed({"a.en": [3]}, {"a.en": [1, 3], "b.en": [2]})
    {'a.en': (1, 3), 'b.en': (2,)}
    """
    files = dict.fromkeys(file for part in parts for file in part)
    return {file: tuple(sorted({line for part in parts for line in part.get(file, ())})) for file in files}


def count_lines(removed: Removed) -> int:
    """Return the number of removed lines."""
    return sum(map(len, removed.values()))


def read_removed(path: Path, run: RunConfig) -> dict[str, tuple[int, ...]]:
    """Read which samples to remove: lines `12` or `train.en:12`, or pairs `source<TAB>target`, one per line.

    A pair removes all its copies in the training corpus.

    Raises:
        RegardError: If a line cannot be read, or a pair is not in the corpus.
    """
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        message = "The list of samples to remove cannot be read."
        raise RegardError(message, location=str(path), hint="Give a UTF-8 text file.") from error
    corpus = Corpus(run.data.train)
    locations: list[Location] = []
    pairs: dict[tuple[str, str], int] = {}  # and the line of the list
    for number, line in enumerate(lines, 1):
        if "\t" in line:
            source, _, target = line.partition("\t")
            pairs[source.strip(), target.strip()] = number
        elif line.strip():
            locations.append(_read_location(line.strip(), corpus, Location(str(path), number)))
    if pairs:
        locations += _find_pairs(pairs, corpus, path)
    if not locations:
        raise RegardError("The list of samples to remove is empty.", location=str(path), hint="Give one per line.")
    return group_lines(locations)


def group_lines(locations: Iterable[Location]) -> dict[str, tuple[int, ...]]:
    """Group locations by file.

    >>> group_lines([Location("a.en", 3), Location("a.en", 1)])
    {'a.en': (1, 3)}
    """
    return merge_removed(*({location.file: (location.line,)} for location in locations))


def _read_location(text: str, corpus: Corpus, where: Location) -> Location:
    """Read `12` or `train.en:12`."""
    file, _, line = text.rpartition(":")
    sources = [source.paths[0] for source in corpus.sources]
    if not line.isdecimal() or int(line) < 1:
        hint = "Write a line number, FILE:LINE, or a source and its target with a tab between them."
        raise RegardError(f"Cannot read {text[:60]!r}.", location=str(where), hint=hint)
    if not file and len(sources) > 1:
        hint = f"Write the file, too: {sources[0]}:{line}."
        raise RegardError(f"The run has {len(sources)} corpora.", location=str(where), hint=hint)
    return Location(file or sources[0], int(line))


def _find_pairs(pairs: Mapping[tuple[str, str], int], corpus: Corpus, path: Path) -> list[Location]:
    """Return the locations of all copies of the pairs."""
    found: dict[tuple[str, str], list[Location]] = {pair: [] for pair in pairs}
    for _, example in corpus.examples(Defects()):
        pair = (example.source.strip(), (example.target or example.label or "").strip())
        if pair in found:
            found[pair].append(example.location)
    if missing := [pairs[pair] for pair, locations in found.items() if not locations]:
        message = f"{len(missing)} of {len(pairs)} pairs are not in the training corpus."
        hint = "Copy them from the corpus unchanged, or give their line numbers."
        raise RegardError(message, location=f"{path}:{missing[0]}", hint=hint)
    return [location for locations in found.values() for location in locations]
