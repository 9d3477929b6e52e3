"""Tokens at rest: a shard is `.bin` (token ids), `.idx` (lengths and where each sample stood) and `.json`.

`.bin` holds sample after sample, and of a sample stream after stream: source, then target or tags. `.idx` is a table
of 32-bit numbers, column after column: the length of each stream, then file, line, languages and label of each
sample. `.json` is written last, so a shard is whole or absent: it has the sha256 of both, that of the vocabulary
and of the text they were made from, and the names that the numbers stand for. Small corpora are the same thing
without files: a shard's arrays may be in memory as well as mapped from disk.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, TypeAdapter

from regard.base import limits
from regard.base.errors import DamagedError, RegardError
from regard.base.files import read_regular_file, sha256, write_atomic
from regard.base.parsing import parse_json
from regard.data.example import Location

Tokens = NDArray[np.uint16] | NDArray[np.uint32]
FORMAT = 1
SHARD_NAME = re.compile(r"\w[\w-]*")  # of a shard: never a path to elsewhere


@dataclass(frozen=True)
class _ShardInfo:
    """What `.json` says."""

    format: int
    source: str
    streams: tuple[Literal["source", "target", "tags"], ...]
    samples: Annotated[int, Field(ge=0, le=limits.SIZE)]
    tokens: dict[str, Annotated[int, Field(ge=0, le=limits.SIZE)]]
    width: Literal[2, 4]
    files: tuple[str, ...]
    languages: tuple[tuple[str, ...], ...]
    labels: tuple[str, ...]
    made_from: dict[str, str]
    sha256: dict[Literal["bin", "idx"], str]


_SHARD_INFO = TypeAdapter(_ShardInfo)


@dataclass(frozen=True)
class Shard:
    """Some samples as token ids, without special tokens: tasks add those they need."""

    name: str
    source: str  # the corpus source that the samples came from
    streams: tuple[str, ...]  # ("source",), ("source", "target") or ("source", "tags")
    tokens: Tokens
    table: NDArray[np.uint32]  # (columns, samples): lengths of the streams, file, line, languages, label
    files: tuple[str, ...]
    languages: tuple[tuple[str, ...], ...]
    labels: tuple[str, ...] = ()  # of samples or of tags; both count from 1, and 0 is none
    made_from: dict[str, str] = field(default_factory=dict)  # sha256 of the vocabularies and of the text
    sha256: str = ""  # of `.json`, and through it of everything

    def __len__(self) -> int:
        return self.table.shape[1]

    @property
    def lengths(self) -> NDArray[np.uint32]:
        """(streams, samples)."""
        return self.table[: len(self.streams)]

    def offsets(self) -> NDArray[np.int64]:
        """Where each sample begins in the tokens, and the end."""
        return np.concatenate(([0], np.cumsum(self.lengths.sum(axis=0, dtype=np.int64))))

    def column(self, name: str) -> NDArray[np.uint32]:
        """One of "file", "line", "languages" and "label"."""
        return self.table[len(self.streams) + COLUMNS.index(name)]

    def locate(self, sample: int) -> Location:
        """The file and line that a sample was read from."""
        return Location(self.files[self.column("file")[sample]], int(self.column("line")[sample]))


COLUMNS = ("file", "line", "languages", "label")


def save_shard(shard: Shard, folder: Path) -> str:
    """Write the three files, `.json` last; the same samples give the same bytes. Returns the sha256 of `.json`."""
    parts = {"bin": shard.tokens.tobytes(), "idx": np.ascontiguousarray(shard.table).tobytes()}
    for suffix, content in parts.items():
        write_atomic(folder / f"{shard.name}.{suffix}", content)
    info = {
        "format": FORMAT,
        "source": shard.source,
        "streams": shard.streams,
        "samples": len(shard),
        "tokens": dict(zip(shard.streams, shard.lengths.sum(axis=1, dtype=np.int64).tolist(), strict=True)),
        "width": shard.tokens.itemsize,
        "files": shard.files,
        "languages": shard.languages,
        "labels": shard.labels,
        "made_from": shard.made_from,
        "sha256": {suffix: hashlib.sha256(content).hexdigest() for suffix, content in parts.items()},
    }
    content = (json.dumps(info, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode()
    write_atomic(folder / f"{shard.name}.json", content)
    return hashlib.sha256(content).hexdigest()


def load_shard(
    folder: Path, name: str, *, expected_sha256: str | None = None, verify: bool = False, without_tokens: bool = False
) -> Shard:
    """Map a shard from disk. Sizes are always checked; `thorough` reads everything and compares the sha256.

    `expected` is the sha256 that `.json` must have; `without_tokens` leaves `.bin` for later.
    """
    path = folder / f"{name}.json"
    if not SHARD_NAME.fullmatch(name):
        raise DamagedError(f"There is no shard of the name {name[:80]!r}.", where=str(folder), fix=_PREPARE_AGAIN)
    try:
        content = read_regular_file(path, limits.DOCUMENT)
    except FileNotFoundError:
        raise DamagedError("The shard was never finished.", where=str(path), fix=_PREPARE_AGAIN) from None
    digest = hashlib.sha256(content).hexdigest()
    if expected_sha256 is not None and digest != expected_sha256:
        raise DamagedError("The shard is not the one that the corpus names.", where=str(path), fix=_PREPARE_AGAIN)
    try:
        document = parse_json(content)
        if isinstance(document, dict) and document.get("format", FORMAT) != FORMAT:
            what = f"The shard has format {str(document['format'])[:80]}, not {FORMAT}."
            raise DamagedError(what, where=str(path), fix=_PREPARE_AGAIN)
        info = _SHARD_INFO.validate_python(document)
    except ValueError as error:
        raise DamagedError("The shard's description is damaged.", where=str(path), fix=_PREPARE_AGAIN) from error
    columns, count = len(info.streams) + len(COLUMNS), sum(info.tokens.values())
    table = memory_map(folder / f"{name}.idx", "<u4", columns * info.samples).reshape(columns, info.samples)
    dtype = f"<u{info.width}"
    tokens = np.zeros(0, dtype) if without_tokens else memory_map(folder / f"{name}.bin", dtype, count)
    if verify:
        for suffix, part_sha256 in info.sha256.items():
            part = folder / f"{name}.{suffix}"
            if sha256(part) != part_sha256:
                raise DamagedError("The file has other content.", where=str(part), fix=_PREPARE_AGAIN)
    shard = Shard(
        name=name,
        source=info.source,
        streams=info.streams,
        tokens=tokens,
        table=table,
        files=info.files,
        languages=info.languages,
        labels=info.labels,
        made_from=info.made_from,
        sha256=digest,
    )
    _check_table(shard, count, folder / f"{name}.idx")
    return shard


def _check_table(shard: Shard, count: int, path: Path) -> None:
    """Lengths that add up to the tokens, and numbers that stand for something."""
    bounds = {"file": len(shard.files), "languages": len(shard.languages), "label": len(shard.labels) + 1}
    wrong = [name for name, end in bounds.items() if shard.column(name).max(initial=0) >= max(end, 1)]
    if wrong or int(shard.lengths.sum(dtype=np.int64)) != count:
        raise DamagedError("The table does not belong to these tokens.", where=str(path), fix=_PREPARE_AGAIN)


_PREPARE_AGAIN = "Run `regard prepare` again: it keeps what is good and makes the rest anew."


def memory_map(path: Path, dtype: str, count: int) -> NDArray[Any]:
    """A file as an array that stays on disk until it is read."""
    expected_bytes = count * np.dtype(dtype).itemsize
    actual_bytes = path.stat().st_size if path.is_file() else -1
    if actual_bytes != expected_bytes:
        what = "is missing" if actual_bytes < 0 else f"has {actual_bytes} bytes, not {expected_bytes}"
        raise DamagedError(f"The file {what}.", where=str(path), fix=_PREPARE_AGAIN)
    if not count:
        return np.zeros(0, dtype)  # an empty file cannot be mapped
    return np.asarray(np.memmap(path, dtype=dtype, mode="r"))


def split_long(shard: Shard, max_length: int) -> Shard:
    """The same text in samples of at most `longest` tokens: for documents that are read as a whole, not packed."""
    if shard.streams != ("source",):
        raise RegardError("Only running text can be cut.", where=shard.name, fix="Set long samples aside instead.")
    lengths = shard.lengths[0].astype(np.int64)
    n_pieces = np.maximum(-(-lengths // max_length), 1)
    table = np.repeat(shard.table, n_pieces, axis=1)
    table[0] = max_length
    table[0, np.cumsum(n_pieces) - 1] = lengths - (n_pieces - 1) * max_length
    sha256 = hashlib.sha256(f"{_content_fingerprint(shard)} cut {max_length}".encode()).hexdigest()
    return replace(shard, table=table, sha256=sha256)


class Shards:
    """A corpus of shards: samples are numbered through, and each source has a weight."""

    def __init__(self, shards: Sequence[Shard], weights: dict[str, float] | None = None) -> None:
        if not shards:
            raise RegardError("The corpus has no samples.", fix="Name at least one source with text in it.")
        for shard in shards:
            if shard.streams != shards[0].streams:
                first_streams, shard_streams = " and ".join(shards[0].streams), " and ".join(shard.streams)
                raise RegardError(
                    f"{shards[0].source} has {first_streams}, but {shard.source} has {shard_streams}.",
                    fix="Sources of different kinds cannot be mixed: train on one after the other.",
                )
            if _tokenizer_fingerprints(shard) != _tokenizer_fingerprints(shards[0]):
                raise RegardError(
                    f"{shards[0].source} and {shard.source} were made with different vocabularies.",
                    fix="Prepare the whole corpus with one.",
                )
        self.shards = tuple(shards)
        self.streams = shards[0].streams
        self.weights = tuple((weights or {}).get(shard.source, 1.0) for shard in shards)
        self.counts = [len(shard) for shard in shards]
        self.sample_offsets = np.concatenate(([0], np.cumsum(self.counts, dtype=np.int64)))
        self.languages = tuple(sorted({pair for shard in shards for pair in shard.languages}))
        self.labels = tuple(sorted({label for shard in shards for label in shard.labels}))
        self.identity = hashlib.sha256("\n".join(_content_fingerprint(shard) for shard in shards).encode()).hexdigest()

    def __len__(self) -> int:
        return int(self.sample_offsets[-1])

    def load_tokens(self, number: int) -> Tokens:
        """The tokens of a shard."""
        return self.shards[number].tokens

    def iter_pairs(self) -> Iterator[tuple[list[int], list[int]]]:
        """Source and target of every sample, as ids and in the order of the shards: for other people's trainers."""
        for number, shard in enumerate(self.shards):
            tokens, offsets = self.load_tokens(number), shard.offsets()[:-1]
            for start, (source_length, target_length) in zip(
                offsets.tolist(), shard.lengths[:2].T.tolist(), strict=True
            ):
                ids = tokens[start : start + source_length + target_length].tolist()
                yield ids[:source_length], ids[source_length:]

    def use_labels(self, labels: tuple[str, ...]) -> None:
        """Number the labels as another corpus does: those that a model knows."""
        if unknown_labels := set(self.labels) - set(labels):
            label_list = ", ".join(sorted(unknown_labels)[:5])
            raise RegardError(
                f"The model was never told these labels: {label_list}.", fix="Train with examples of them."
            )
        self.labels = labels

    def prefetch(self, numbers: Sequence[int]) -> None:
        """These shards will be read next: nothing to do where they are at hand."""

    def locate(self, sample: int) -> Location:
        """The file and line that a sample was read from."""
        shard = int(np.searchsorted(self.sample_offsets, sample, side="right")) - 1
        return self.shards[shard].locate(sample - int(self.sample_offsets[shard]))


def _tokenizer_fingerprints(shard: Shard) -> tuple[str | None, str | None, int]:
    return shard.made_from.get("source"), shard.made_from.get("target"), shard.tokens.itemsize


def _content_fingerprint(shard: Shard) -> str:
    """A fingerprint of what a shard holds; one that is in memory is hashed as it is."""
    if shard.sha256:
        return shard.sha256
    digest = hashlib.sha256(json.dumps([shard.streams, shard.languages, shard.labels, shard.tokens.dtype.str]).encode())
    digest.update(np.ascontiguousarray(shard.table).data)
    digest.update(np.ascontiguousarray(shard.tokens).data)
    return digest.hexdigest()
