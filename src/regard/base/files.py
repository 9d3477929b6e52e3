"""Atomic file writes, and folders sealed by a manifest.

A crash leaves either the old file or the new one, never a partial file: the bytes are written to a temporary file next
to the target and flushed to disk before the temporary file is renamed. `write_manifest` writes `manifest.json` last:
the name, size and sha256 of every file in the folder.
"""

import errno
import hashlib
import json
import os
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from regard.base import limits
from regard.base.errors import DamagedError, RegardError
from regard.base.formatting import truncate
from regard.base.locks import lock_folder
from regard.base.parsing import parse_json

AnyPath = str | os.PathLike[str]
FileEntry = dict[str, int | str]  # of a manifest: "bytes" and "sha256"
MANIFEST = "manifest.json"
PARALLEL_BYTES = 1 << 26  # files of this many bytes in all are hashed in threads
_OPENS_FOLDERS = hasattr(os, "O_DIRECTORY")  # False on Windows
# O_NONBLOCK: do not wait for the writer of a pipe. O_BINARY (Windows): do not translate line ends.
_READ_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
# Parts of a path that every operating system accepts: no drives, devices or separators of Windows.
_PORTABLE_NAME = re.compile(
    r"""(?!(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$))[^\\/:*?"<>|]{1,255}(?<![. ])""", re.IGNORECASE
)


def check_not_overwritten(source: AnyPath | None, output: AnyPath | None) -> None:
    """Raise an error if the output file is the input file."""
    if source is not None and output is not None and Path(output).exists() and Path(output).samefile(source):
        message = "The output would overwrite the input."
        raise RegardError(message, location=str(output), hint="Choose another name.")


def read_regular_file(path: Path, max_bytes: int) -> bytes:
    """Read a regular file of at most `max_bytes`; raise an error for pipes and devices, which might never end.

    Raises:
        FileNotFoundError: If there is no such file.
        DamagedError: If it is not a regular file, is too large, or cannot be read.
    """
    try:
        descriptor = os.open(path, _READ_FLAGS)
    except FileNotFoundError:
        raise
    except OSError as error:
        message = f"The file cannot be read: {error.strerror}."
        raise DamagedError(
            message, location=str(path), hint="Replace it with a regular file with read permission."
        ) from error
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise DamagedError(
                "This is not a regular file.", location=str(path), hint="Replace it with the file itself."
            )
        content = file.read(max_bytes + 1) if status.st_size <= max_bytes else b""
    if max(status.st_size, len(content)) > max_bytes:
        message = f"The file has {status.st_size:,} bytes; the limit is {max_bytes:,}."
        raise DamagedError(
            message, location=str(path), hint="Restore an intact copy: Regard never writes files this large."
        )
    return content


def read_json(path: Path, hint: str = "Restore an intact copy.") -> Any:
    """Read a JSON file.

    Raises:
        FileNotFoundError: If there is no such file.
        DamagedError: If it is not JSON; the error has this `hint`.
    """
    content = read_regular_file(path, limits.DOCUMENT)
    try:
        return parse_json(content)
    except ValueError as error:
        raise DamagedError(f"The file is damaged: {error}.", location=str(path), hint=hint) from error


def write_atomic(path: Path, content: bytes) -> None:
    """Write `content` to `path` atomically: after a crash the file is the old one or the new one."""
    temporary_path = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    with explain_full_disk(path, len(content)):
        try:
            with temporary_path.open("xb") as file:  # with the umask's permissions, unlike `tempfile`
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            temporary_path.replace(path)
        except BaseException:
            temporary_path.unlink(missing_ok=True)
            raise
        flush_folder(path.parent)


def is_temporary(path: Path) -> bool:
    """Whether this is a temporary file left behind by a killed process; it is safe to delete."""
    return path.name.startswith(".") and path.suffix == ".tmp"


def check_writable(folder: Path) -> None:
    """Raise an error if a folder, which may not exist yet, cannot be created and written. Leaves no files behind.

    Raises:
        RegardError: With the reason, such as missing permissions or a read-only disk.
    """
    try:
        existing = next(path for path in (folder, *folder.parents) if path.exists())
        if not existing.is_dir():
            raise RegardError("This is a file, not a folder.", location=str(existing), hint="Choose another folder.")
        with tempfile.TemporaryFile(dir=existing):
            pass
    except OSError as error:
        hint = "Choose a folder in which you can create files."
        raise RegardError(
            f"The folder cannot be written: {error.strerror}.", location=str(folder), hint=hint
        ) from error


