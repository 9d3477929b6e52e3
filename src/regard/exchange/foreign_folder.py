"""Safe access to the files of untrusted folders.

A symlink in a downloaded folder may point to any of the user's files, and an import copies file contents into the
model. So every file is looked up by `ForeignFolder.find`, which rejects links that leave the folder. The Hugging Face
cache is the exception: the files of a snapshot are links to `blobs/` of the same repository.
"""

import stat
from pathlib import Path
from typing import Any

from torch import Tensor

from regard.base import limits
from regard.base.errors import DamagedError
from regard.base.files import read_json, read_regular_file
from regard.store.weights import load_tensors


class ForeignFolder:
    """A folder that another program wrote."""

    def __init__(self, path: Path) -> None:
        self.path = path
        real = path.resolve()  # the user may name the folder by a link
        self._roots = [real]
        for folder in real.parents:
            if folder.name == "snapshots" and folder.parent.name.startswith("models--"):
                self._roots.append(folder.parent / "blobs")

    def find(self, name: str) -> Path | None:
        """Return the path of a regular file in the folder; None if there is no such file.

        Raises:
            DamagedError: The name is a link that leaves the folder, or not a regular file, or cannot be read.
        """
        path = self.path / name
        try:
            target = path.resolve()
            if not any(target.is_relative_to(root) for root in self._roots):
                hint = "Replace the link with a copy of the file, if you trust it."
                raise DamagedError("This is a link to a file outside the folder.", location=str(path), hint=hint)
            if not stat.S_ISREG(target.stat().st_mode):
                hint = "Replace it with the file itself."
                raise DamagedError("This is not a regular file.", location=str(path), hint=hint)
        except FileNotFoundError:
            return None
        except (OSError, RuntimeError, ValueError) as error:  # a circle of links is a RuntimeError
            message = f"The file cannot be read: {getattr(error, 'strerror', None) or error}."
            raise DamagedError(message, location=str(path), hint="Restore an intact copy of the folder.") from error
        return path

    def read_bytes(self, name: str) -> bytes | None:
        """Read a file; None if it does not exist."""
        path = self.find(name)
        return None if path is None else read_regular_file(path, limits.DOCUMENT)

    def read_json(self, name: str) -> Any:
        """Read a JSON file; None if it does not exist."""
        path = self.find(name)
        return None if path is None else read_json(path)

    def read_tensors(self, name: str) -> dict[str, Tensor]:
        """Map the tensors of a safetensors file.

        Raises:
            DamagedError: The file is missing, damaged, or more than twice the size of the memory.
        """
        path = self.find(name)
        if path is None:
            hint = "Restore an intact copy of the folder."
            raise DamagedError("The file is missing.", location=str(self.path / name), hint=hint)
        if (size := path.stat().st_size) > 2 * limits.total_memory():
            message = f"The file has {size:,} bytes; this machine has {limits.total_memory():,} bytes of memory."
            raise DamagedError(message, location=str(path), hint="Use a smaller model, or a machine with more memory.")
        return load_tensors(path)
