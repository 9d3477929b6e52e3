import json
import os
import signal
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.local import LocalFileSystem  # type: ignore[import-untyped]

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
FSSPEC = import_optional("fsspec", "formats", "Opening a URL")
STORE = FSSPEC.filesystem("memory")


def store_corpus(folder: Path, name: str) -> str:
    """Write a prepared corpus to fsspec's in-memory file system."""
    run_prepare(write_corpus(folder, 200), folder / "out", size=1500)
    for path in (folder / "out").iterdir():
        STORE.pipe_file(f"/{name}/{path.name}", path.read_bytes())
    return f"memory://{name}"


def test_remote_shards_equal_local_shards_with_a_small_cache(tmp_path: Path) -> None:
    url = store_corpus(tmp_path, "same")
    local = open_corpus(tmp_path / "out")
    names = ("*.bin", "*.idx", "corpus.json", "shards.jsonl")
    size = sum(path.stat().st_size for name in names for path in (tmp_path / "out").glob(name))
    cache = tmp_path / "cache"
    capacity = size * 2 // 3
    remote = RemoteShards(url, cache, capacity=capacity)
    assert not list(cache.glob("*.bin"))  # tokens come when they are needed
    assert remote.identity == local.identity
    for epoch in range(2):
        pairs = zip(
            Loader(local, TASK, SETTINGS).iter_epoch(epoch),
            Loader(remote, TASK, SETTINGS).iter_epoch(epoch),
            strict=True,
        )
        for local_batch, remote_batch in pairs:
            assert local_batch.samples.equal(remote_batch.samples)
            assert local_batch.labels.equal(remote_batch.labels)
            remote._executor.submit(lambda: None).result()  # after the requests in the background
            assert sum(path.stat().st_size for path in cache.iterdir()) <= capacity


def test_the_next_window_is_prefetched(tmp_path: Path) -> None:
    url = store_corpus(tmp_path, "ahead")
    remote = RemoteShards(url, tmp_path / "cache")
    loader = Loader(remote, TASK, SETTINGS)
    batches = loader.order.batches(0)
    _, window, _ = next(batches)
    next(loader.iter_epoch(0))
    remote._executor.shutdown(wait=True)  # the requests in the background
    names = {path.stem for path in (tmp_path / "cache").glob("*.bin")}
    assert names == {remote.shards[number].name for number in (*window.shards, *window.next_shards)}


class CountingFiles(LocalFileSystem):  # type: ignore[misc]
    """The local file system, with a log of the files that processes have read, and sometimes errors."""

    protocol = "counting"
    log: Path | None = None
    failures = 0

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **kwargs: Any) -> bytes:
        """Read a file."""
        if CountingFiles.failures:
            CountingFiles.failures -= 1
            raise OSError("503 slow down")
        time.sleep(0.005)
        content = super().cat_file(path, start, end, **kwargs)
        assert CountingFiles.log is not None
        with CountingFiles.log.open("a") as file:
            file.write(f"{os.getpid()} {Path(path).name}\n")
        return bytes(content)


FSSPEC.register_implementation("counting", CountingFiles)


