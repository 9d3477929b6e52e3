from pathlib import Path

import pytest

from regard.base.errors import DamagedError, RegardError
from regard.base.extras import import_optional
from regard.data.batches.loader import Loader
from regard.data.batches.order import OrderSettings
from regard.data.shards.prepare import open_corpus
from regard.data.shards.remote import RemoteShards
from regard.tasks.translation.rows import TranslationRows
from tests.data.shards.factories import TOKENIZERS, run_prepare, write_corpus

SETTINGS = OrderSettings(max_tokens=400, window_size=2)
TASK = TranslationRows(TOKENIZERS.source.specials, TOKENIZERS.target.specials)
STORE = import_optional("fsspec", "formats", "Opening a URL").filesystem("memory")


def store_corpus(folder: Path, name: str) -> str:
    """Write a prepared corpus to fsspec's in-memory file system."""
    run_prepare(write_corpus(folder, 200), folder / "out", size=1500)
    for path in (folder / "out").iterdir():
        STORE.pipe_file(f"/{name}/{path.name}", path.read_bytes())
    return f"memory://{name}"


def test_remote_shards_equal_local_shards_with_a_small_cache(tmp_path: Path) -> None:
    url = store_corpus(tmp_path, "same")
    local = open_corpus(tmp_path / "out")
    sizes = [shard.tokens.nbytes for shard in local.shards]
    cache = tmp_path / "cache"
    remote = RemoteShards(url, cache, capacity=5 * max(sizes))
    assert not list(cache.glob("*.bin"))  # tokens come when they are needed
    assert remote.identity == local.identity
    assert len(sizes) > 10
    for epoch in range(2):
        pairs = zip(
            Loader(local, TASK, SETTINGS).iter_epoch(epoch),
            Loader(remote, TASK, SETTINGS).iter_epoch(epoch),
            strict=True,
        )
        for local_batch, remote_batch in pairs:
            assert local_batch.samples.equal(remote_batch.samples)
            assert local_batch.labels.equal(remote_batch.labels)
            assert sum(path.stat().st_size for path in cache.glob("*.bin")) <= 5 * max(sizes)


def test_the_next_window_is_prefetched(tmp_path: Path) -> None:
    url = store_corpus(tmp_path, "ahead")
    remote = RemoteShards(url, tmp_path / "cache")
    loader = Loader(remote, TASK, SETTINGS)
    batches = loader.order.batches(0)
    _, window, _ = next(batches)
    next(loader.iter_epoch(0))
    remote._executor.shutdown(wait=True)
    names = {path.stem for path in (tmp_path / "cache").glob("*.bin")}
    assert names == {remote.shards[number].name for number in (*window.shards, *window.next_shards)}


def test_damaged_downloads_are_detected(tmp_path: Path) -> None:
    url = store_corpus(tmp_path, "damaged")
    content = STORE.cat_file("/damaged/000-000001.bin")
    STORE.pipe_file("/damaged/000-000001.bin", content[:-1] + bytes([content[-1] ^ 1]))
    remote = RemoteShards(url, tmp_path / "cache")
    with pytest.raises(DamagedError, match="sha256 differs") as caught:
        list(Loader(remote, TASK, SETTINGS).iter_epoch())
    assert caught.value.location == "memory://damaged/000-000001.bin"
    STORE.rm_file("/damaged/000-000000.json")
    with pytest.raises(DamagedError, match="missing"):
        RemoteShards(url, tmp_path / "other")


def test_weights_of_unknown_sources_are_refused(tmp_path: Path) -> None:
    """As of local shards: the run file would say something that has no effect."""
    url = store_corpus(tmp_path, "weights")
    for load in (lambda weights: RemoteShards(url, tmp_path / "cache", weights=weights),
                 lambda weights: open_corpus(tmp_path / "out", weights)):  # fmt: skip
        with pytest.raises(RegardError, match="The shards have no source 'nowhere'"):
            load({"nowhere": 2.0})
