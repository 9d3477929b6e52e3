"""Leakage: lines of the training data that are also in validation or test data, where they make scores worthless."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from regard.data.doctor.places import Places
from regard.data.doctor.prints import Hashes, Prints, Rows, found_in
from regard.data.example import Example


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Data to be kept apart from the corpus: fingerprints and places, no texts."""

    prints: Prints
    places: Places

    @classmethod
    def read(cls, examples: Iterable[Example]) -> "HeldOut":
        """Take the fingerprints of all examples."""
        held = cls(Prints(lightly=True), Places())
        for example in examples:
            held.prints.add(example)
            held.places.add(example.where)
        return held


@dataclass(frozen=True, slots=True)
class Leak:
    """How many lines of `held_out` are also in `corpus`: by source, by target, and as a pair."""

    corpus: str
    held_out: str
    lines: int
    sources: int
    targets: int
    pairs: int


def between(name: str, ours: Prints, other: str, theirs: Prints) -> Leak:
    """Count the lines that two corpora share, apart from case and spacing."""
    counts = [
        int(np.isin(held, own).sum())
        for own, held in (
            (ours.source, theirs.source),
            (_some(ours.target), _some(theirs.target)),
            (ours.pair, theirs.pair),
        )
    ]
    return Leak(name, other, len(theirs.source), *counts)


def leaks(ours: Prints, held: HeldOut, *, pairs: bool) -> Iterator[tuple[str, Rows, Rows]]:
    """Rules, the rows they speak about, and the places in the held-out data; a row is named by one rule only."""
    rows, places = found_in(ours.pair, held.prints.pair)
    yield "leaked-pair", rows, places
    said = rows
    sides = [("leaked-source", ours.source, held.prints.source), ("leaked-target", ours.target, held.prints.target)]
    for rule, own, theirs in sides[: 2 if pairs else 1]:  # a label may come again
        rows, places = found_in(own, theirs)
        new = ~np.isin(rows, said) & (own[rows] != 0)
        yield rule, rows[new], places[new]
        said = np.concatenate([said, rows])


def _some(prints: Hashes) -> Hashes:
    return prints[prints != 0]
