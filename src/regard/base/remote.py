"""Folders under a URL. fsspec opens them (s3:// and gs:// need its extra packages); requests that fail are repeated."""

import hashlib
import time
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from regard.base.errors import DamagedError, RegardError
from regard.base.extras import import_optional
from regard.base.files import MANIFEST, FileEntry, sha256

ATTEMPTS, FIRST_DELAY = 6, 0.2  # of a request; every pause, in seconds, is twice the one before: 6 seconds in all
REQUESTS = 16  # at a time
BLOCK_BYTES = 1 << 24  # of a file that is read back
Result = TypeVar("Result")


def resolve_url(url: str) -> tuple[Any, str]:
    """Return the fsspec file system of a URL, and the path in it.

    Raises:
        RegardError: If no file system is known, or its package is missing; the error names it.
    """
    fsspec = import_optional("fsspec", "formats", "Opening a URL")
    try:
        return fsspec.core.url_to_fs(url)
    except ImportError as error:
        known = import_module("fsspec.registry").known_implementations[url.partition(":")[0]]
        package = known["class"].partition(".")[0]
        packages = "aiohttp requests" if package == "fsspec" and url.startswith("http") else package
        message = f"The URL cannot be opened: {str(error).rstrip('.')}."
        raise RegardError(message, location=url, hint=f"pip install {packages}") from error
    except ValueError as error:
        raise RegardError(f"The URL cannot be opened: {error}.", location=url, hint="Check its protocol.") from error


class RemoteFolder:
    """The files of a folder under a URL. All methods may be called from several threads."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self._filesystem, self._root = resolve_url(self.url)
        self._made = set[str]()  # folders that exist

    def read(self, name: str) -> bytes:
        """Read a file.

        Raises:
            FileNotFoundError: If there is none.
            RegardError: If it still cannot be read after several attempts.
        """
        return bytes(self._retry(name, lambda path: self._filesystem.cat_file(path)))

    def write(self, name: str, content: bytes) -> None:
        """Write a file. Readers see the old content or the new one, also on file systems that write in place."""

        def replace(path: str) -> None:
            self._make_parent(path)
            self._filesystem.pipe_file(f"{path}.tmp", content)
            if self._filesystem.cat_file(f"{path}.tmp") != content:
                raise OSError("the stored file differs from the written one")
            self._filesystem.mv(f"{path}.tmp", path)

        self._retry(name, replace)

    def upload(self, path: Path, name: str, entry: FileEntry) -> None:
        """Upload a file, unless it is there already, and compare what was stored with its entry of a manifest.

        Raises:
            FileNotFoundError: If there is no such file, or it has changed.
        """

        def put(target: str) -> None:
            if self._matches(target, entry):
                return
            self._make_parent(target)
            self._filesystem.put_file(str(path), target)
            if not self._matches(target, entry):
                if path.stat().st_size != entry["bytes"] or sha256(path) != entry["sha256"]:
                    raise FileNotFoundError(path)
                raise OSError("the stored file differs from the local one")

        self._retry(name, put)

    def download(self, name: str, path: Path, entry: FileEntry) -> None:
        """Download a file; raise DamagedError if it does not match its entry of a manifest."""
        self._retry(name, lambda source: self._filesystem.get_file(source, str(path)))
        if sha256(path) != entry["sha256"]:
            message = "The file has different content (sha256 differs)."
            raise DamagedError(message, location=f"{self.url}/{name}", hint="Restore an intact copy.")

    def list_folders(self, name: str) -> list[str]:
        """Return the names of the folders in a folder, which may be missing."""

        def list_entries(path: str) -> list[dict[str, str]]:
            self._filesystem.invalidate_cache()
            return list(self._filesystem.ls(path.rstrip("/"), detail=True))

        try:
            entries = self._retry(name, list_entries)
        except FileNotFoundError:
            return []
        return [entry["name"].rstrip("/").rpartition("/")[2] for entry in entries if entry["type"] == "directory"]

    def remove_folder(self, name: str) -> None:
        """Remove a sealed folder, its manifest first."""
        with suppress(FileNotFoundError):
            self._retry(f"{name}/{MANIFEST}", lambda path: self._filesystem.rm_file(path))
        with suppress(FileNotFoundError):
            self._retry(name, lambda path: self._filesystem.rm(path, recursive=True))

    def _make_parent(self, path: str) -> None:
        """Create the folder of a file, which file systems on a disk need."""
        parent = path.rpartition("/")[0]
        if parent not in self._made:
            self._filesystem.makedirs(parent, exist_ok=True)
            self._made.add(parent)

    def _matches(self, path: str, entry: FileEntry) -> bool:
        """Return whether a file has the size and sha256 of its entry of a manifest; reads all of it."""
        digest = hashlib.sha256()
        self._filesystem.invalidate_cache(path.rpartition("/")[0])  # a listing from before the upload
        try:
            if self._filesystem.info(path)["size"] != entry["bytes"]:
                return False
            with self._filesystem.open(path, "rb") as file:
                while block := file.read(BLOCK_BYTES):
                    digest.update(block)
        except FileNotFoundError:
            return False
        return digest.hexdigest() == entry["sha256"]

    def _retry(self, name: str, request: Callable[[str], Result]) -> Result:
        for attempt in range(ATTEMPTS):
            try:
                return request(f"{self._root}/{name}")
            except FileNotFoundError:
                raise
            except Exception as error:  # each file system has its own
                if attempt == ATTEMPTS - 1 or isinstance(error, PermissionError):
                    message = f"The request failed: {str(error) or type(error).__name__}."
                    hint = "Check the network and the access rights, then run the same command again."
                    raise RegardError(message, location=f"{self.url}/{name}", hint=hint) from error
                time.sleep(FIRST_DELAY * 2**attempt)
        raise AssertionError("the last attempt raises")
