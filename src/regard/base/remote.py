"""Folders under a URL. fsspec opens them (s3:// and gs:// need its extra packages); requests that fail are repeated."""

import time
from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar

from regard.base.errors import RegardError
from regard.base.extras import import_optional

ATTEMPTS, FIRST_DELAY = 6, 0.2  # of a request; every pause, in seconds, is twice the one before: 6 seconds in all
REQUESTS = 16  # at a time
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

    def read(self, name: str) -> bytes:
        """Read a file.

        Raises:
            FileNotFoundError: If there is none.
            RegardError: If it still cannot be read after several attempts.
        """
        return bytes(self._retry(name, lambda path: self._filesystem.cat_file(path)))

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
