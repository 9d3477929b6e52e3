import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from regard.base.errors import DamagedError, RegardError
from regard.data.shards.shard import Shards, load_shard, save_shard, split_long
from tests.data.factories import make_random_shards, make_shard


def test_round_trip_on_disk(tmp_path: Path) -> None:
    written = replace(make_shard([([1, 2], [3]), ([], [4, 5, 6])], name="x"), made_from={"text": "t"})
    sha256 = save_shard(written, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.bin", "x.idx", "x.json"]
    read = load_shard(tmp_path, "x", expected_sha256=sha256, verify=True)
    assert read.tokens.tolist() == [1, 2, 3, 4, 5, 6]
    assert read.tokens.dtype == np.uint16
    assert (read.table == written.table).all()
    assert (read.streams, read.files, read.languages) == (written.streams, written.files, written.languages)
    assert (read.made_from, read.sha256) == ({"text": "t"}, sha256)
    assert read.offsets().tolist() == [0, 3, 6]
    assert str(read.locate(1)) == "made.txt:2"


def test_pairs_of_all_shards_one_after_the_other() -> None:
    samples = [([1, 2], [3]), ([], [4, 5, 6]), ([7], [8])]
    shards = Shards([make_shard(samples[:2], name="x"), make_shard([], name="y"), make_shard(samples[2:], name="z")])
    assert list(shards.iter_pairs()) == samples


def test_an_empty_shard(tmp_path: Path) -> None:
    save_shard(make_shard([], name="x"), tmp_path)
    assert len(load_shard(tmp_path, "x", verify=True)) == 0


@pytest.mark.parametrize("suffix", ["bin", "idx", "json"])
@pytest.mark.parametrize("damage", ["flip", "cut", "remove"])
def test_damage_is_found(tmp_path: Path, suffix: str, damage: str) -> None:
    sha256 = save_shard(make_shard([([1, 2], [3]), ([7], [4, 5, 6])], name="x"), tmp_path)
    path = tmp_path / f"x.{suffix}"
    content = path.read_bytes()
    match damage:
        case "flip":
            path.write_bytes(content[:3] + bytes([content[3] ^ 4]) + content[4:])
        case "cut":
            path.write_bytes(content[:-1])
        case _:
            path.unlink()
    with pytest.raises(DamagedError):
        load_shard(tmp_path, "x", expected_sha256=sha256, verify=True)
    if damage != "flip":  # sizes are checked without reading everything
        with pytest.raises(DamagedError):
            load_shard(tmp_path, "x", expected_sha256=sha256)


def test_another_format_is_rejected(tmp_path: Path) -> None:
    save_shard(make_shard([([1], [2])], name="x"), tmp_path)
    facts = json.loads((tmp_path / "x.json").read_text())
    (tmp_path / "x.json").write_text(json.dumps(facts | {"format": 2}))
    with pytest.raises(RegardError, match="format 2"):
        load_shard(tmp_path, "x")


def test_samples_are_numbered_across_shards() -> None:
    corpus = make_random_shards([4, 0, 3], weights={"s2": 2.5})
    assert (len(corpus), corpus.counts, corpus.weights) == (7, [4, 0, 3], (1.0, 1.0, 2.5))
    assert [str(corpus.locate(number)) for number in (0, 3, 4, 6)] == [f"made.txt:{n}" for n in (1, 4, 1, 3)]


def test_the_identity_of_a_corpus_is_its_content() -> None:
    same, again = make_random_shards([4, 3]), make_random_shards([4, 3])
    assert same.identity == again.identity
    assert make_random_shards([4, 3], seed=1).identity != same.identity
    assert Shards([*same.shards[::-1]]).identity != same.identity


def test_shards_of_different_kinds_are_rejected() -> None:
    with pytest.raises(RegardError, match="but tags has source and tags"):
        Shards([make_shard([([1], [2])]), make_shard([([1], [1])], ("source", "tags"), source="tags")])
    with pytest.raises(RegardError, match="no samples"):
        Shards([])


def test_long_documents_are_split() -> None:
    text = make_shard([(list(range(10)),), ([],), ([50, 51],), (list(range(20, 28)),)], ("source",))
    pieces = split_long(text, 4)
    assert pieces.lengths.tolist() == [[4, 4, 2, 0, 2, 4, 4]]
    assert pieces.tokens.tolist() == text.tokens.tolist()
    assert [pieces.locate(number).line for number in range(len(pieces))] == [1, 1, 1, 2, 3, 4, 4]
    assert Shards([pieces]).identity not in (Shards([text]).identity, Shards([split_long(text, 5)]).identity)
    with pytest.raises(RegardError, match="Only samples with a single stream"):
        split_long(make_shard([([1], [2])]), 4)


def test_shards_of_two_tokenizers_are_rejected() -> None:
    first, second = (
        make_shard([([1], [2])], made_from={"source": "a"}),
        make_shard([([1], [2])], made_from={"source": "b"}),
    )
    with pytest.raises(RegardError, match="different tokenizers"):
        Shards([first, second])
