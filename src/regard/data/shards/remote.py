"""Shards in an object store, downloaded when they are used and cached on disk up to a capacity.

Opening reads `corpus.json` and `shards.jsonl`. The other files follow window by window, with the next window in the
background. Every file is verified by its sha256.

All processes that use a cache folder share its files. A process downloads only while it holds the folder's lock, so
each file is fetched once. The system releases the lock of a killed process; the next one fetches what is missing.
"""

import hashlib
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from regard.base.errors import DamagedError
from regard.base.files import create_folder, is_temporary, write_atomic
from regard.base.locks import lock_folder
from regard.base.parsing import parse_json
from regard.base.remote import REQUESTS, RemoteFolder
from regard.data.shards.prepare import CORPUS_FILE, replace_weights
from regard.data.shards.shard import SHARD_NAME, Shards
from regard.data.shards.stored import INDEX_FILE, StoredShard, parse_index, parse_shard
from regard.text.tokenizer_pair import JOINT_FILE, SOURCE_FILE, TARGET_FILE, TokenizerPair

CACHE_BYTES = 32 << 30  # default capacity of a cache folder
_HINT = "Let `regard prepare` finish, then copy the whole folder."


def has_corpus(url: str) -> bool:
    """Return whether a folder under a URL holds a prepared corpus."""
    return _has(RemoteFolder(url), CORPUS_FILE)


def download_tokenizers(url: str, folder: Path) -> TokenizerPair:
    """Load the tokenizers of a prepared corpus; on the first call download them from its URL into `folder`."""
    if not folder.is_dir():
        remote = RemoteFolder(url)
        names = [JOINT_FILE] if _has(remote, JOINT_FILE) else [SOURCE_FILE, TARGET_FILE]
        with create_folder(folder) as path:
            for name in names:
                write_atomic(path / name, _read(remote, name))
    return TokenizerPair.load(folder)


class ShardCache:
    """A local folder with the files of a remote one; several processes may use it.

    Args:
        remote: Where the files come from.
        folder: The local folder; one per corpus.
        capacity: Maximum bytes of files that are kept.
    """

    def __init__(self, remote: RemoteFolder, folder: Path, capacity: int) -> None:
        self.remote, self.folder, self._capacity = remote, folder, capacity
        self.kept: Collection[str] = ()  # files that are not removed to make room
        self._intact = set[str]()  # the files whose sha256 this process has seen
        folder.mkdir(parents=True, exist_ok=True)

    def read(self, name: str, sha256: str | None = None, *, refresh: bool = False) -> bytes:
        """Return the content of a file, downloading it if it is missing, changed, or to be refreshed."""
        path = self.folder / name
        if sha256 is not None:
            self.fetch({name: sha256})
        else:
            with lock_folder(self.folder, wait=True):
                if refresh or not path.is_file():
                    write_atomic(path, _read(self.remote, name))
        return path.read_bytes()

    def fetch(self, files: Mapping[str, str]) -> None:
        """Download the files (sha256 by name) that are missing or changed, several at a time."""
        if not self._find_missing(files):
            return
        with lock_folder(self.folder, wait=True), ThreadPoolExecutor(REQUESTS) as executor:
            missing = self._find_missing(files)  # another process may have fetched them while this one waited
            list(executor.map(self._download, missing, map(files.__getitem__, missing)))
            self._make_room({*files, *self.kept, CORPUS_FILE, INDEX_FILE})

    def _find_missing(self, files: Mapping[str, str]) -> list[str]:
        return [name for name, sha256 in files.items() if not self._has(name, sha256)]

    def _has(self, name: str, sha256: str) -> bool:
        path = self.folder / name
        try:
            if name not in self._intact and hashlib.sha256(path.read_bytes()).hexdigest() == sha256:
                self._intact.add(name)
            return name in self._intact and path.is_file()
        except FileNotFoundError:
            return False

    def _make_room(self, keep: set[str]) -> None:
        """Remove the oldest files while the cache is larger than its capacity, and what killed processes left."""
        files = [(path.stat(), path) for path in self.folder.iterdir()]
        total = sum(status.st_size for status, _ in files)
        for status, path in sorted(files, key=lambda file: file[0].st_mtime_ns):
            if is_temporary(path) or (total > self._capacity and path.name not in keep):
                path.unlink(missing_ok=True)
                total -= status.st_size

    def _download(self, name: str, sha256: str) -> None:
        content = _read(self.remote, name)
        if hashlib.sha256(content).hexdigest() != sha256:
            message = "The file has different content (sha256 differs)."
            raise DamagedError(message, location=f"{self.remote.url}/{name}", hint=_HINT)
        write_atomic(self.folder / name, content)
        self._intact.add(name)


