"""Naive savers, whose failures every proof must detect.

One deletes old checkpoints first, then writes in place. The other does all that Regard does, but seals the folder after
it has its name.
"""

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from regard.base.files import FileEntry, write_manifest
from regard.store.weights import save_tensors
from regard.training.checkpoint.folder import STATE_FILE, TENSOR_FILES, Checkpoint, Checkpoints


class NaiveCheckpoints(Checkpoints):
    """At most one checkpoint, and at times none."""

    def save(self, step: int, checkpoint: Checkpoint) -> Path:
        for older in self.steps():
            shutil.rmtree(self.path(older))
        folder = self.path(step)
        folder.mkdir(parents=True)
        for name, file in TENSOR_FILES.items():
            save_tensors(getattr(checkpoint, name), folder / file)
        (folder / STATE_FILE).write_text(
            json.dumps(checkpoint.state, indent=1, sort_keys=True) + "\n", encoding="utf-8"
        )
        write_manifest(folder)
        return folder


@contextmanager
def rename_before_sealing(
    path: Path,
    *,
    replace: bool = False,
    entries: Mapping[str, FileEntry] | None = None,
    size: int | None = None,  # noqa: ARG001
) -> Iterator[Path]:
    """Create a folder as `create_folder` does, but rename it before its manifest is written."""
    temporary_path = path.with_name(f"{path.name}.tmp")
    shutil.rmtree(temporary_path, ignore_errors=True)
    temporary_path.mkdir(parents=True)
    yield temporary_path
    if replace:
        shutil.rmtree(path, ignore_errors=True)
    temporary_path.rename(path)
    write_manifest(path, entries)
