import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from regard.base.errors import DamagedError, RegardError
from regard.data.shards.shard import Shards
from regard.data.shards.stored import load_shard, parse_index, save_shard, write_index
from tests.data.factories import make_shard


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


def test_description_has_the_largest_id_and_length_of_each_stream(tmp_path: Path) -> None:
    save_shard(make_shard([([1, 2], [3]), ([9], [4, 5, 6])], name="x"), tmp_path)
    assert json.loads((tmp_path / "x.json").read_text())["statistics"] == {"largest": [9, 6], "longest": [2, 3]}
    shard = load_shard(tmp_path, "x")
    (tmp_path / "x.bin").unlink()
    assert (shard.largest, shard.longest) == ((9, 6), (2, 3))


def test_table_that_does_not_match_is_damaged(tmp_path: Path) -> None:
    save_shard(make_shard([([1, 2], [3]), ([7], [4, 5, 6])], name="x"), tmp_path)
    table = np.fromfile(tmp_path / "x.idx", "<u4")
    table[0] += 1
    table.tofile(tmp_path / "x.idx")
    with pytest.raises(DamagedError, match="does not match the tokens"):
        load_shard(tmp_path, "x").offsets()


def test_index_that_lists_other_shards_is_damaged(tmp_path: Path) -> None:
    hashes = {name: save_shard(make_shard([([1], [2])], name=name), tmp_path) for name in ("x", "y")}
    write_index(tmp_path, hashes)
    content = (tmp_path / "shards.jsonl").read_bytes()
    shards = parse_index(content, tmp_path, hashes, location="here")
    assert [(shard.name, shard.sha256) for shard in shards] == sorted(hashes.items())
    assert list(Shards(shards).iter_pairs()) == [([1], [2])] * 2
    for damaged in (content.split(b"\n")[0] + b"\n", content.replace(b'"y"', b'"z"'), content[:-5], b"\xff\n", b"[]\n"):
        with pytest.raises(DamagedError):
            parse_index(damaged, tmp_path, hashes, location="here")
