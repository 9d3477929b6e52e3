"""Alignments against gold: by hand, and the files of the shared data."""

import gzip
from pathlib import Path

import pytest

from regard.base.errors import RegardError
from regard.measure.alignment import Gold, alignment_error, read_gold

DATA = Path(__file__).parents[3] / "shared" / "data" / "align_gold"


def read_data_lines(name: str) -> list[str]:
    if not (DATA / name).is_file():
        pytest.skip("the shared data is not here")
    return gzip.decompress((DATA / name).read_bytes()).decode().split("\n")[:-1]


def test_links_are_read() -> None:
    gold = read_gold("1-1 2p3 2-2", index_base=1)
    assert gold == Gold(frozenset({(0, 0), (1, 1)}), frozenset({(0, 0), (1, 1), (1, 2)}))
    assert gold.transposed().possible == {(0, 0), (1, 1), (2, 1)}
    assert gold.links_outside(2, 2) == {(1, 2)}
    assert gold.links_outside(1, 3) == {(1, 1), (1, 2)}
    assert gold.without(frozenset({(1, 1)})) == Gold(frozenset({(0, 0)}), frozenset({(0, 0), (1, 2)}))
    for wrong in ("0-1", "1", "1-2-3", "a-1", "1p"):
        with pytest.raises(RegardError, match=f"'{wrong}' is not a link"):
            read_gold(f"1-1 {wrong}", index_base=1)


def test_the_error_rate_by_hand() -> None:
    gold = [read_gold("0-0 1-1 2p1 2p2"), read_gold("0-1")]  # 3 sure, 2 more possible
    found = [frozenset({(0, 0), (2, 1), (0, 2)}), frozenset({(0, 1)})]  # 2 sure, 1 possible, 1 wrong
    score = alignment_error(found, gold)
    assert score.error_rate == pytest.approx(100 * (1 - (2 + 3) / (4 + 3)))
    assert score.precision == pytest.approx(75)
    assert score.recall == pytest.approx(200 / 3)
    assert (score.predicted, score.sure, score.possible) == (4, 3, 5)
    assert alignment_error([one.sure for one in gold], gold).error_rate == 0.0
    assert alignment_error([one.possible for one in gold], gold).error_rate == 0.0
    assert alignment_error([frozenset(), frozenset()], gold).error_rate == 100.0
    with pytest.raises(RegardError, match=r"alignments \(1\) .* pairs \(2\)"):
        alignment_error(found[:1], gold)
    with pytest.raises(RegardError, match="no links"):
        alignment_error([frozenset()], [read_gold("")])


def test_german_and_english_gold() -> None:
    gold = [read_gold(line) for line in read_data_lines("deen_bicici.align.gz")]
    words = [[len(line.split(" ")) for line in read_data_lines(f"deen_bicici.{side}.gz")] for side in ("de", "en")]
    assert len(gold) == len(words[0]) == len(words[1]) == 100
    outside = [alignment.links_outside(de, en) for alignment, de, en in zip(gold, *words, strict=True)]
    assert [links for links in outside if links] == [frozenset({(12, 16)})]  # a fault of the published file


def test_english_and_french_gold_has_possible_links() -> None:
    gold = [read_gold(line, index_base=1) for line in read_data_lines("enfr.gold.gz")]
    pairs = [line.split("|||") for line in read_data_lines("enfr.src-tgt.gz")]
    assert len(gold) == 447
    assert sum(len(one.sure) for one in gold) == 4038
    assert sum(len(one.possible - one.sure) for one in gold) == 13400
    assert not any(
        one.links_outside(len(en.split()), len(fr.split())) for one, (en, fr) in zip(gold, pairs, strict=True)
    )
