"""Statistics of a corpus, which decide the recipe."""

from collections import Counter
from pathlib import Path

import pytest

from regard.base.errors import RegardError
from regard.config.sources import DocumentsConfig, LinesConfig
from regard.data.stats import collect_stats


def test_counting(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("eins zwei\nüber eins\n", encoding="utf-8")
    (tmp_path / "b").write_text("one two\nover one\n", encoding="utf-8")
    stats = collect_stats([LinesConfig(source=str(tmp_path / "a"), target=str(tmp_path / "b"))])
    assert (stats.content, stats.examples, stats.distinct_count) == ("pairs", 2, 6)
    assert (stats.source.characters, stats.source.bytes, stats.source.max_bytes) == (18, 19, 10)
    assert stats.target.alphabet == set("one two over")
    assert (stats.labels, stats.languages) == (Counter(), ())


def test_counting_in_several_batches_gives_the_same_statistics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_text("eins zwei\n\nüber eins\n" * 5, encoding="utf-8")
    source = LinesConfig(source=str(tmp_path / "a"), languages=("de",))
    stats = collect_stats([source])
    assert (stats.examples, stats.source.alphabet, stats.languages) == (15, set("eins zweiüber"), ("de",))
    monkeypatch.setattr("regard.data.stats.BATCH_SIZE", 12)
    assert collect_stats([source]) == stats


def test_mixed_corpora_are_refused(tmp_path: Path) -> None:
    for name in ("a", "b", "book"):
        (tmp_path / name).write_text("one\ntwo\n", encoding="utf-8")
    pairs = LinesConfig(source=str(tmp_path / "a"), target=str(tmp_path / "b"))
    with pytest.raises(RegardError, match="mixes pairs of texts and running text"):
        collect_stats([pairs, DocumentsConfig(path=str(tmp_path / "book"))])


def test_binary_files_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"PK\x03\x04\x00\x00text")
    with pytest.raises(RegardError, match="not a text file"):
        collect_stats([DocumentsConfig(path=str(tmp_path / "a.txt"))])


def test_an_empty_side_is_named(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\ntwo\n", encoding="utf-8")
    (tmp_path / "b").write_text("\n\n", encoding="utf-8")
    with pytest.raises(RegardError, match="Every line of the target side is empty") as caught:
        collect_stats([LinesConfig(source=str(tmp_path / "a"), target=str(tmp_path / "b"))])
    assert caught.value.location == str(tmp_path / "b")
