"""Shards in an object store, downloaded on demand and cached on disk up to a capacity.

The lengths of all samples are downloaded first, because the order of batches depends on them. Tokens are downloaded
window by window, with the next window in the background. fsspec opens the URL (s3:// and gs:// need its extra
packages). Every file is verified by its sha256.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from regard.base.errors import DamagedError, RegardError
from regard.base.extras import import_optional
from regard.base.files import create_folder, write_atomic
from regard.base.parsing import parse_json
from regard.data.shards.open_arrays import memory_map
from regard.data.shards.prepare import CORPUS_FILE, replace_weights
from regard.data.shards.shard import SHARD_NAME, Shards, Tokens
from regard.data.shards.stored import load_shard
from regard.text.tokenizer_pair import JOINT_FILE, SOURCE_FILE, TARGET_FILE, TokenizerPair

CACHE_BYTES = 32 << 30  # default capacity of a cache folder


class RemoteFolder:
    """Reads the files of a folder under a URL."""

    def __init__(self, url: str) -> None:
        fsspec = import_optional("fsspec", "formats", "Opening a URL")
        self.url = url.rstrip("/")
        try:
            self._filesystem, self._root = fsspec.core.url_to_fs(self.url)
        except (ImportError, ValueError) as error:  # fsspec names the package that this kind of URL needs
            raise RegardError(f"The URL cannot be opened: {error}.", location=url, hint="Check the URL.") from error

    def has(self, name: str) -> bool:
        """Return whether the folder has a file of this name."""
        return bool(self._filesystem.isfile(f"{self._root}/{name}"))

    def read(self, name: str) -> bytes:
        """Read a file; raise DamagedError if it is missing."""
        try:
            return bytes(self._filesystem.cat_file(f"{self._root}/{name}"))
        except FileNotFoundError as error:
            location, hint = f"{self.url}/{name}", "Let `regard prepare` finish, then copy the whole folder."
            raise DamagedError("The file is missing.", location=location, hint=hint) from error


def download_tokenizers(url: str, folder: Path) -> TokenizerPair:
    """Load the tokenizers of a prepared corpus; on the first call download them from its URL into `folder`."""
    if not folder.is_dir():
        remote = RemoteFolder(url)
        names = [JOINT_FILE] if remote.has(JOINT_FILE) else [SOURCE_FILE, TARGET_FILE]
        with create_folder(folder) as path:
            for name in names:
                write_atomic(path / name, remote.read(name))
    return TokenizerPair.load(folder)


class RemoteShards(Shards):
    """A prepared corpus under a URL.

    Args:
        url: The folder that contains `corpus.json`.
        cache: A local folder for downloaded files; one per corpus.
        capacity: Maximum bytes of tokens in the cache. A larger window is still cached, because training needs all of
            it at once.
        weights: Weights by source name; they replace the stored ones.
    """

    def __init__(
        self, url: str, cache: Path, *, capacity: int = CACHE_BYTES, weights: Mapping[str, float] | None = None
    ) -> None:
        self._remote, self._cache, self._capacity = RemoteFolder(url), cache, capacity
        self._cached_bytes: OrderedDict[int, int] = OrderedDict()  # bytes by shard, the least recently used first
        self._pending: dict[int, Future[Path]] = {}
        self._executor = ThreadPoolExecutor(1, "prefetch")
        cache.mkdir(parents=True, exist_ok=True)
        self._shard_infos: list[dict[str, Any]] = []
        try:
            corpus = parse_json(self._remote.read(CORPUS_FILE))
            names, stored_weights = sorted(corpus["shards"]), dict(corpus["weights"])
            for name in names:
                if not SHARD_NAME.fullmatch(name):  # the downloaded file gets this name in the cache
                    raise ValueError(f"{name[:80]!r} is not a valid shard name")
                self._shard_infos.append(
                    parse_json(self._download(f"{name}.json", corpus["shards"][name]).read_bytes())
                )
                self._download(f"{name}.idx", self._shard_infos[-1]["sha256"]["idx"])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            hint = "Let `regard prepare` finish, then copy the whole folder."
            raise DamagedError(f"The corpus is damaged: {error}.", location=url, hint=hint) from error
        shards = [load_shard(cache, name, expected_sha256=corpus["shards"][name], is_local=False) for name in names]
        super().__init__(shards, replace_weights(stored_weights, weights or {}, location=url))

    def load_tokens(self, number: int) -> Tokens:
        """Return the tokens of a shard from the cache, downloading them if necessary."""
        pending = self._pending.pop(number, None)
        path = pending.result() if pending is not None else self._download_tokens(number)
        shard_info = self._shard_infos[number]
        tokens: Tokens = memory_map(path, f"<u{shard_info['width']}", sum(shard_info["tokens"].values()))
        self._cached_bytes[number] = tokens.nbytes
        self._cached_bytes.move_to_end(number)
        return tokens

    def prefetch(self, numbers: Sequence[int]) -> None:
        """Evict the least recently used shards, then download these in the background."""
        needed_bytes = sum(self._missing_bytes(number) for number in numbers)
        current_window = list(self._cached_bytes)[-len(numbers) :]
        kept_numbers = {*numbers, *current_window}
        for number in list(self._cached_bytes):
            if number not in kept_numbers and sum(self._cached_bytes.values()) + needed_bytes > self._capacity:
                del self._cached_bytes[number]
                (self._cache / f"{self.shards[number].name}.bin").unlink(missing_ok=True)
        for number in numbers:
            if number not in self._pending:
                self._pending[number] = self._executor.submit(self._download_tokens, number)

    def _missing_bytes(self, number: int) -> int:
        shard_info = self._shard_infos[number]
        return 0 if number in self._cached_bytes else int(shard_info["width"] * sum(shard_info["tokens"].values()))

    def _download_tokens(self, number: int) -> Path:
        return self._download(f"{self.shards[number].name}.bin", self._shard_infos[number]["sha256"]["bin"])

    def _download(self, name: str, sha256: str) -> Path:
        """Return the path of a file in the cache, downloading it if it is missing or its sha256 is wrong."""
        path = self._cache / name
        if path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == sha256:
            return path
        content = self._remote.read(name)
        if hashlib.sha256(content).hexdigest() != sha256:
            raise DamagedError(
                "The file has different content (sha256 differs).", location=f"{self._remote.url}/{name}"
            )
        write_atomic(path, content)
        return path
