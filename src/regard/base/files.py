"""Files that are whole or absent, and folders that can prove they are unchanged.

A crash at any instant leaves either the old file or the new one, never half of one: the bytes go to a
temporary name beside the target, reach the disk, and only then take the target's name. A folder is sealed
by `manifest.json`, written last: the name, size and sha256 of every file in it.
"""

import errno
import fcntl
import hashlib
import json
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from regard.base import limits
from regard.base.errors import DamagedError, RegardError
from regard.base.parsing import parse_json

MANIFEST = "manifest.json"
# Parts of a name that mean the same on every system: no drives, devices or separators of Windows, nothing unseen.
_PORTABLE_NAME = re.compile(
    r"""(?!(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$))[^\\/:*?"<>|]{1,255}(?<![. ])""", re.IGNORECASE
)


def read_regular_file(path: Path, max_bytes: int) -> bytes:
    """The bytes of a plain file of at most `most`: no pipe that never answers, no device that never ends."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # a pipe is opened without waiting
    except FileNotFoundError:
        raise
    except OSError as error:
        what = f"The file cannot be read: {error.strerror}."
        raise DamagedError(what, where=str(path), fix="Put a plain file there that you may read.") from error
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise DamagedError("This is no plain file.", where=str(path), fix="Put the file itself there.")
        content = file.read(max_bytes + 1) if status.st_size <= max_bytes else b""
    if max(status.st_size, len(content)) > max_bytes:
        what = f"The file has {status.st_size:,} bytes, and at most {max_bytes:,} are read."
        raise DamagedError(what, where=str(path), fix="Take a good copy: none that Regard writes is so large.")
    return content


def read_json(path: Path, fix: str = "Take a good copy.") -> Any:
    """What a JSON file holds; `DamagedError` if that is none, `FileNotFoundError` if there is no file."""
    content = read_regular_file(path, limits.DOCUMENT)
    try:
        return parse_json(content)
    except ValueError as error:
        raise DamagedError(f"The file is damaged: {error}.", where=str(path), fix=fix) from error


def write_atomic(path: Path, content: bytes) -> None:
    """Put `content` at `path`: after a crash the file is the old one or the new one."""
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    temporary_path = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary_path.chmod(0o644)
        temporary_path.replace(path)
    except BaseException:
        temporary_path.unlink(missing_ok=True)
        raise
    flush_folder(path.parent)


def is_leftover(path: Path) -> bool:
    """Whether a write that was killed left this: nothing is lost with it."""
    return path.name.startswith(".") and path.suffix == ".tmp"


@contextmanager
def create_folder(path: Path, *, replace: bool = False) -> Iterator[Path]:
    """Fill a folder under a temporary name; it is sealed and takes its real name at the end.

    with new_folder(Path("my-model")) as folder:
        (folder / "model.toml").write_text(...)

    With `replace` it takes the place of an older one, which `recover` brings back if a kill came in between.
    """
    if path.exists() and not replace:
        raise RegardError("The folder exists already.", where=str(path), fix="Choose another name or remove it.")
    temporary_path, backup = path.with_name(f"{path.name}.tmp"), path.with_name(f"{path.name}.old")
    if temporary_path.exists():
        with lock_folder(temporary_path):  # nobody writes it any more: what a killed process left was never sealed
            shutil.rmtree(temporary_path)
    temporary_path.mkdir(parents=True)
    with lock_folder(temporary_path):
        try:
            yield temporary_path
            seal(temporary_path)
            recover(path)
            if path.exists():
                path.rename(backup)
            temporary_path.rename(path)
        except BaseException:
            shutil.rmtree(temporary_path, ignore_errors=True)
            raise
    flush_folder(path.parent)
    shutil.rmtree(backup, ignore_errors=True)


def recover(path: Path) -> None:
    """Undo half a replacement: the older folder gets its name back, or goes if the newer one has it."""
    backup = path.with_name(f"{path.name}.old")
    if backup.exists():
        shutil.rmtree(backup) if path.exists() else backup.rename(path)


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Hold a folder; the lock goes with the process, however it ends."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise RegardError(
                "Another process is writing this folder.", where=str(folder), fix="Wait for it, or choose another name."
            ) from error
        yield
    finally:
        os.close(descriptor)


@contextmanager
def explain_full_disk(path: Path, size: int | None = None) -> Iterator[None]:
    """Say of a full disk where it is full and, if that is known, how many bytes what is written there needs."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        free = shutil.disk_usage(path.parent).free
        size_note = "" if size is None else f" {size:,} bytes are needed, and {free:,} are free."
        raise RegardError(
            f"The disk is full: {error.strerror}.{size_note}",
            where=str(error.filename or path),
            fix="Make room and go on (a run: `regard train --resume`): nothing that was there before is lost.",
        ) from error


