"""The GGUF container: metadata and the places of tensors, parsed with bounds from an untrusted file.

    magic "GGUF", version, number of tensors, number of metadata entries
    metadata    key, type, value; a value is a number, a text, or a list of one type
    tensors     name, dimensions (the fastest first), type, offset
    padding, then the data of all tensors

Reads never go beyond the file, lists are never longer than their bytes allow, and numbers stay in the mapped file.
"""

import math
import mmap
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.base.errors import DamagedError, RegardError

MAGIC, VERSIONS = b"GGUF", (2, 3)
STRING, ARRAY = 8, 9
NUMBERS = {
    0: "<u1",
    1: "<i1",
    2: "<u2",
    3: "<i2",
    4: "<u4",
    5: "<i4",
    6: "<f4",
    7: "<u1",
    10: "<u8",
    11: "<i8",
    12: "<f8",
}
BOOLEAN = 7
MAX_ENTRIES, MAX_TENSORS, MAX_DIMENSIONS, MAX_NAME = 10_000, 36_000, 4, 4_096
MAX_TEXT = 1 << 20  # bytes of one text
MAX_TEXTS = 500_000  # in all: Llama 3 has 408,000 tokens and merges
_SIZE = struct.Struct("<Q")
DEFAULT_ALIGNMENT, MAX_ALIGNMENT = 32, 1 << 16


@dataclass(frozen=True)
class BlockType:
    """How a tensor type stores numbers: blocks of `elements` numbers in `size` bytes."""

    name: str
    elements: int
    size: int


BLOCK_TYPES = {
    0: BlockType("F32", 1, 4),
    1: BlockType("F16", 1, 2),
    2: BlockType("Q4_0", 32, 18),
    3: BlockType("Q4_1", 32, 20),
    6: BlockType("Q5_0", 32, 22),
    7: BlockType("Q5_1", 32, 24),
    8: BlockType("Q8_0", 32, 34),
    12: BlockType("Q4_K", 256, 144),
    13: BlockType("Q5_K", 256, 176),
    14: BlockType("Q6_K", 256, 210),
    30: BlockType("BF16", 1, 2),
}


@dataclass(frozen=True)
class StoredTensor:
    """Shape, type and bytes of a tensor."""

    shape: tuple[int, ...]
    """As in PyTorch: the last dimension is the fastest."""
    type: BlockType
    data: NDArray[np.uint8]


@dataclass(frozen=True)
class GgufFile:
    """A parsed file; numbers of lists and tensors are views of the mapped file."""

    metadata: dict[str, Any]
    tensors: dict[str, StoredTensor]


def parse_file(path: Path) -> GgufFile:
    """Map and parse a file.

    Raises:
        DamagedError: The file is not GGUF, is truncated, or exceeds a limit.
    """
    try:
        if not path.is_file():
            raise DamagedError("There is no such file.", location=str(path), hint="Give a .gguf file.")
        with path.open("rb") as file:
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:  # an empty file cannot be mapped
        raise DamagedError("The file cannot be read or is empty.", location=str(path), hint="Restore it.") from error
    return parse(np.frombuffer(content, np.uint8), location=str(path))


def parse(content: NDArray[np.uint8], *, location: str) -> GgufFile:
    """Parse the bytes of a file."""
    try:
        return _GgufParser(content).parse()
    except (struct.error, ValueError, OverflowError) as error:
        hint = "Restore an intact copy of the file."
        raise DamagedError(
            f"This is not a valid GGUF file: {str(error)[:200]}.", location=location, hint=hint
        ) from error


