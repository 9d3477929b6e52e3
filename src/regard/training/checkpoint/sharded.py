"""Sharded tensors that any number of ranks can load: torch.distributed.checkpoint on safetensors.

Every rank writes one file with its part of each tensor and the offsets in the file header. Each rank loads only the
parts that it needs, from any layout into any other. A single process imports this module only to load such a
checkpoint.

This differs from torch's storage in two ways. torch's writer copies all tensors into one byte string, which doubles the
memory, with metadata in random order; this one writes tensor by tensor and is deterministic. torch's reader infers
tensor shapes from the files present; here `folder.py` verifies the manifest first, and `load_tensors` rejects
incomplete tensors.
"""

import json
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

import torch
from safetensors import SafetensorError
from torch import Tensor
from torch.distributed.checkpoint._hf_utils import (  # noqa: TID251
    CUSTOM_METADATA_KEY,
    SAVED_OFFSETS_KEY,
    _gen_file_name,
)
from torch.distributed.checkpoint.api import CheckpointException  # noqa: TID251
from torch.distributed.checkpoint.filesystem import FileSystem  # noqa: TID251
from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader, HuggingFaceStorageWriter  # noqa: TID251
from torch.distributed.checkpoint.metadata import Metadata, TensorStorageMetadata  # noqa: TID251
from torch.distributed.checkpoint.planner import SavePlan, SavePlanner  # noqa: TID251
from torch.distributed.checkpoint.state_dict_loader import load  # noqa: TID251
from torch.distributed.checkpoint.state_dict_saver import save  # noqa: TID251
from torch.distributed.checkpoint.storage import WriteResult  # noqa: TID251
from torch.futures import Future

from regard.base.errors import DamagedError
from regard.base.files import AnyPath, FileEntry, flush_file, sha256
from regard.store.weights import check_safetensors
from regard.store.weights import save_tensors as save_file

Allocate = Callable[[str, torch.Size, torch.dtype], Tensor]


def save_tensors(folder: Path, tensors: Mapping[str, Tensor]) -> dict[str, FileEntry]:
    """Write this rank's part of the tensors to its file in the folder; all ranks must call it together.

    Args:
        folder: An existing folder.
        tensors: Tensors by name, with the same names on all ranks: DTensors, or plain tensors that are equal on all
            ranks and written by one.

    Returns:
        Size and sha256 of the file that this rank wrote; empty if it wrote none.

    Raises:
        OSError: If a rank cannot write; on every rank.
    """
    writer = _ShardWriter(str(folder), save_distributed=True)
    with _raise_cause():
        save(dict(tensors), storage_writer=writer)
    return writer.entries


def load_tensors(
    files: Sequence[Path],
    allocate: Allocate,
    *,
    is_wanted: Callable[[str], bool] = lambda _: True,
    agree: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> dict[str, Tensor]:
    """Read tensors; each rank reads only its part, and all ranks must call it together.

    Args:
        files: All ranks' files of one checkpoint, or one file with full tensors.
        allocate: Returns the tensor to fill, given its name, full shape and dtype.
        is_wanted: Which names to read.
        agree: Context manager that raises an error of one rank on all ranks.

    Raises:
        DamagedError: If the files contain incomplete tensors.
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
        message, location = f"A file cannot be read: {error}", str(files[0].parent)
        raise DamagedError(message, location=location, hint="Restore an intact copy of the folder.") from error
    return tensors


class _ShardWriter(HuggingFaceStorageWriter):
    """Writes this rank's file tensor by tensor, then flushes and hashes it."""

    entries: dict[str, FileEntry]

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        """Write the parts that the plan assigns to this rank."""
        self.entries = {}
        if plan.items:
            file = Path(self.path) / _gen_file_name(1, 1, plan.storage_data["shard_index"])
            tensors, offsets = dict[str, Tensor](), dict[str, dict[str, list[int]]]()
            for item in plan.items:
                tensor, part = planner.resolve_data(item), item.tensor_data
                assert isinstance(tensor, Tensor) and part is not None  # noqa: S101, PT018 - not bytes: see the caller
                tensors[item.index.fqn], offsets[item.index.fqn] = tensor, {SAVED_OFFSETS_KEY: [*part.chunk.offsets]}
            save_file(tensors, file, metadata={CUSTOM_METADATA_KEY: json.dumps(offsets)})
            flush_file(file)
            self.entries[file.name] = {"bytes": file.stat().st_size, "sha256": sha256(file)}
        done: Future[list[WriteResult]] = Future()
        done.set_result([])  # for an index of all files, which we do not write
        return done


class _Reader(HuggingFaceStorageReader):
    """Reads the given files; reads each header once."""

    def __init__(self, files: Sequence[Path]) -> None:
        super().__init__(str(files[0].parent))
        self.fs = _FileList(files)
        self._files = files
        self._metadata: Metadata | None = None

    def read_metadata(self) -> Metadata:
        """Read the headers of all files.

        Raises:
            DamagedError: If they describe incomplete tensors, or none.
        """
        if self._metadata is None:
            for file in self._files:
                check_safetensors(file)
            location, hint = str(self._files[0].parent), "Restore an intact copy of the folder."
            try:
                self._metadata = super().read_metadata()
            except (SafetensorError, OSError, ValueError, KeyError, TypeError, RecursionError, RuntimeError) as error:
                message = f"The file headers do not describe tensors ({type(error).__name__})."
                raise DamagedError(message, location=location, hint=hint) from error
            for name, entry in self._metadata.state_dict_metadata.items():
                if not isinstance(entry, TensorStorageMetadata) or _has_hole(entry):
                    raise DamagedError(f"The files do not contain all of {name[:80]}.", location=location, hint=hint)
        return self._metadata


def _has_hole(entry: TensorStorageMetadata) -> bool:
    """Whether the parts do not cover the tensor exactly."""
    dimensions = {len(entry.size), *(len(size) for chunk in entry.chunks for size in (chunk.offsets, chunk.sizes))}
    return len(dimensions) > 1 or sum(math.prod(chunk.sizes) for chunk in entry.chunks) != math.prod(entry.size)


class _FileList(FileSystem):
    """File system for torch's reader that lists only the given files."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._files = files

    def ls(self, path: AnyPath) -> list[str]:  # noqa: ARG002
        """List the files to read."""
        return [str(file) for file in self._files]


@contextmanager
def _raise_cause() -> Iterator[None]:
    """Raise the error of the first failed rank instead of a collection of all."""
    try:
        yield
    except CheckpointException as error:
        cause, _ = error.failures[min(error.failures)]
        raise cause from error