def seal(folder: Path) -> None:
    """Flush every file to disk, then write the manifest: from here on the folder can be verified."""
    files: dict[str, dict[str, int | str]] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            raise RegardError("Only plain files can be sealed.", where=str(path), fix="Copy the file itself.")
        flush_folder(path) if path.is_dir() else flush_file(path)
        if path.is_file() and path != folder / MANIFEST:
            name = path.relative_to(folder).as_posix()
            files[name] = {"bytes": path.stat().st_size, "sha256": sha256(path)}
    write_atomic(folder / MANIFEST, _serialize_manifest(files))


def verify(folder: Path, *, max_bytes: int | None = None, size_only: Collection[str] = ()) -> None:
    """Raise `DamagedError` unless the folder holds exactly what its manifest says; name the differences.

    A file of more than `most` bytes is a fault as well. Of those in `unread` the size alone is compared.
    """
    manifest = folder / MANIFEST
    if not manifest.is_file() or manifest.is_symlink():
        raise DamagedError("The folder has no manifest.", where=str(manifest), fix="It was never finished.")
    files = _read_manifest(manifest)
    sizes = dict(_iter_file_sizes(folder))
    faults = []
    for name, entry in files.items():
        size = sizes.get(name)
        if size is None:
            faults.append(f"{name} is missing" + (": a link or pipe stands there" if name in sizes else ""))
        elif size != entry["bytes"]:
            faults.append(f"{name} has {size} bytes, not {entry['bytes']}")
        elif name in size_only:
            continue
        elif max_bytes is not None and size > max_bytes:
            faults.append(f"{name} has {size} bytes, and no more than {max_bytes} are believed")
        elif sha256(folder / name) != entry["sha256"]:
            faults.append(f"{name} has other content (sha256 differs)")
    faults += [
        f"{_shorten_name(name)} is not in the manifest" for name in sorted(sizes.keys() - files.keys() - {MANIFEST})
    ]
    if faults:
        omitted_note = f"; and {len(faults) - limits.MAX_REPORTED} more" if len(faults) > limits.MAX_REPORTED else ""
        raise DamagedError(
            "The folder is not what its manifest says: "
            + "; ".join(faults[: limits.MAX_REPORTED])
            + omitted_note
            + ".",
            where=str(folder),
            fix="Take a good copy: a damaged file is never used.",
        )


def _iter_file_sizes(folder: Path) -> Iterator[tuple[str, int | None]]:
    """Everything in a folder but folders, with the size of what is a plain file; links are not followed."""
    pending, count = [(folder, "")], 0
    while pending:
        directory, prefix = pending.pop()
        try:
            with os.scandir(directory) as scan:
                entries = list(islice(scan, limits.FILES - count + 1))
        except OSError as error:
            what = f"A folder in it cannot be read: {error.strerror}."
            raise DamagedError(what, where=str(folder), fix="Take a good copy.") from error
        count += len(entries)
        if count > limits.FILES:
            fix = "A model or checkpoint has a few: this is none."
            raise DamagedError(f"The folder holds more than {limits.FILES:,} files.", where=str(folder), fix=fix)
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                pending.append((directory / entry.name, f"{prefix}{entry.name}/"))
            else:
                is_plain = entry.is_file(follow_symlinks=False)
                yield prefix + entry.name, entry.stat(follow_symlinks=False).st_size if is_plain else None


def _shorten_name(name: str) -> str:
    return name if len(name) <= 80 else f"{name[:77]}..."


def sha256(path: Path) -> str:
    """The fingerprint of one file, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def flush_file(path: Path) -> None:
    """Make sure that the bytes of a file have reached the disk."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def flush_folder(path: Path) -> None:
    """Make sure that the names in a folder (a rename, a new file) have reached the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _serialize_manifest(files: dict[str, dict[str, int | str]]) -> bytes:
    return (json.dumps({"files": files, "format": 1}, indent=1, sort_keys=True) + "\n").encode()


def _read_manifest(manifest: Path) -> dict[str, dict[str, int | str]]:
    content = read_regular_file(manifest, limits.SETTINGS)
    fix, reason = "Take a good copy: nothing here can be trusted.", ""
    try:
        files = parse_json(content)["files"]
        is_valid = _serialize_manifest(files) == content  # any flipped bit, even in a space, shows here
        for name in [name for name, entry in files.items() if not _is_valid_entry(name, entry)]:
            is_valid, reason = False, f": it says of {_shorten_name(name)!r} what is said of no file in this folder"
    except (ValueError, KeyError, TypeError, AttributeError):
        is_valid, files = False, {}
    if not is_valid:
        raise DamagedError(f"The manifest is damaged{reason}.", where=str(manifest), fix=fix)
    return files


def _is_valid_entry(name: str, entry: dict[str, Any]) -> bool:
    """Whether this is a file inside the folder, and what is said of it a size and a hash."""
    types = {"bytes": int, "sha256": str}
    is_inside = name != MANIFEST and name.isprintable() and all(map(_PORTABLE_NAME.fullmatch, name.split("/")))
    return is_inside and {key: type(value) for key, value in entry.items()} == types