@contextmanager
def create_folder(
    path: Path,
    *,
    replace: bool = False,
    entries: Mapping[str, FileEntry] | None = None,
    backup: Path | None = None,
    size: int | None = None,
) -> Iterator[Path]:
    """Create a folder atomically: fill it under a temporary name, seal it, then rename it.

    with create_folder(Path("my-model")) as folder:
        (folder / "model.toml").write_text(...)

    Args:
        path: The new folder.
        replace: Replace an existing folder; `recover` restores it if the process is killed in between.
        entries: Manifest entries of files that other processes write and flush; must be filled before the block ends
            (see `write_manifest`).
        backup: Path of the old folder during the replacement. Default: `NAME.old`, which is reserved for Regard only
            inside a run folder.
        size: Total size of the files in bytes, for the error message if the disk is full.
    """
    if path.exists() and not replace:
        raise RegardError("The folder already exists.", location=str(path), hint="Choose another name or remove it.")
    temporary_path, backup = path.with_name(f"{path.name}.tmp"), backup or path.with_name(f"{path.name}.old")
    if temporary_path.exists():
        with lock_folder(temporary_path):  # the lock is free: a killed process left this, never sealed
            shutil.rmtree(temporary_path)
    with explain_full_disk(path, size):
        temporary_path.mkdir(parents=True)
        with lock_folder(temporary_path):
            try:
                yield temporary_path
                write_manifest(temporary_path, entries)
                if replace:
                    recover(path, backup)
                    if path.exists():
                        path.rename(backup)
                temporary_path.rename(path)
            except BaseException:
                shutil.rmtree(temporary_path, ignore_errors=True)
                if replace:
                    recover(path, backup)
                raise
        flush_folder(path.parent)
    if replace:
        shutil.rmtree(backup, ignore_errors=True)


def backup_path(path: Path) -> Path:
    """Return a backup path for a folder named by the user, because `NAME.old` may belong to the user."""
    return path.with_name(f".{path.name}.old")


def recover(path: Path, backup: Path | None = None) -> None:
    """Finish an interrupted replacement: restore the older folder, or delete it if the newer one is in place."""
    backup = backup or path.with_name(f"{path.name}.old")
    if backup.exists():
        shutil.rmtree(backup) if path.exists() else backup.rename(path)


