"""Size statistics of a corpus and histograms of its lengths, for the report."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts per bin; `below` counts values under the first edge, `beyond` values over the last."""

    edges: tuple[float, ...]
    counts: tuple[int, ...]
    below: int = 0
    beyond: int = 0


@dataclass(frozen=True, slots=True)
class SideStatistics:
    """Statistics of one side of the corpus; lengths are in characters."""

    name: str
    characters: int
    words: int
    min_length: int
    median_length: float
    max_length: int
    lengths: Histogram


@dataclass(frozen=True, slots=True)
class Statistics:
    """Statistics of a corpus of one or two sides, and of the length ratios (target over source)."""

    rows: int
    sides: tuple[SideStatistics, ...]
    ratios: Histogram | None


def describe(lengths: list[NDArray[np.uint32]], words: list[int]) -> Statistics:
    """Compute statistics of one or two sides from the length of each text and the number of words per side."""
    names = ("source", "target") if len(lengths) == 2 else ("text",)
    sides = tuple(
        _describe_side(name, column, count) for name, column, count in zip(names, lengths, words, strict=True)
    )
    return Statistics(len(lengths[0]), sides, _make_ratio_histogram(*lengths) if len(lengths) == 2 else None)


def _describe_side(name: str, lengths: NDArray[np.uint32], words: int) -> SideStatistics:
    if not len(lengths):
        return SideStatistics(name, 0, 0, 0, 0.0, 0, Histogram((0.0, 1.0), (0,)))
    step = max(1, int(np.ceil(np.quantile(lengths, 0.995) / 30)))
    for round_step in (1, 2, 5, 10, 20, 25, 50, 100, 200, 250, 500, 1000, 2500, 5000, 10_000):  # round edges
        if round_step >= step:
            step = round_step
            break
    bins = min(31, int(np.quantile(lengths, 0.995)) // step + 1)
    edges = np.arange(0, (bins + 1) * step, step)
    counts, _ = np.histogram(lengths, edges)
    histogram = Histogram(tuple(map(float, edges)), tuple(map(int, counts)), beyond=int((lengths > edges[-1]).sum()))
    total, median = int(lengths.sum(dtype=np.uint64)), float(np.median(lengths))
    return SideStatistics(name, total, words, int(lengths.min()), median, int(lengths.max()), histogram)


def _make_ratio_histogram(source: NDArray[np.uint32], target: NDArray[np.uint32]) -> Histogram:
    has_both = (source > 0) & (target > 0)
    ratios = target[has_both] / source[has_both]
    edges = np.geomspace(0.25, 4.0, 33)
    counts, _ = np.histogram(ratios, edges)
    return Histogram(
        tuple(float(edge) for edge in edges),
        tuple(map(int, counts)),
        below=int((ratios < edges[0]).sum()),
        beyond=int((ratios > edges[-1]).sum()),
    )
