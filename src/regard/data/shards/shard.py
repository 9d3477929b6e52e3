"""The shard format: `.bin` (token ids), `.idx` (lengths and origin of each sample) and `.json` (description).

`.bin` holds sample after sample, and within a sample stream after stream: source, then target or tags. `.idx` is a
table of 32-bit integers, column after column: the length of each stream, then file, line, languages and label of each
sample. `.json` is written last, so a shard is either complete or absent. It stores the sha256 of both files, of the
tokenizers and of the text, and the names for the integers of `.idx`. A shard's arrays may also be in memory: small
corpora need no files. A shard of images has the stream `image` of 8-bit values; all images have the same shape.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, TypeAdapter

from regard.base import limits
from regard.base.errors import DamagedError, RegardError
from regard.base.files import read_regular_file, sha256, write_atomic
from regard.base.formatting import pluralize
from regard.base.parsing import parse_json
from regard.data.example import Location

Tokens = NDArray[np.uint8] | NDArray[np.uint16] | NDArray[np.uint32]
FORMAT = 1
SHARD_NAME = re.compile(r"\w[\w-]*")  # a file name, never a path into another folder


_Side = Annotated[int, Field(ge=1, le=limits.SIZE)]


@dataclass(frozen=True)
class _ShardInfo:
    """The content of `.json`."""

    format: int
    source: str
    streams: tuple[Literal["source", "target", "tags", "image", "audio"], ...]
    samples: Annotated[int, Field(ge=0, le=limits.SIZE)]
    tokens: dict[str, Annotated[int, Field(ge=0, le=limits.SIZE)]]
    width: Literal[1, 2, 4]
    files: tuple[str, ...]
    languages: tuple[tuple[str, ...], ...]
    labels: tuple[str, ...]
    made_from: dict[str, str]
    sha256: dict[Literal["bin", "idx"], str]
    image_shape: tuple[_Side, _Side, _Side] | None = None
    sample_rate: Annotated[int, Field(ge=1, le=limits.SAMPLE_RATE)] | None = None


_SHARD_INFO = TypeAdapter(_ShardInfo)


@dataclass(frozen=True)
class Shard:
    """Samples as token ids, without special tokens; tasks add the ones they need."""

    name: str
    source: str  # the corpus source that the samples came from
    streams: tuple[str, ...]  # "source", "image" or "audio clip"; "target" or "tags" may follow
    tokens: Tokens
    table: NDArray[np.uint32]  # (columns, samples): lengths of the streams, file, line, languages, label
    files: tuple[str, ...]
    languages: tuple[tuple[str, ...], ...]
    labels: tuple[str, ...] = ()  # of samples or of tags; numbered from 1, and 0 means none
    made_from: dict[str, str] = field(default_factory=dict)  # sha256 of the tokenizers and of the text
    sha256: str = ""  # of `.json`, which holds the sha256 of the other two files
    image_shape: tuple[int, int, int] | None = None  # channels, height and width of every image
    sample_rate: int | None = None  # of every audio clip, whose 16-bit samples are stored as if they had no sign

    def __len__(self) -> int:
        return self.table.shape[1]

    @property
    def lengths(self) -> NDArray[np.uint32]:
        """Tokens of each stream and sample: (streams, samples)."""
        return self.table[: len(self.streams)]

    def offsets(self) -> NDArray[np.int64]:
        """Return where each sample begins in `tokens`, and the end of the last: (samples + 1,)."""
        return np.concatenate(([0], np.cumsum(self.lengths.sum(axis=0, dtype=np.int64))))

    def column(self, name: str) -> NDArray[np.uint32]:
        """Return the column "file", "line", "languages" or "label": (samples,)."""
        return self.table[len(self.streams) + COLUMNS.index(name)]

    def locate(self, sample: int) -> Location:
        """Return the file and line that a sample was read from."""
        return Location(self.files[self.column("file")[sample]], int(self.column("line")[sample]))


COLUMNS = ("file", "line", "languages", "label")
# Fields of a shard that `.json` has, too.
DESCRIPTION = ("source", "streams", "files", "languages", "labels", "made_from", "image_shape", "sample_rate")


def save_shard(shard: Shard, folder: Path) -> str:
    """Write the three files, `.json` last, and return the sha256 of `.json`. Equal samples give equal bytes."""
    parts = {"bin": shard.tokens.tobytes(), "idx": np.ascontiguousarray(shard.table).tobytes()}
    for suffix, content in parts.items():
        write_atomic(folder / f"{shard.name}.{suffix}", content)
    info = {
        "format": FORMAT,
        "samples": len(shard),
        "tokens": dict(zip(shard.streams, shard.lengths.sum(axis=1, dtype=np.int64).tolist(), strict=True)),
        "width": shard.tokens.itemsize,
        "sha256": {suffix: hashlib.sha256(content).hexdigest() for suffix, content in parts.items()},
        **{name: value for name in DESCRIPTION if (value := getattr(shard, name)) is not None},
    }
    content = (json.dumps(info, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode()
    write_atomic(folder / f"{shard.name}.json", content)
    return hashlib.sha256(content).hexdigest()


def load_shard(
    folder: Path, name: str, *, expected_sha256: str | None = None, verify: bool = False, without_tokens: bool = False
) -> Shard:
    """Memory-map a shard from disk. Sizes and the table are always checked.

    Args:
        folder: Where the three files are.
        name: The file name without suffix.
        expected_sha256: The sha256 that `.json` must have.
        verify: Also read `.bin` and `.idx` and compare their sha256.
        without_tokens: Do not open `.bin`; `tokens` is empty.

    Raises:
        DamagedError: If a file is missing, unfinished or damaged.
    """
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
        document = parse_json(content)
        if isinstance(document, dict) and document.get("format", FORMAT) != FORMAT:
            message = f"The shard has format {str(document['format'])[:80]}, not {FORMAT}."
            raise _damaged(message, path)
        info = _SHARD_INFO.validate_python(document)
    except ValueError as error:
        raise _damaged("The shard's description is damaged.", path) from error
    columns, count = len(info.streams) + len(COLUMNS), sum(info.tokens.values())
    table = memory_map(folder / f"{name}.idx", "<u4", columns * info.samples).reshape(columns, info.samples)
    dtype = f"<u{info.width}"
    tokens = np.zeros(0, dtype) if without_tokens else memory_map(folder / f"{name}.bin", dtype, count)
    if verify:
        for suffix, part_sha256 in info.sha256.items():
            part = folder / f"{name}.{suffix}"
            if sha256(part) != part_sha256:
                raise _damaged("The file has different content (sha256 differs).", part)
    shard = Shard(
        name=name, tokens=tokens, table=table, sha256=digest, **{name: getattr(info, name) for name in DESCRIPTION}
    )
    _check_table(shard, count, folder / f"{name}.idx")
    return shard


def _check_table(shard: Shard, count: int, path: Path) -> None:
    """Check that the lengths add up to the number of tokens, and that every index is within its list."""
    bounds = {"file": len(shard.files), "languages": len(shard.languages), "label": len(shard.labels) + 1}
    invalid_columns = [name for name, end in bounds.items() if shard.column(name).max(initial=0) >= max(end, 1)]
    if invalid_columns or int(shard.lengths.sum(dtype=np.int64)) != count:
        raise _damaged("The table does not match the tokens.", path)
    has_images, shape = shard.streams[0] == "image", shard.image_shape
    if has_images != (shape is not None) or (shape is not None and bool((shard.lengths[0] != prod(shape)).any())):
        raise _damaged("The table does not match images of one shape.", path)
    if (shard.streams[0] == "audio") != (shard.sample_rate is not None):
        raise _damaged("The table does not match audio clips of one rate.", path)


def _damaged(message: str, path: Path) -> DamagedError:
    hint = "Run `regard prepare` again; it reuses intact shards and rewrites the rest."
    return DamagedError(message, location=str(path), hint=hint)


def memory_map(path: Path, dtype: str, count: int) -> NDArray[Any]:
    """Memory-map a file as an array; raise DamagedError if its size is wrong."""
    expected_bytes = count * np.dtype(dtype).itemsize
    actual_bytes = path.stat().st_size if path.is_file() else -1
    if actual_bytes != expected_bytes:
        message = "is missing" if actual_bytes < 0 else f"has {actual_bytes} bytes, not {expected_bytes}"
        raise _damaged(f"The file {message}.", path)
    if not count:
        return np.zeros(0, dtype)  # an empty file cannot be mapped
    return np.asarray(np.memmap(path, dtype=dtype, mode="r"))


def split_long(shard: Shard, max_length: int) -> Shard:
    """Split samples into several of at most `max_length` tokens, for tasks that do not pack documents."""
    if shard.streams != ("source",):
        raise RegardError(
            "Only samples with a single stream can be split.", location=shard.name, hint="Exclude long samples."
        )
    lengths = shard.lengths[0].astype(np.int64)
    n_parts = np.maximum(-(-lengths // max_length), 1)
    table = np.repeat(shard.table, n_parts, axis=1)
    table[0] = max_length
    table[0, np.cumsum(n_parts) - 1] = lengths - (n_parts - 1) * max_length
    sha256 = hashlib.sha256(f"{_content_fingerprint(shard)} cut {max_length}".encode()).hexdigest()
    return replace(shard, table=table, sha256=sha256)


class Shards:
    """The shards of a corpus. Samples are numbered across shards, and each source has a weight."""

    def __init__(self, shards: Sequence[Shard], weights: dict[str, float] | None = None) -> None:
        if not shards:
            raise RegardError("The corpus has no samples.", hint="Pass at least one source with text.")
        for shard in shards:
            if shard.streams != shards[0].streams:
                first_streams, shard_streams = " and ".join(shards[0].streams), " and ".join(shard.streams)
                raise RegardError(
                    f"{shards[0].source} has {first_streams}, but {shard.source} has {shard_streams}.",
                    hint="Train on one kind of source at a time.",
                )
            if shard.image_shape != shards[0].image_shape:
                raise RegardError(
                    f"{shards[0].source} has images of {describe_shape(shards[0].image_shape)}, but {shard.source} of "
                    f"{describe_shape(shard.image_shape)}.",
                    hint="Set the same size and channels for all sources: size = [28, 28], channels = 1.",
                )
            if shard.sample_rate != shards[0].sample_rate:
                raise RegardError(
                    f"{shards[0].source} has audio clips of {shards[0].sample_rate:,} samples per second, but "
                    f"{shard.source} of {shard.sample_rate:,}.",
                    hint=f"Convert one of them: `ffmpeg -i IN -ar {shards[0].sample_rate} OUT.wav`.",
                )
            if _tokenizer_fingerprints(shard) != _tokenizer_fingerprints(shards[0]):
                raise RegardError(
                    f"{shards[0].source} and {shard.source} were tokenized with different tokenizers.",
                    hint="Prepare the whole corpus with one tokenizer.",
                )
        self.shards = tuple(shards)
        self.streams = shards[0].streams
        self.image_shape = shards[0].image_shape
        self.sample_rate = shards[0].sample_rate
        self.weights = tuple((weights or {}).get(shard.source, 1.0) for shard in shards)
        self.counts = [len(shard) for shard in shards]
        self.sample_offsets = np.concatenate(([0], np.cumsum(self.counts, dtype=np.int64)))
        self.languages = tuple(sorted({pair for shard in shards for pair in shard.languages}))
        self.labels = tuple(sorted({label for shard in shards for label in shard.labels}))
        self.identity = hashlib.sha256("\n".join(_content_fingerprint(shard) for shard in shards).encode()).hexdigest()

    def __len__(self) -> int:
        return int(self.sample_offsets[-1])

    def load_tokens(self, number: int) -> Tokens:
        """Return the tokens of a shard."""
        return self.shards[number].tokens

    def iter_pairs(self) -> Iterator[tuple[list[int], list[int]]]:
        """Yield the source and target ids of every sample in stored order, for use with other trainers."""
        for number, shard in enumerate(self.shards):
            tokens, offsets = self.load_tokens(number), shard.offsets()[:-1]
            for start, (source_length, target_length) in zip(
                offsets.tolist(), shard.lengths[:2].T.tolist(), strict=True
            ):
                ids = tokens[start : start + source_length + target_length].tolist()
                yield ids[:source_length], ids[source_length:]

    def use_labels(self, labels: tuple[str, ...]) -> None:
        """Use the label numbers of a model instead of the corpus's own.

        Raises:
            RegardError: If the corpus has a label that is not among `labels`.
        """
        if unknown_labels := set(self.labels) - set(labels):
            label_list = ", ".join(sorted(unknown_labels)[:5])
            raise RegardError(
                f"The model does not have these labels: {label_list}.", hint="Train with examples of them."
            )
        self.labels = labels

    def split_long(self, max_length: int) -> Self:
        """Return the corpus with samples split into several of at most `max_length` tokens; no token is copied."""
        weights = {shard.source: weight for shard, weight in zip(self.shards, self.weights, strict=True)}
        result = copy(self)
        Shards.__init__(result, [split_long(shard, max_length) for shard in self.shards], weights)
        return result

    def prefetch(self, numbers: Sequence[int]) -> None:
        """Prefetch the shards that are read next; does nothing for local shards."""

    def locate(self, sample: int) -> Location:
        """Return the file and line that a sample was read from."""
        shard = int(np.searchsorted(self.sample_offsets, sample, side="right")) - 1
        return self.shards[shard].locate(sample - int(self.sample_offsets[shard]))


def describe_shape(shape: tuple[int, int, int] | None) -> str:
    """Describe the shape of images: "28 x 28 pixels, 1 channel"."""
    if shape is None:
        return "no shape"
    channels, height, width = shape
    return f"{height} x {width} pixels, {pluralize(channels, 'channel')}"


def _tokenizer_fingerprints(shard: Shard) -> tuple[str | None, str | None, int]:
    return shard.made_from.get("source"), shard.made_from.get("target"), shard.tokens.itemsize


def _content_fingerprint(shard: Shard) -> str:
    """Return the sha256 of a shard, computing it for a shard in memory."""
    if shard.sha256:
        return shard.sha256
    media = (shard.image_shape, shard.sample_rate)
    description: list[Any] = [shard.streams, shard.languages, shard.labels, shard.tokens.dtype.str]
    description += [value for value in media if value is not None]
    digest = hashlib.sha256(json.dumps(description).encode())
    digest.update(np.ascontiguousarray(shard.table).data)
    digest.update(np.ascontiguousarray(shard.tokens).data)
    return digest.hexdigest()
