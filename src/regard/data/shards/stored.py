"""Shards on disk: `.bin` (token ids), `.idx` (lengths and origin of each sample) and `.json` (description).

`.bin` holds sample after sample, and within a sample stream after stream. `.idx` is a table of 32-bit integers, column
after column: the length of each stream, then file, line, languages and label of each sample. `.json` is written last,
so a shard is either complete or absent. It stores the sha256 of both files, of the tokenizers and of the text, the
names for the integers of `.idx`, and the largest id and length of each stream, so that opening a corpus reads no
tokens. `shards.jsonl` holds the descriptions of all shards of a corpus, so that opening it reads one file.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, TypeAdapter

from regard.base import limits
from regard.base.errors import DamagedError
from regard.base.files import read_regular_file, sha256, write_atomic
from regard.base.parsing import parse_json
from regard.data.shards.open_arrays import REWRITE_HINT, check_size, keep_open, memory_map
from regard.data.shards.shard import COLUMNS, SHARD_NAME, Shard, Tokens

FORMAT = 1
INDEX_FILE = "shards.jsonl"
STATISTICS = "statistics"  # the key of `.json` that does not count in a shard's identity
# Fields of a shard that `.json` has, too.
DESCRIPTION = ("source", "streams", "files", "languages", "labels", "made_from", "image_shape", "sample_rate")

_Size = Annotated[int, Field(ge=0, le=limits.SIZE)]
_Side = Annotated[int, Field(ge=1, le=limits.SIZE)]


@dataclass(frozen=True)
class _StreamLimits:
    """The largest id of each stream, and the length of its longest sample."""

    largest: tuple[_Size, ...]
    longest: tuple[_Size, ...]


@dataclass(frozen=True)
class _ShardInfo:
    """The content of `.json`."""

    format: int
    source: str
    streams: tuple[Literal["source", "target", "tags", "image", "audio"], ...]
    samples: _Size
    tokens: dict[str, _Size]
    width: Literal[1, 2, 4]
    files: tuple[str, ...]
    languages: tuple[tuple[str, ...], ...]
    labels: tuple[str, ...]
    made_from: dict[str, str]
    sha256: dict[Literal["bin", "idx"], str]
    image_shape: tuple[_Side, _Side, _Side] | None = None
    sample_rate: Annotated[int, Field(ge=1, le=limits.SAMPLE_RATE)] | None = None
    statistics: _StreamLimits | None = None  # None: written by an earlier version

    def __post_init__(self) -> None:
        stats = self.statistics
        if stats is not None and not len(stats.largest) == len(stats.longest) == len(self.streams):
            raise ValueError("the statistics do not match the streams")

    @property
    def table_shape(self) -> tuple[int, int]:
        """Columns and samples of `.idx`."""
        return len(self.streams) + len(COLUMNS), self.samples

    @property
    def token_count(self) -> int:
        """Number of ids in `.bin`."""
        return sum(self.tokens.values())


_SHARD_INFO = TypeAdapter(_ShardInfo)
Fetch = Callable[[Mapping[str, str]], None]  # downloads files that are missing, given the sha256 by name


class StoredShard(Shard):
    """A shard on disk. Its arrays are mapped when they are used, and unmapped when others were used since.

    Args:
        folder: Where the three files are.
        name: The file name without suffix.
        document: The content of `.json`.
        sha256: The sha256 of `.json`.
        fetch: Called before a file is used, if the folder is the cache of a remote one.
    """

    def __init__(
        self, folder: Path, name: str, document: Mapping[str, Any], sha256: str, fetch: Fetch | None = None
    ) -> None:
        info = _SHARD_INFO.validate_python(document)
        identity = sha256
        if STATISTICS in document:  # the identity of this content in earlier versions, on which positions depend
            content = {key: value for key, value in document.items() if key != STATISTICS}
            identity = hashlib.sha256(_serialize(content)).hexdigest()
        fields = {key: getattr(info, key) for key in DESCRIPTION}
        fields |= {"name": name, "sha256": sha256, "identity": identity}
        fields |= {"_folder": folder, "_info": info, "_fetch": fetch}
        self.__dict__.update(fields)  # a frozen dataclass has no other way

    _folder: Path
    _info: _ShardInfo
    _fetch: Fetch | None

    def __len__(self) -> int:
        return self._info.samples

    @property
    def tokens(self) -> Tokens:
        """The memory-mapped tokens."""
        return keep_open((self, "bin"), lambda: memory_map(self.path("bin"), self.dtype.str, self._info.token_count))

    @property
    def table(self) -> NDArray[np.uint32]:
        """The memory-mapped table; it is checked when it is mapped."""
        return keep_open((self, "idx"), self._map_table)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the tokens."""
        return np.dtype(f"<u{self._info.width}")

    @cached_property
    def largest(self) -> tuple[int, ...]:
        """The largest id of each stream; computed from the tokens if an earlier version wrote the shard."""
        return super().largest if self._info.statistics is None else self._info.statistics.largest

    @cached_property
    def longest(self) -> tuple[int, ...]:
        """The length of the longest sample of each stream; computed if an earlier version wrote the shard."""
        return super().longest if self._info.statistics is None else self._info.statistics.longest

    @property
    def has_statistics(self) -> bool:
        """Whether `largest` and `longest` are known without reading tokens and table."""
        return self._info.statistics is not None

    def path(self, suffix: str) -> Path:
        """Return the path of a file of this shard."""
        if self._fetch is not None:
            self._fetch(self.hashes(suffix))
        return self._folder / f"{self.name}.{suffix}"

    def hashes(self, *suffixes: str) -> dict[str, str]:
        """Return the sha256 of some files of this shard, by file name."""
        hashes = {"json": self.sha256, **{str(suffix): digest for suffix, digest in self._info.sha256.items()}}
        return {f"{self.name}.{suffix}": hashes[suffix] for suffix in suffixes}

    def check_sizes(self) -> None:
        """Raise DamagedError if a file is missing or has another size."""
        check_size(self.path("bin"), self._info.token_count * self._info.width)
        check_size(self.path("idx"), prod(self._info.table_shape) * 4)

    def verify(self) -> None:
        """Read all files, and raise DamagedError if one has changed."""
        for name, expected in self.hashes("json", "bin", "idx").items():
            if sha256(self._folder / name) != expected:
                raise _damaged("The file has different content (sha256 differs).", self._folder / name)
        self._map_table()

    def _map_table(self) -> NDArray[np.uint32]:
        path, shape = self.path("idx"), self._info.table_shape
        table = memory_map(path, "<u4", prod(shape)).reshape(shape)
        lengths, columns = table[: len(self.streams)], table[len(self.streams) :]
        ends = (len(self.files), len(self.languages), len(self.labels) + 1)
        indices = (columns[COLUMNS.index(name)] for name in ("file", "languages", "label"))
        is_outside = any(index.max(initial=0) >= max(end, 1) for index, end in zip(indices, ends, strict=True))
        if is_outside or int(lengths.sum(dtype=np.int64)) != self._info.token_count:
            raise _damaged("The table does not match the tokens.", path)
        has_images, image_shape = self.streams[0] == "image", self.image_shape
        if has_images != (image_shape is not None) or (
            image_shape is not None and bool((lengths[0] != prod(image_shape)).any())
        ):
            raise _damaged("The table does not match images of one shape.", path)
        if (self.streams[0] == "audio") != (self.sample_rate is not None):
            raise _damaged("The table does not match audio clips of one rate.", path)
        return table


