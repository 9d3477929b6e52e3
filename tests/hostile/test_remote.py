"""A remote prepared corpus is untrusted as well: its names cannot leave the cache."""

import json
from pathlib import Path
from typing import Any

import pytest

from regard.base.errors import DamagedError
from regard.base.files import sha256
from regard.data.shards.prepare import CORPUS_FILE
from regard.data.shards.remote import RemoteShards
from regard.data.shards.stored import save_shard
from tests.data.factories import make_shard
from tests.hostile.doors import snapshot


@pytest.fixture
def store(tmp_path: Path) -> Path:
    pytest.importorskip("fsspec")
    folder = tmp_path / "store" / "corpus"
    folder.mkdir(parents=True)
    save_shard(make_shard([([1, 2], [3])], name="good"), folder)
    _write(folder, {"good": sha256(folder / "good.json")})
    return folder


def _write(folder: Path, shards: Any) -> None:
    (folder / CORPUS_FILE).write_text(json.dumps({"format": 1, "shards": shards, "weights": {}}))


def test_valid_corpus_is_opened(store: Path, tmp_path: Path) -> None:
    assert len(RemoteShards(store.as_uri(), tmp_path / "cache")) == 1


@pytest.mark.parametrize("name", ["../evil", "/evil", "a/b", "", "a\0b", "x" * 100_000 + "/"])
def test_names_never_lead_out_of_the_cache(store: Path, tmp_path: Path, name: str) -> None:
    (store.parent / "evil.json").write_bytes((store / "good.json").read_bytes())
    _write(store, {name: sha256(store / "good.json")})
    before = snapshot(tmp_path)
    with pytest.raises(DamagedError, match="not a valid shard name") as raised:
        RemoteShards(store.as_uri(), tmp_path / "cache")
    assert raised.value.location == store.as_uri()
    assert snapshot(tmp_path) == before | {"cache/corpus.json": sha256(store / CORPUS_FILE)}


@pytest.mark.parametrize("shards", [3, ["x"], {"good": 7}, None])
def test_invalid_corpus_is_refused(store: Path, tmp_path: Path, shards: Any) -> None:
    _write(store, shards)
    with pytest.raises(DamagedError):
        RemoteShards(store.as_uri(), tmp_path / "cache")


def test_deep_json_is_refused(store: Path, tmp_path: Path) -> None:
    (store / CORPUS_FILE).write_text("[" * 100_000)
    with pytest.raises(DamagedError, match="recursion limit"):
        RemoteShards(store.as_uri(), tmp_path / "cache")