class RemoteShards(Shards):
    """A prepared corpus under a URL.

    Args:
        url: The folder that contains `corpus.json`.
        folder: A local folder for downloaded files; one per corpus.
        capacity: Maximum bytes in this folder. Two windows are kept in any case, because training needs them.
        weights: Weights by source name; they replace the stored ones.
        refresh: Download `corpus.json` even if the folder has it.
    """

    def __init__(
        self,
        url: str,
        folder: Path,
        *,
        capacity: int = CACHE_BYTES,
        weights: Mapping[str, float] | None = None,
        refresh: bool = True,
    ) -> None:
        self._cache = ShardCache(RemoteFolder(url), folder, capacity)
        self._executor = ThreadPoolExecutor(1, "prefetch")
        self._windows = deque[dict[str, str]](maxlen=2)  # files of the current window and the next
        try:
            corpus = parse_json(self._cache.read(CORPUS_FILE, refresh=refresh))
            stored_weights, digests = dict(corpus["weights"]), dict(corpus["shards"])
            for name, digest in digests.items():
                if not SHARD_NAME.fullmatch(name):  # the downloaded file gets this name in the cache
                    raise ValueError(f"{name[:80]!r} is not a valid shard name")
                if not isinstance(digest, str):
                    raise TypeError(f"{name[:80]!r} has no sha256")
            shards = self._read_shards(digests, corpus.get("index"))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DamagedError(f"The corpus is damaged: {error}.", location=url, hint=_HINT) from error
        super().__init__(shards, replace_weights(stored_weights, weights or {}, location=url))
        self._stored = shards  # also after `split_long`

    def _read_shards(self, digests: Mapping[str, str], index_sha256: str | None) -> list[StoredShard]:
        cache = self._cache
        if index_sha256 is not None:
            content, location = cache.read(INDEX_FILE, index_sha256), f"{cache.remote.url}/{INDEX_FILE}"
            return parse_index(content, cache.folder, digests, location=location, fetch=cache.fetch)
        cache.fetch({f"{name}.json": sha256 for name, sha256 in digests.items()})  # by an earlier version
        documents = {name: parse_json((cache.folder / f"{name}.json").read_bytes()) for name in sorted(digests)}
        shards = [parse_shard(cache.folder, name, documents[name], digests[name], cache.fetch) for name in documents]
        cache.fetch(_list_files((shard for shard in shards if not shard.has_statistics), "idx"))
        return shards

    def load_tables(self, numbers: Iterable[int]) -> None:
        """Download the tables of these shards, several at a time."""
        self._cache.fetch(_list_files((self._stored[number] for number in numbers), "idx"))

    def prefetch(self, numbers: Sequence[int]) -> None:
        """Download these shards in the background. The shards of the last two calls are kept."""
        self._windows.append(_list_files((self._stored[number] for number in numbers), "idx", "bin"))
        self._cache.kept = {name for window in self._windows for name in window}
        self._executor.submit(self._cache.fetch, self._windows[-1])  # an error is raised again when a file is used


def _list_files(shards: Iterable[StoredShard], *suffixes: str) -> dict[str, str]:
    """Return the sha256 of these files of some shards, by name."""
    return {path: sha256 for shard in shards for path, sha256 in shard.hashes(*suffixes).items()}


def _read(remote: RemoteFolder, name: str) -> bytes:
    try:
        return remote.read(name)
    except FileNotFoundError:
        raise DamagedError("The file is missing.", location=f"{remote.url}/{name}", hint=_HINT) from None


def _has(remote: RemoteFolder, name: str) -> bool:
    try:
        remote.read(name)
    except FileNotFoundError:
        return False
    return True
