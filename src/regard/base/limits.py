"""How much is believed of a file that somebody gave us: what is larger is refused before it is read.

All of them are far beyond what Regard writes, and small enough that refusing takes less than a second and 200 MB.
`docs/hostile-files.md` says what is promised, `tests/hostile` tries it.
"""

import os

SETTINGS = 1 << 20  # bytes of a TOML file or of a manifest
DOCUMENT = 1 << 25  # bytes of a JSON file, vocabularies included: 250,000 pieces in any script
HEADER = 12 << 20  # bytes that say what a safetensors file holds: a hundred and more for each tensor
VALUES = 2_000_000  # in one JSON file: an empty list is two bytes of text, and sixty of memory
KEYS = 10_000  # in one TOML file
DEPTH = 64  # of tables, lists and dotted keys inside each other
FILES = 1_000  # in a sealed folder
MAX_REPORTED = 20  # faults that a message names; it counts the others

LAYERS, HEADS, THREADS = 512, 4_096, 1_024  # each of them is an object, however small the tensors are
SIZE = 1 << 40  # any other size that settings ask for


def total_memory() -> int:
    """The bytes of this machine's memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
