"""Corpus statistics."""

from regard.data.doctor.statistics import describe
from tests.data.doctor.factories import make_lengths


def test_statistics_count_every_line_once() -> None:
    source, target = make_lengths(3000)
    target[0], source[1], target[2] = 0, 0, 60_000
    statistics = describe([source, target], [10, 20])
    for side, column in zip(statistics.sides, (source, target), strict=True):
        assert sum(side.lengths.counts) + side.lengths.beyond == 3000
        assert side.characters == int(column.sum())
        assert (side.min_length, side.max_length) == (column.min(), column.max())
    assert statistics.ratios is not None
    assert sum(statistics.ratios.counts) + statistics.ratios.below + statistics.ratios.beyond == 2998
