"""Shards in an object store: fetched as a whole when their window comes, and kept on disk as long as there is room.

Lengths are fetched at once, for planning; tokens window by window, the next window's while this one is read. Any URL
that fsspec knows will do (s3:// and gs:// need its packages). What arrives is verified by its sha256.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from regard.base.errors import DamagedError
from regard.base.extras import import_optional
from regard.base.files import write_atomic
from regard.base.parsing import parse_json
from regard.data.shards.prepare import CORPUS_FILE
from regard.data.shards.shard import SHARD_NAME, Shards, Tokens, load_shard, memory_map


class RemoteShards(Shards):
    """A prepared corpus under a URL. `capacity` bounds the bytes of tokens in the `cache` folder.

    A window that is larger than the capacity is kept whole all the same: it is what training needs at once.
    """

    def __init__(
        self, url: str, cache: Path, *, capacity: int = 32 << 30, weights: Mapping[str, float] | None = None
    ) -> None:
        fsspec = import_optional("fsspec", "formats", "Opening a URL")
        self._filesystem, self._root = fsspec.core.url_to_fs(url)
        self._url, self._cache, self._capacity = url, cache, capacity
        self._cached_bytes: OrderedDict[int, int] = OrderedDict()  # bytes by shard, the one used longest ago first
        self._pending: dict[int, Future[Path]] = {}
        self._executor = ThreadPoolExecutor(1, "prefetch")
        cache.mkdir(parents=True, exist_ok=True)
        self._shard_infos: list[dict[str, Any]] = []
        try:
            corpus = parse_json(self._read(CORPUS_FILE))
            names, stored_weights = sorted(corpus["shards"]), dict(corpus["weights"])
            for name in names:
                if not SHARD_NAME.fullmatch(name):  # what is fetched gets this name in the cache
                    raise ValueError(f"{name[:80]!r} is no name of a shard")
                self._shard_infos.append(parse_json(self._fetch(f"{name}.json", corpus["shards"][name]).read_bytes()))
                self._fetch(f"{name}.idx", self._shard_infos[-1]["sha256"]["idx"])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            what, fix = f"The corpus is damaged: {error}.", "Prepare it to the end, then copy it there."
            raise DamagedError(what, where=url, fix=fix) from error
        shards = [
            load_shard(cache, name, expected_sha256=corpus["shards"][name], without_tokens=True) for name in names
        ]
        super().__init__(shards, {**stored_weights, **(weights or {})})

    def load_tokens(self, number: int) -> Tokens:
        """The tokens of a shard: from the cache, or when they have arrived."""
        pending = self._pending.pop(number, None)
        path = pending.result() if pending is not None else self._fetch_tokens(number)
        shard_info = self._shard_infos[number]
        tokens: Tokens = memory_map(path, f"<u{shard_info['width']}", sum(shard_info["tokens"].values()))
        self._cached_bytes[number] = tokens.nbytes
        self._cached_bytes.move_to_end(number)
        return tokens

    def prefetch(self, numbers: Sequence[int]) -> None:
        """Make room by what was used longest ago, then fetch these in the background."""
        needed_bytes = sum(self._missing_bytes(number) for number in numbers)
        recent = set(numbers) | set(
            list(self._cached_bytes)[-len(numbers) :]
        )  # the next window, and the one that is read now
        for number in list(self._cached_bytes):
            if number not in recent and sum(self._cached_bytes.values()) + needed_bytes > self._capacity:
                del self._cached_bytes[number]
                (self._cache / f"{self.shards[number].name}.bin").unlink(missing_ok=True)
        for number in numbers:
            if number not in self._pending:
                self._pending[number] = self._executor.submit(self._fetch_tokens, number)

    def _missing_bytes(self, number: int) -> int:
        shard_info = self._shard_infos[number]
        return 0 if number in self._cached_bytes else int(shard_info["width"] * sum(shard_info["tokens"].values()))

    def _fetch_tokens(self, number: int) -> Path:
        return self._fetch(f"{self.shards[number].name}.bin", self._shard_infos[number]["sha256"]["bin"])

    def _fetch(self, name: str, sha256: str) -> Path:
        """The file, from the cache if it is there and what it should be."""
        path = self._cache / name
        if path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == sha256:
            return path
        content = self._read(name)
        if hashlib.sha256(content).hexdigest() != sha256:
            raise DamagedError("The file has other content (sha256 differs).", where=f"{self._url}/{name}")
        write_atomic(path, content)
        return path

    def _read(self, name: str) -> bytes:
        try:
            return bytes(self._filesystem.cat_file(f"{self._root}/{name}"))
        except FileNotFoundError as error:
            where, fix = f"{self._url}/{name}", "Prepare the corpus to the end, then copy it there."
            raise DamagedError("The file is missing.", where=where, fix=fix) from error
