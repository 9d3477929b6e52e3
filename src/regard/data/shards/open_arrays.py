"""Arrays that are memory-mapped on first use. Only the ones used last stay open, however many files a corpus has.

A map holds a file descriptor (Python duplicates it) and its pages count as memory of the process. With every file of a
corpus open, 520 shards exceeded the usual limit of 1,024 descriptors.
"""

import errno
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.base.errors import DamagedError, RegardError
from regard.base.limits import raise_descriptor_limit

MAX_OPEN = 64  # arrays: the tokens and the tables of two windows of 16 shards
DESCRIPTORS = 4096  # requested if the limit is reached anyway
REWRITE_HINT = "Run `regard prepare` again; it reuses intact shards and rewrites the rest."

_open_arrays: OrderedDict[Hashable, NDArray[Any]] = OrderedDict()
_lock = threading.Lock()


def keep_open(key: Hashable, load: Callable[[], NDArray[Any]]) -> NDArray[Any]:
    """Return the array of a key, loading it if it is not among the MAX_OPEN used last."""
    with _lock:
        if key in _open_arrays:
            _open_arrays.move_to_end(key)
            return _open_arrays[key]
    array = load()
    with _lock:
        _open_arrays[key] = array
        while len(_open_arrays) > MAX_OPEN:
            _open_arrays.popitem(last=False)  # unmapped as soon as its last user is done
    return array


def check_size(path: Path, expected_bytes: int) -> None:
    """Raise DamagedError if a file is missing or has another size."""
    actual_bytes = path.stat().st_size if path.is_file() else -1
    if actual_bytes != expected_bytes:
        message = "is missing" if actual_bytes < 0 else f"has {actual_bytes} bytes, not {expected_bytes}"
        raise DamagedError(f"The file {message}.", location=str(path), hint=REWRITE_HINT)


def memory_map(path: Path, dtype: str, count: int) -> NDArray[Any]:
    """Memory-map a file as an array.

    Raises:
        DamagedError: If its size is wrong.
        RegardError: If the system does not allow another open file or map.
    """
    check_size(path, count * np.dtype(dtype).itemsize)
    if not count:
        return np.zeros(0, dtype)  # an empty file cannot be mapped
    try:
        return _map(path, dtype)
    except OSError as error:
        if error.errno == errno.EMFILE and raise_descriptor_limit(DESCRIPTORS):
            return memory_map(path, dtype, count)
        hint = {
            errno.EMFILE: "This process may not open more files: raise the limit with `ulimit -n 4096`.",
            errno.ENFILE: "The system may not open more files: raise `sysctl fs.file-max`.",
            errno.ENOMEM: "Memory or maps ran out: close other programs, or raise `sysctl vm.max_map_count`.",
        }.get(error.errno or 0, "Check that you may read it.")
        raise RegardError(f"The file cannot be mapped: {error.strerror}.", location=str(path), hint=hint) from error


def _map(path: Path, dtype: str) -> NDArray[Any]:
    return np.asarray(np.memmap(path, dtype=dtype, mode="r"))
