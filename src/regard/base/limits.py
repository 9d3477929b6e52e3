"""Limits on untrusted files: larger files are rejected before they are read.

Every limit is far above the sizes that Regard writes, and low enough to reject a file in less than a second with less
than 200 MB. See docs/reference/security.md for the guarantees and tests/hostile for their tests.
"""

import ctypes
import os
import sys
from contextlib import suppress

SETTINGS = 1 << 20  # bytes of a TOML file or of a manifest
INDEX = 1 << 27  # bytes of the descriptions of all shards of a corpus: 700 for each shard
DOCUMENT = 1 << 25  # bytes of a JSON file, tokenizers included: 250,000 tokens in any script
HEADER = 4 << 20  # bytes of a safetensors header: about 115 per tensor, so 36,000 tensors
VALUES = 2_000_000  # values in one JSON file: an empty list is 2 bytes of text and 60 of memory
KEYS = 10_000  # keys in one TOML file
DEPTH = 64  # nesting of tables, lists and dotted keys
FILES = 5_000  # files in a sealed folder: a checkpoint has one per rank, and its manifest stays below SETTINGS
TEACHERS = 64  # models that a run is distilled from
MAX_REPORTED = 20  # errors that a message lists; the rest are counted

LAYERS, HEADS, THREADS = 512, 4_096, 1_024  # each one is a Python object (or a thread), even if its tensors are tiny
PIXELS = 1 << 26  # of one image: 8192 x 8192
SAMPLES = 1 << 26  # of one audio clip: 70 minutes at 16,000 per second
SAMPLE_RATE, MEL_BINS = 768_000, 1_024
SIZE = 1 << 40  # any other size in the settings


def measure_peak_memory() -> int | None:
    """Return the peak resident bytes of this process, if the system reports them."""
    try:
        from resource import RUSAGE_SELF, getrusage  # not on Windows
    except ImportError:
        return None
    return getrusage(RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def count_cores() -> int:
    """Return the number of cores available to this process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def raise_descriptor_limit(number: int) -> bool:
    """Raise this process's limit of open files and connections as far as the system allows; return whether it rose."""
    try:
        import resource
    except ImportError:
        return False  # Windows has no such limit
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = number if hard == resource.RLIM_INFINITY else min(number, hard)
    if soft == resource.RLIM_INFINITY or soft >= limit:
        return False
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
        return True
    return False


def total_memory() -> int:
    """Return the physical memory of this machine in bytes."""
    if not hasattr(os, "sysconf"):  # Windows
        status = (ctypes.c_uint64 * 8)(64)  # a MEMORYSTATUSEX of 64 bytes; the second number is the total
        ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status))  # type: ignore[attr-defined]
        return status[1]
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
