"""Detect leakage: lines of the corpus that also occur in validation or test data and inflate scores."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from regard.data.doctor.fingerprints import Fingerprints, Hashes, RowIndices, find_held_out
from regard.data.doctor.locations import Locations
from regard.data.example import Example


@dataclass(frozen=True, slots=True)
class HeldOutFingerprints:
    """Fingerprints and locations of held-out data, without its texts."""

    fingerprints: Fingerprints
    locations: Locations

    @classmethod
    def read(cls, examples: Iterable[Example]) -> "HeldOutFingerprints":
        """Read all examples."""
        held_out = cls(Fingerprints(should_fold=True), Locations())
        for example in examples:
            held_out.fingerprints.add(example)
            held_out.locations.add(example.location)
        return held_out


@dataclass(frozen=True, slots=True)
class Leak:
    """The numbers of lines of `held_out` that also occur in `corpus`, by source, by target and as a pair."""

    corpus: str
    held_out: str
    lines: int
    sources: int
    targets: int
    pairs: int


def count_leaks(corpus: str, fingerprints: Fingerprints, held_out: str, held_out_fingerprints: Fingerprints) -> Leak:
    """Count the lines that two corpora share, ignoring case and spacing."""
    counts = [
        int(np.isin(held_out_hashes, own_hashes).sum())
        for own_hashes, held_out_hashes in (
            (fingerprints.source, held_out_fingerprints.source),
            (_drop_missing(fingerprints.target), _drop_missing(held_out_fingerprints.target)),
            (fingerprints.pair, held_out_fingerprints.pair),
        )
    ]
    return Leak(corpus, held_out, len(held_out_fingerprints.source), *counts)


def find_leaks(
    fingerprints: Fingerprints, held_out: HeldOutFingerprints, *, has_pairs: bool
) -> Iterator[tuple[str, RowIndices, RowIndices]]:
    """Yield each leakage rule with the rows it flags and their held-out rows; one rule at most flags a row."""
    rows, held_out_rows = find_held_out(fingerprints.pair, held_out.fingerprints.pair)
    yield "leaked-pair", rows, held_out_rows
    reported = rows
    sides = [
        ("leaked-source", fingerprints.source, held_out.fingerprints.source),
        ("leaked-target", fingerprints.target, held_out.fingerprints.target),
    ]
    for rule, own_hashes, held_out_hashes in sides[: 2 if has_pairs else 1]:  # labels repeat
        rows, held_out_rows = find_held_out(own_hashes, held_out_hashes)
        is_new = ~np.isin(rows, reported) & (own_hashes[rows] != 0)
        yield rule, rows[is_new], held_out_rows[is_new]
        reported = np.concatenate([reported, rows])


def _drop_missing(hashes: Hashes) -> Hashes:
    return hashes[hashes != 0]