class _GgufParser:
    """Reads values one after another; raises `ValueError` for invalid data."""

    def __init__(self, content: NDArray[np.uint8]) -> None:
        self._content = content
        self._bytes = np.ascontiguousarray(content).data  # faster than the array for many short texts
        self._position = 0
        self._texts = 0  # in the lists so far: each is a Python object

    def parse(self) -> GgufFile:
        if self._take(4).tobytes() != MAGIC:
            raise ValueError("it does not begin with 'GGUF'")
        if (version := self._number("<I")) not in VERSIONS:
            raise ValueError(f"its version is {version}, not {' or '.join(map(str, VERSIONS))}")
        n_tensors, n_entries = self._number("<Q"), self._number("<Q")
        if n_tensors > MAX_TENSORS or n_entries > MAX_ENTRIES:
            raise ValueError(f"it declares {n_tensors:,} tensors and {n_entries:,} metadata entries")
        metadata: dict[str, Any] = {}
        for _ in range(n_entries):
            key = self._text(MAX_NAME)
            if key in metadata:
                raise ValueError(f"the key {key[:60]!r} occurs twice")
            metadata[key] = self._value(self._number("<I"))
        places: dict[str, tuple[tuple[int, ...], BlockType, int]] = {}
        for _ in range(n_tensors):
            name = self._text(MAX_NAME)
            if name in places:
                raise ValueError(f"the tensor {name[:60]!r} occurs twice")
            places[name] = self._place()
        alignment = metadata.get("general.alignment", DEFAULT_ALIGNMENT)
        if type(alignment) is not int or not 0 < alignment <= MAX_ALIGNMENT or alignment % 8:
            raise ValueError("its alignment is not a small multiple of 8")
        start = -(-self._position // alignment) * alignment
        return GgufFile(metadata, {name: self._tensor(start, *place) for name, place in places.items()})

    def _take(self, size: int) -> NDArray[np.uint8]:
        end = self._position + size
        if end > self._content.size:
            raise ValueError("it is truncated")
        part = self._content[self._position : end]
        self._position = end
        return part

    def _number(self, form: str) -> int:
        (number,) = struct.unpack(form, self._take(struct.calcsize(form)).tobytes())
        return int(number)

    def _text(self, max_size: int) -> str:
        return self._read_texts(1, max_size)[0]

    def _read_texts(self, count: int, max_size: int) -> list[str]:
        texts: list[str] = []
        content, position, end = self._bytes, self._position, self._content.size  # local names: a list is long
        for _ in range(count):
            (size,) = _SIZE.unpack_from(content, position)
            if size > max_size:
                raise ValueError(f"a text has {size:,} bytes; the limit is {max_size:,}")
            start = position + _SIZE.size
            position = start + size
            if position > end:
                raise ValueError("it is truncated")
            texts.append(str(content[start:position], "utf-8", "replace"))
        self._position = position
        return texts

    def _value(self, kind: int) -> Any:
        if kind == STRING:
            return self._text(MAX_TEXT)
        if kind == ARRAY:
            return self._list()
        if kind not in NUMBERS:
            raise ValueError(f"a value has the type {kind}, which is unknown")
        number = self._take(np.dtype(NUMBERS[kind]).itemsize).view(NUMBERS[kind])[0].item()
        return bool(number) if kind == BOOLEAN else number

    def _list(self) -> Any:
        kind, length = self._number("<I"), self._number("<Q")
        if kind == STRING:
            self._texts += length
            if self._texts > MAX_TEXTS:
                raise ValueError(f"its lists have more than {MAX_TEXTS:,} texts")
            return self._read_texts(length, MAX_TEXT)
        if kind not in NUMBERS:
            raise ValueError(f"a list has the type {kind}, which is not supported")
        dtype = np.dtype(NUMBERS[kind])
        if length > self._content.size:
            raise ValueError("it is truncated")
        return np.frombuffer(self._take(length * dtype.itemsize).tobytes(), dtype)

    def _place(self) -> tuple[tuple[int, ...], BlockType, int]:
        n_dimensions = self._number("<I")
        if not 0 < n_dimensions <= MAX_DIMENSIONS:
            raise ValueError(f"a tensor has {n_dimensions} dimensions")
        shape = tuple(reversed([self._number("<Q") for _ in range(n_dimensions)]))
        kind = self._number("<I")
        if kind not in BLOCK_TYPES:
            names = ", ".join(block.name for block in BLOCK_TYPES.values())
            raise ValueError(f"a tensor has the type {kind}; Regard reads {names}")
        return shape, BLOCK_TYPES[kind], self._number("<Q")

    def _tensor(self, start: int, shape: tuple[int, ...], block: BlockType, offset: int) -> StoredTensor:
        elements = math.prod(shape)
        if not elements or shape[-1] % block.elements:
            raise ValueError(f"a tensor of shape {shape} cannot have the type {block.name}")
        begin = start + offset
        end = begin + elements // block.elements * block.size
        if end > self._content.size:
            raise ValueError("the data of a tensor is truncated")
        return StoredTensor(shape, block, self._content[begin:end])


def require(metadata: dict[str, Any], key: str, kind: type, *, location: str, default: Any = None) -> Any:
    """Return a metadata value of a type (float accepts integers); a missing one is the default, or an error."""
    value = metadata.get(key, default)
    if kind is float and type(value) is int:
        value = float(value)
    if type(value) is not kind:
        hint = "Use a GGUF file of a Llama model."
        raise RegardError(f"The metadata has no valid '{key}'.", location=location, hint=hint)
    return value
