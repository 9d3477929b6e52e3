import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.base.errors import DamagedError, RegardError
from regard.data.shards import open_arrays
from regard.data.shards.open_arrays import MAX_OPEN, keep_open, memory_map
from regard.data.shards.prepare import open_corpus, write_corpus
from regard.data.shards.shard import Shards
from regard.data.shards.stored import save_shard
from tests.data.factories import make_shard

resource: Any = pytest.importorskip("resource", reason="Windows has no limit of open files")


@contextmanager
def allow_descriptors(number: int) -> Iterator[None]:
    """Allow this many open files in addition to those that are open."""
    first_free = os.open(os.devnull, os.O_RDONLY)
    os.close(first_free)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (first_free + number, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def write_shards(folder: Path, count: int) -> Shards:
    """Write a corpus of small shards; return it in memory."""
    shards = [make_shard([([number], [number, 7])], name=f"000-{number:06}") for number in range(count)]
    write_corpus(folder, {shard.name: save_shard(shard, folder) for shard in shards}, {"made": 1.0})
    return Shards(shards)


def test_corpus_with_more_shards_than_descriptors_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = write_shards(tmp_path, 2 * MAX_OPEN)
    monkeypatch.setattr(open_arrays, "raise_descriptor_limit", lambda _: False)
    with allow_descriptors(MAX_OPEN + 10):
        assert list(open_corpus(tmp_path).iter_pairs()) == list(written.iter_pairs())


def test_opening_a_corpus_maps_no_array(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = write_shards(tmp_path, 3)
    monkeypatch.setattr(open_arrays, "_map", None)
    shards = open_corpus(tmp_path)
    assert [(shard.largest, shard.longest) for shard in shards.shards] == [
        (shard.largest, shard.longest) for shard in written.shards
    ]
    with pytest.raises(TypeError):
        shards.load_tokens(0)


def test_descriptor_limit_is_raised_when_it_is_reached(tmp_path: Path) -> None:
    np.arange(3, dtype="<u2").tofile(tmp_path / "x")
    with allow_descriptors(0):
        assert memory_map(tmp_path / "x", "<u2", 3).tolist() == [0, 1, 2]


def test_failed_map_names_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.arange(3, dtype="<u2").tofile(tmp_path / "x")
    monkeypatch.setattr(open_arrays, "raise_descriptor_limit", lambda _: False)
    for number, hint in ((errno.EMFILE, "ulimit -n"), (errno.ENFILE, "fs.file-max"), (errno.ENOMEM, "max_map_count")):

        def fail(*_: object, number: int = number) -> None:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(open_arrays, "_map", fail)
        with pytest.raises(RegardError) as caught:
            memory_map(tmp_path / "x", "<u2", 3)
        assert hint in str(caught.value.hint)
    with pytest.raises(DamagedError, match="has 6 bytes, not 8"):
        memory_map(tmp_path / "x", "<u2", 4)


def test_arrays_used_last_stay_open() -> None:
    loaded: list[int] = []

    def get(number: int) -> None:
        keep_open((test_arrays_used_last_stay_open, number), lambda: (loaded.append(number), np.zeros(1))[1])  # type: ignore[func-returns-value]

    for number in range(MAX_OPEN):
        get(number)
    get(0)
    get(MAX_OPEN)  # replaces 1, which was used least recently
    get(0)
    get(1)
    assert loaded == [*range(MAX_OPEN), MAX_OPEN, 1]
