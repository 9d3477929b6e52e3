"""Tensors that several ranks save together and any number of ranks loads: torch.distributed.checkpoint on safetensors.

Every rank writes one file with its part of each tensor; the part's offsets are in the file's header. Loading reads only
what a rank needs, from any layout into any other. One process imports this module only to load such a checkpoint.

Two things are added to the storage of torch. Its file header lists the metadata in random order; here equal tensors
give equal bytes. Its reader infers the shape of a tensor from the files that are present: `checkpoint.py` verifies the
manifest first, and `load_tensors` refuses tensors with a hole.
"""

import hashlib
import io
import json
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import Tensor
from torch.distributed.checkpoint.api import CheckpointException  # noqa: TID251
from torch.distributed.checkpoint.filesystem import FileSystem  # noqa: TID251
from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader, HuggingFaceStorageWriter  # noqa: TID251
from torch.distributed.checkpoint.metadata import Metadata, TensorStorageMetadata  # noqa: TID251
from torch.distributed.checkpoint.state_dict_loader import load  # noqa: TID251
from torch.distributed.checkpoint.state_dict_saver import save  # noqa: TID251

from regard.base.errors import DamagedError
from regard.base.files import AnyPath, FileEntry
from regard.store.weights import check_safetensors

Allocate = Callable[[str, torch.Size, torch.dtype], Tensor]
_METADATA = "__metadata__"


def save_tensors(folder: Path, tensors: Mapping[str, Tensor]) -> dict[str, FileEntry]:
    """Write this rank's part of the tensors to its file in the folder; all ranks call it together.

    Args:
        folder: An existing folder.
        tensors: Tensors by name, the same on all ranks: DTensors, or plain tensors that are equal on all ranks, which
            one of them writes.

    Returns:
        Size and sha256 of the files that this rank has written and flushed: one, or none if it had nothing to write.

    Raises:
        OSError: If a rank cannot write; on every rank.
    """
    writer, storage = HuggingFaceStorageWriter(str(folder), save_distributed=True), _Storage()
    writer.fs = storage
    with _raise_cause():
        save(dict(tensors), storage_writer=writer)
    return storage.entries


def load_tensors(
    files: Sequence[Path],
    allocate: Allocate,
    *,
    is_wanted: Callable[[str], bool] = lambda _: True,
    agree: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> dict[str, Tensor]:
    """Read tensors, of which each rank reads only its part; all ranks call it together.

    Args:
        files: The files of all ranks of one checkpoint, or a file with whole tensors.
        allocate: Returns the tensor to fill, from its name, whole shape and dtype.
        is_wanted: Which names to read.
        agree: Makes an error of one rank inside its block an error of all.

    Raises:
        DamagedError: If the files do not hold whole tensors.
    """
    reader = _Reader(files)
    with agree():
        tensors = {
            name: allocate(name, entry.size, entry.properties.dtype)
            for name, entry in reader.read_metadata().state_dict_metadata.items()
            if isinstance(entry, TensorStorageMetadata) and is_wanted(name)
        }
    try:
        with _raise_cause(), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "torch.distributed is disabled")  # in one process
            load(tensors, storage_reader=reader)
    except (SafetensorError, OSError) as error:  # removed or replaced since it was verified
        what, where = f"A file cannot be read: {error}", str(files[0].parent)
        raise DamagedError(what, where=where, fix="Restore an intact copy of the folder.") from error
    return tensors


class _Reader(HuggingFaceStorageReader):
    """Reads the given files, and their headers once."""

    def __init__(self, files: Sequence[Path]) -> None:
        super().__init__(str(files[0].parent))
        self.fs = _Storage(files)
        self._files = files
        self._metadata: Metadata | None = None

    def read_metadata(self) -> Metadata:
        """Read the headers of all files.

        Raises:
            DamagedError: If they describe tensors with a hole, or none.
        """
        if self._metadata is None:
            for file in self._files:
                check_safetensors(file)
            where, fix = str(self._files[0].parent), "Restore an intact copy of the folder."
            try:
                self._metadata = super().read_metadata()
            except (SafetensorError, OSError, ValueError, KeyError, TypeError, RecursionError, RuntimeError) as error:
                what = f"The headers of the files do not describe tensors ({type(error).__name__})."
                raise DamagedError(what, where=where, fix=fix) from error
            for name, entry in self._metadata.state_dict_metadata.items():
                if not isinstance(entry, TensorStorageMetadata) or _has_hole(entry):
                    raise DamagedError(f"The files do not hold the whole of {name[:80]}.", where=where, fix=fix)
        return self._metadata


def _has_hole(entry: TensorStorageMetadata) -> bool:
    """Whether the parts of a tensor have fewer or more elements or dimensions than the tensor."""
    dimensions = {len(entry.size), *(len(size) for chunk in entry.chunks for size in (chunk.offsets, chunk.sizes))}
    return len(dimensions) > 1 or sum(math.prod(chunk.sizes) for chunk in entry.chunks) != math.prod(entry.size)


class _Storage(FileSystem):
    """The file system below torch's storage: lists given files only, and hashes the files it writes."""

    def __init__(self, files: Sequence[Path] = ()) -> None:
        self._files = files
        self.entries: dict[str, FileEntry] = {}

    def ls(self, path: AnyPath) -> list[str]:  # noqa: ARG002
        """List the files to read."""
        return [str(file) for file in self._files]

    @contextmanager
    def create_stream(self, path: AnyPath, mode: str) -> Iterator[io.IOBase]:  # noqa: ARG002
        """Open a new file; a failed write names it."""
        try:
            with _ShardFile(io.FileIO(path, "x")) as file:
                yield file
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(path)) from error
        self.entries[Path(path).name] = {"bytes": file.size, "sha256": file.digest.hexdigest()}


class _ShardFile(io.BufferedWriter):
    """A safetensors file that sorts the metadata of its header, and hashes its content."""

    def __init__(self, raw: io.FileIO) -> None:
        super().__init__(raw)
        self.digest, self.size = hashlib.sha256(), 0

    def write(self, content: Any, /) -> int:
        """Write a whole file; it is flushed, so that the caller's fsync covers all of it."""
        view = memoryview(content)
        header_size = int.from_bytes(view[:8], "little")
        header = json.loads(bytes(view[8 : 8 + header_size]))
        header[_METADATA] = dict(sorted(header[_METADATA].items()))
        text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
        text = text.ljust(-(-len(text) // 8) * 8)  # tensors start at a multiple of 8 bytes
        for part in (len(text).to_bytes(8, "little") + text, view[8 + header_size :]):
            self.digest.update(part)
            self.size += super().write(part)
        self.flush()
        return len(view)


@contextmanager
def _raise_cause() -> Iterator[None]:
    """Raise the error of the first failed rank instead of a collection of all."""
    try:
        yield
    except CheckpointException as error:
        cause, _ = error.failures[min(error.failures)]
        raise cause from error