@pytest.fixture
def counting_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A prepared corpus whose requests are logged in `log`."""
    run_prepare(write_corpus(tmp_path, 200), tmp_path / "out", size=1500)
    monkeypatch.setattr(CountingFiles, "log", tmp_path / "log")
    return f"counting://{tmp_path / 'out'}"


def read_log(folder: Path) -> list[str]:
    return [line.split()[1] for line in (folder / "log").read_text().splitlines()]


def read_epoch(url: str, cache: Path) -> list[int]:
    """Read an epoch as one rank does; return the samples."""
    loader = Loader(RemoteShards(url, cache, refresh=False), TASK, SETTINGS)
    return [sample for batch in loader.iter_epoch() for sample in batch.samples.tolist()]


def test_opening_reads_two_files_and_old_corpora_still_open(counting_url: str, tmp_path: Path) -> None:
    remote = RemoteShards(counting_url, tmp_path / "cache")
    assert sorted(read_log(tmp_path)) == ["corpus.json", "shards.jsonl"]
    corpus = json.loads((tmp_path / "out" / "corpus.json").read_bytes())
    del corpus["index"]  # as an earlier version wrote it
    (tmp_path / "out" / "corpus.json").write_text(json.dumps(corpus))
    (tmp_path / "out" / "shards.jsonl").unlink()
    assert RemoteShards(counting_url, tmp_path / "old").identity == remote.identity


def test_processes_with_one_cache_fetch_each_file_once(counting_url: str, tmp_path: Path) -> None:
    with ProcessPoolExecutor(2, get_context("fork")) as pool:
        samples = [pool.submit(read_epoch, counting_url, tmp_path / "cache") for _ in range(2)]
    assert samples[0].result() == samples[1].result() != []
    fetched = read_log(tmp_path)
    assert len(fetched) == len(set(fetched)) == 2 + 2 * len(list((tmp_path / "out").glob("*.bin")))


def test_a_killed_downloader_is_replaced(counting_url: str, tmp_path: Path) -> None:
    """The process that holds the lock is killed during its requests; the one that waits takes over."""
    context = get_context("fork")
    leader = context.Process(target=read_epoch, args=(counting_url, tmp_path / "cache"))
    leader.start()
    while not (tmp_path / "log").exists() or len(read_log(tmp_path)) < 6:
        time.sleep(0.001)
    with ProcessPoolExecutor(1, context) as pool:
        other = pool.submit(read_epoch, counting_url, tmp_path / "cache")
        assert leader.pid is not None
        os.kill(leader.pid, signal.SIGKILL)
        leader.join()
        assert other.result(timeout=60)
    assert not list((tmp_path / "cache").glob(".*"))


def test_failed_requests_are_repeated(counting_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.base.remote.FIRST_DELAY", 0.001)
    monkeypatch.setattr(CountingFiles, "failures", 3)
    assert len(RemoteShards(counting_url, tmp_path / "cache"))
    monkeypatch.setattr(CountingFiles, "failures", 100)
    with pytest.raises(RegardError, match="503 slow down") as caught:
        RemoteShards(counting_url, tmp_path / "cache")
    assert caught.value.location == f"{counting_url}/corpus.json"


def test_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gcsfs", None)  # as if it were not installed
    with pytest.raises(RegardError, match="gcsfs") as caught:
        RemoteShards("gs://bucket/shards", tmp_path / "cache")
    assert caught.value.hint == "pip install gcsfs"


def test_damaged_downloads_are_detected(tmp_path: Path) -> None:
    url = store_corpus(tmp_path, "damaged")
    content = STORE.cat_file("/damaged/000-000001.bin")
    STORE.pipe_file("/damaged/000-000001.bin", content[:-1] + bytes([content[-1] ^ 1]))
    remote = RemoteShards(url, tmp_path / "cache")
    with pytest.raises(DamagedError, match="sha256 differs") as caught:
        list(Loader(remote, TASK, SETTINGS).iter_epoch())
    assert caught.value.location == "memory://damaged/000-000001.bin"
    STORE.rm_file("/damaged/shards.jsonl")
    with pytest.raises(DamagedError, match="missing"):
        RemoteShards(url, tmp_path / "other")


def test_weights_of_unknown_sources_are_refused(tmp_path: Path) -> None:
    """As of local shards: the run file would say something that has no effect."""
    url = store_corpus(tmp_path, "weights")
    for load in (lambda weights: RemoteShards(url, tmp_path / "cache", weights=weights),
                 lambda weights: open_corpus(tmp_path / "out", weights)):  # fmt: skip
        with pytest.raises(RegardError, match="The shards have no source 'nowhere'"):
            load({"nowhere": 2.0})
