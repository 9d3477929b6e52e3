"""Folder locks: only one process at a time writes to a folder.

The operating system releases a lock when its process ends, even if the process is killed. On Linux and macOS the lock
is on the folder itself, so it needs no file and moves with the folder when it is renamed. Windows cannot lock a
folder, so the lock is on the file `.NAME.lock` next to it.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from regard.base.errors import RegardError


@contextmanager
def lock_folder(folder: Path, *, wait: bool = False) -> Iterator[None]:
    """Lock a folder inside this block.

    Args:
        folder: An existing folder.
        wait: Wait until the lock is free.

    Raises:
        RegardError: Another process holds the lock, and `wait` is False.
    """
    release = _lock(folder, wait=wait)
    if release is None:
        message, hint = "Another process is writing this folder.", "Wait for it, or choose another name."
        raise RegardError(message, location=str(folder), hint=hint)
    try:
        yield
    finally:
        release()


def _lock(folder: Path, *, wait: bool) -> Callable[[], None] | None:
    """Lock a folder and return a function that releases the lock; None if another process holds it."""
    try:
        import fcntl
    except ImportError:  # Windows
        return _lock_file(folder, wait=wait)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BaseException as error:
        os.close(descriptor)
        if isinstance(error, BlockingIOError):
            return None
        raise
    return lambda: os.close(descriptor)


def _lock_file(folder: Path, *, wait: bool) -> Callable[[], None] | None:
    from filelock import FileLock, Timeout

    folder = folder.resolve(strict=True)
    lock = FileLock(folder.with_name(f".{folder.name}.lock"), timeout=-1 if wait else 0)
    try:
        lock.acquire()
    except Timeout:
        return None
    return lock.release