def save_shard(shard: Shard, folder: Path) -> str:
    """Write the three files, `.json` last, and return the sha256 of `.json`. Equal samples give equal bytes."""
    parts = {"bin": shard.tokens.tobytes(), "idx": np.ascontiguousarray(shard.table).tobytes()}
    for suffix, content in parts.items():
        write_atomic(folder / f"{shard.name}.{suffix}", content)
    hashes = {suffix: hashlib.sha256(content).hexdigest() for suffix, content in parts.items()}
    content = _serialize(describe_shard(shard, hashes))
    write_atomic(folder / f"{shard.name}.json", content)
    return hashlib.sha256(content).hexdigest()


def describe_shard(shard: Shard, sha256: Mapping[str, str]) -> dict[str, Any]:
    """Return the content of `.json` for a shard whose other files have these hashes."""
    return {
        "format": FORMAT,
        "samples": len(shard),
        "tokens": dict(zip(shard.streams, shard.lengths.sum(axis=1, dtype=np.int64).tolist(), strict=True)),
        "width": shard.dtype.itemsize,
        "sha256": dict(sha256),
        STATISTICS: {"largest": shard.largest, "longest": shard.longest},
        **{name: value for name in DESCRIPTION if (value := getattr(shard, name)) is not None},
    }


def _serialize(document: Mapping[str, Any]) -> bytes:
    return (json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode()


def load_shard(folder: Path, name: str, *, expected_sha256: str | None = None, verify: bool = False) -> StoredShard:
    """Open a shard from disk.

    Args:
        folder: Where the three files are.
        name: The file name without suffix.
        expected_sha256: The sha256 that `.json` must have.
        verify: Also read `.bin` and `.idx` and compare their sha256, not only their sizes.

    Raises:
        DamagedError: If a file is missing, unfinished or damaged.
    """
    shard = parse_shard(folder, name, *_read_description(folder, name, expected_sha256))
    shard.check_sizes()
    if verify:
        shard.verify()
    return shard


def parse_shard(folder: Path, name: str, document: Any, sha256: str, fetch: Fetch | None = None) -> StoredShard:
    """Return the shard of a description (see `StoredShard`); raise DamagedError if it is invalid."""
    path = folder / f"{name}.json"
    try:
        if isinstance(document, dict) and document.get("format", FORMAT) != FORMAT:
            raise _damaged(f"The shard has format {str(document['format'])[:80]}, not {FORMAT}.", path)
        return StoredShard(folder, name, document, sha256, fetch)
    except (TypeError, ValueError) as error:
        raise _damaged("The shard's description is damaged.", path) from error


def _read_description(folder: Path, name: str, expected_sha256: str | None) -> tuple[Any, str]:
    """Read `.json`; return its content and sha256."""
    path = folder / f"{name}.json"
    if not SHARD_NAME.fullmatch(name):
        raise _damaged(f"{name[:80]!r} is not a valid shard name.", folder)
    try:
        content = read_regular_file(path, limits.DOCUMENT)
    except FileNotFoundError:
        raise _damaged("The shard is incomplete.", path) from None
    digest = hashlib.sha256(content).hexdigest()
    if expected_sha256 is not None and digest != expected_sha256:
        raise _damaged("The shard does not match corpus.json (sha256 differs).", path)
    try:
        return parse_json(content), digest
    except ValueError as error:
        raise _damaged("The shard's description is damaged.", path) from error


def write_index(folder: Path, shards: Mapping[str, str]) -> str:
    """Write the descriptions of shards (sha256 of `.json` by name) into one file; return its sha256."""
    lines = []
    for name in sorted(shards):
        document, _ = _read_description(folder, name, shards[name])
        lines.append(json.dumps({"name": name, **document}, sort_keys=True, ensure_ascii=False) + "\n")
    content = "".join(lines).encode()
    write_atomic(folder / INDEX_FILE, content)
    return hashlib.sha256(content).hexdigest()


def parse_index(
    content: bytes, folder: Path, shards: Mapping[str, str], *, location: str, fetch: Fetch | None = None
) -> list[StoredShard]:
    """Return the shards whose descriptions `write_index` wrote.

    Args:
        content: The content of the index.
        folder: Where the files of the shards are.
        shards: The sha256 of each `.json`, by name.
        location: Where the index is, for errors.
        fetch: See `StoredShard`.

    Raises:
        DamagedError: If the index is invalid or names other shards.
    """
    result = []
    try:
        for line in content.decode().split("\n")[:-1]:
            document = parse_json(line.encode())
            name = document.pop("name")
            result.append(parse_shard(folder, name, document, shards[name], fetch))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DamagedError("The index of the shards is damaged.", location=location, hint=REWRITE_HINT) from error
    if [shard.name for shard in result] != sorted(shards):
        raise DamagedError("The index does not list the shards of corpus.json.", location=location, hint=REWRITE_HINT)
    return result


def _damaged(message: str, path: Path) -> DamagedError:
    return DamagedError(message, location=str(path), hint=REWRITE_HINT)