@contextmanager
def explain_full_disk(path: Path, size: int | None = None) -> Iterator[None]:
    """Convert "no space left" to a `RegardError` with the location and, if `size` is given, the required bytes."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        free = shutil.disk_usage(next(parent for parent in path.absolute().parents if parent.exists())).free
        size_note = "" if size is None else f" {size:,} bytes are needed, and {free:,} are free."
        raise RegardError(
            f"The disk is full: {error.strerror}.{size_note}",
            location=str(error.filename or path),
            hint="Free some space and try again (for a run: `regard train --resume`). Existing files are intact.",
        ) from error


def write_manifest(folder: Path, entries: Mapping[str, FileEntry] | None = None) -> None:
    """Flush every file to disk, then write the manifest that `verify` checks.

    Args:
        folder: The folder to seal.
        entries: Size and sha256 of files that other processes have already written, flushed and hashed.

    Raises:
        RegardError: If an entry is not a regular file, or a file in `entries` is missing or has a different size.
    """
    files = dict(entries or {})
    sizes: dict[str, int] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            raise RegardError("Only regular files can be sealed.", location=str(path), hint="Copy the file itself.")
        if path.is_dir():
            flush_folder(path)
        elif path != folder / MANIFEST:
            name = path.relative_to(folder).as_posix()
            sizes[name] = path.stat().st_size
            if name not in files:
                flush_file(path)
                files[name] = {"bytes": sizes[name], "sha256": sha256(path)}
    if wrong := [name for name, entry in files.items() if sizes.get(name) != entry["bytes"]]:
        message = f"A file written by another process is missing or has another size: {', '.join(sorted(wrong)[:5])}."
        raise RegardError(message, location=str(folder), hint="Use a folder on a shared file system for all processes.")
    write_atomic(folder / MANIFEST, serialize_manifest(files))


def verify(folder: Path, *, max_bytes: int | None = None, size_only: Collection[str] = ()) -> None:
    """Check that a folder contains exactly the files in its manifest.

    Args:
        folder: The sealed folder.
        max_bytes: The largest file that is accepted.
        size_only: Names of files whose size is compared, but not their sha256.

    Raises:
        DamagedError: If there are differences; the message lists them.
    """
    manifest = folder / MANIFEST
    if not manifest.is_file() or manifest.is_symlink():
        raise DamagedError(
            "The folder has no manifest: it is incomplete.", location=str(manifest), hint="Write it again."
        )
    try:
        faults = _find_faults(folder, read_manifest(manifest), max_bytes, size_only)
    except OSError as error:  # it was removed or replaced in the meantime, or cannot be read
        message, location = f"A file cannot be read: {error.strerror}.", str(error.filename or folder)
        raise DamagedError(message, location=location, hint="Restore an intact copy of the folder.") from error
    if faults:
        omitted_note = f"; and {len(faults) - limits.MAX_REPORTED} more" if len(faults) > limits.MAX_REPORTED else ""
        raise DamagedError(
            "The folder does not match its manifest: " + "; ".join(faults[: limits.MAX_REPORTED]) + omitted_note + ".",
            location=str(folder),
            hint="Restore an intact copy: Regard does not load damaged files.",
        )


def _find_faults(
    folder: Path, files: dict[str, FileEntry], max_bytes: int | None, size_only: Collection[str]
) -> list[str]:
    """List how a folder differs from its manifest."""
    sizes = dict(_iter_file_sizes(folder))
    faults, hashed = [], list[str]()
    for name, entry in files.items():
        size = sizes.get(name)
        if size is None:
            faults.append(f"{name} is missing" + (": a link or pipe has its name" if name in sizes else ""))
        elif size != entry["bytes"]:
            faults.append(f"{name} has {size} bytes, not {entry['bytes']}")
        elif name in size_only:
            continue
        elif max_bytes is not None and size > max_bytes:
            faults.append(f"{name} has {size} bytes; the limit is {max_bytes}")
        else:
            hashed.append(name)
    paths = [folder / name for name in hashed]
    if sum(path.stat().st_size for path in paths) > PARALLEL_BYTES:
        from concurrent.futures import ThreadPoolExecutor  # only when needed

        with ThreadPoolExecutor(limits.count_cores()) as pool:  # hashing does not hold the interpreter's lock
            digests = dict(zip(hashed, pool.map(sha256, paths), strict=True))
    else:
        digests = dict(zip(hashed, map(sha256, paths), strict=True))
    faults += [f"{name} has different content (sha256)" for name in hashed if digests[name] != files[name]["sha256"]]
    strangers = sorted(sizes.keys() - files.keys() - {MANIFEST})
    return faults + [f"{truncate(name, 80)} is not in the manifest" for name in strangers]


def _iter_file_sizes(folder: Path) -> Iterator[tuple[str, int | None]]:
    """Yield the name and size of every entry that is not a folder; the size of a link, pipe or device is None."""
    pending, count = [(folder, "")], 0
    while pending:
        directory, prefix = pending.pop()
        try:
            with os.scandir(directory) as scan:
                entries = list(islice(scan, limits.FILES - count + 1))
        except OSError as error:
            message = f"A subfolder cannot be read: {error.strerror}."
            raise DamagedError(message, location=str(folder), hint="Restore an intact copy.") from error
        count += len(entries)
        if count > limits.FILES:
            hint = "A model or a checkpoint has only a few files: check the path."
            raise DamagedError(
                f"The folder contains more than {limits.FILES:,} files.", location=str(folder), hint=hint
            )
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                pending.append((directory / entry.name, f"{prefix}{entry.name}/"))
            else:
                is_regular = entry.is_file(follow_symlinks=False)
                yield prefix + entry.name, entry.stat(follow_symlinks=False).st_size if is_regular else None


def sha256(path: Path) -> str:
    """Return the sha256 of a file, read in chunks."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def flush_file(path: Path) -> None:
    """Flush the bytes of a file to disk."""
    with path.open("rb" if _OPENS_FOLDERS else "r+b") as file:  # Windows only flushes files opened for writing
        os.fsync(file.fileno())


def flush_folder(path: Path) -> None:
    """Flush the entries of a folder (renames, new files) to disk; Windows has no call for that."""
    if not _OPENS_FOLDERS:
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def serialize_manifest(files: dict[str, FileEntry]) -> bytes:
    """Return the content of a manifest."""
    return (json.dumps({"files": files, "format": 1}, indent=1, sort_keys=True) + "\n").encode()


def read_manifest(manifest: Path) -> dict[str, FileEntry]:
    """Return the entries of a manifest; raise DamagedError if it was changed or names files outside its folder."""
    content = read_regular_file(manifest, limits.SETTINGS)
    hint, reason = "Restore an intact copy of the folder.", ""
    try:
        files = parse_json(content)["files"]
        is_valid = serialize_manifest(files) == content  # detects any flipped bit, even in white space
        for name in [name for name, entry in files.items() if not _is_valid_entry(name, entry)]:
            is_valid, reason = False, f": its entry {truncate(name, 80)!r} is not a file of this folder"
    except (ValueError, KeyError, TypeError, AttributeError):
        is_valid, files = False, {}
    if not is_valid:
        raise DamagedError(f"The manifest is damaged{reason}.", location=str(manifest), hint=hint)
    return files


def _is_valid_entry(name: str, entry: dict[str, Any]) -> bool:
    """Whether the name is a path inside the folder, and the entry is a size and a hash."""
    types = {"bytes": int, "sha256": str}
    is_inside = name != MANIFEST and name.isprintable() and all(map(_PORTABLE_NAME.fullmatch, name.split("/")))
    return is_inside and {key: type(value) for key, value in entry.items()} == types
