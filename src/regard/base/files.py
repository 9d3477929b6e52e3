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
from regard.base.documents import parse_json
from regard.base.errors import DamagedError, RegardError

MANIFEST = "manifest.json"
# Parts of a name that mean the same on every system: no drives, devices or separators of Windows, nothing unseen.
_NAME = re.compile(r"""(?!(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$))[^\\/:*?"<>|]{1,255}(?<![. ])""", re.IGNORECASE)


def read_plain(path: Path, most: int) -> bytes:
    """The bytes of a plain file of at most `most`: no pipe that never answers, no device that never ends."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # a pipe is opened without waiting
    except FileNotFoundError:
        raise
    except OSError as error:
        what = f"The file cannot be read: {error.strerror}."
        raise DamagedError(what, where=str(path), fix="Put a plain file there that you may read.") from error
    with os.fdopen(descriptor, "rb") as file:
        facts = os.fstat(file.fileno())
        if not stat.S_ISREG(facts.st_mode):
            raise DamagedError("This is no plain file.", where=str(path), fix="Put the file itself there.")
        content = file.read(most + 1) if facts.st_size <= most else b""
    if max(facts.st_size, len(content)) > most:
        what = f"The file has {facts.st_size:,} bytes, and at most {most:,} are read."
        raise DamagedError(what, where=str(path), fix="Take a good copy: none that Regard writes is so large.")
    return content


def read_json(path: Path, fix: str = "Take a good copy.") -> Any:
    """What a JSON file holds; `DamagedError` if that is none, `FileNotFoundError` if there is no file."""
    content = read_plain(path, limits.DOCUMENT)
    try:
        return parse_json(content)
    except ValueError as error:
        raise DamagedError(f"The file is damaged: {error}.", where=str(path), fix=fix) from error


def write_atomic(path: Path, content: bytes) -> None:
    """Put `content` at `path`: after a crash the file is the old one or the new one."""
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o644)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    flush_folder(path.parent)


def is_leftover(path: Path) -> bool:
    """Whether a write that was killed left this: nothing is lost with it."""
    return path.name.startswith(".") and path.suffix == ".tmp"


@contextmanager
def new_folder(path: Path, *, replace: bool = False) -> Iterator[Path]:
    """Fill a folder under a temporary name; it is sealed and takes its real name at the end.

    with new_folder(Path("my-model")) as folder:
        (folder / "model.toml").write_text(...)

    With `replace` it takes the place of an older one, which `recover` brings back if a kill came in between.
    """
    if path.exists() and not replace:
        raise RegardError("The folder exists already.", where=str(path), fix="Choose another name or remove it.")
    temporary, older = path.with_name(f"{path.name}.tmp"), path.with_name(f"{path.name}.old")
    if temporary.exists():
        with locked(temporary):  # nobody writes it any more: what a killed process left was never sealed
            shutil.rmtree(temporary)
    temporary.mkdir(parents=True)
    with locked(temporary):
        try:
            yield temporary
            seal(temporary)
            recover(path)
            if path.exists():
                path.rename(older)
            temporary.rename(path)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
    flush_folder(path.parent)
    shutil.rmtree(older, ignore_errors=True)


def recover(path: Path) -> None:
    """Undo half a replacement: the older folder gets its name back, or goes if the newer one has it."""
    older = path.with_name(f"{path.name}.old")
    if older.exists():
        shutil.rmtree(older) if path.exists() else older.rename(path)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
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
def needing_room(path: Path, size: int | None = None) -> Iterator[None]:
    """Say of a full disk where it is full and, if that is known, how many bytes what is written there needs."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        free = shutil.disk_usage(path.parent).free
        needed = "" if size is None else f" {size:,} bytes are needed, and {free:,} are free."
        raise RegardError(
            f"The disk is full: {error.strerror}.{needed}",
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
    write_atomic(folder / MANIFEST, _canonical(files))


def verify(folder: Path, *, most: int | None = None, unread: Collection[str] = ()) -> None:
    """Raise `DamagedError` unless the folder holds exactly what its manifest says; name the differences.

    A file of more than `most` bytes is a fault as well. Of those in `unread` the size alone is compared.
    """
    manifest = folder / MANIFEST
    if not manifest.is_file() or manifest.is_symlink():
        raise DamagedError("The folder has no manifest.", where=str(manifest), fix="It was never finished.")
    files = _parse(manifest)
    present = dict(_present(folder))
    faults = []
    for name, facts in files.items():
        size = present.get(name)
        if size is None:
            faults.append(f"{name} is missing" + (": a link or pipe stands there" if name in present else ""))
        elif size != facts["bytes"]:
            faults.append(f"{name} has {size} bytes, not {facts['bytes']}")
        elif name in unread:
            continue
        elif most is not None and size > most:
            faults.append(f"{name} has {size} bytes, and no more than {most} are believed")
        elif sha256(folder / name) != facts["sha256"]:
            faults.append(f"{name} has other content (sha256 differs)")
    faults += [f"{_short(name)} is not in the manifest" for name in sorted(present.keys() - files.keys() - {MANIFEST})]
    if faults:
        more = f"; and {len(faults) - limits.TOLD} more" if len(faults) > limits.TOLD else ""
        raise DamagedError(
            "The folder is not what its manifest says: " + "; ".join(faults[: limits.TOLD]) + more + ".",
            where=str(folder),
            fix="Take a good copy: a damaged file is never used.",
        )


def _present(folder: Path) -> Iterator[tuple[str, int | None]]:
    """Everything in a folder but folders, with the size of what is a plain file; links are not followed."""
    waiting, count = [(folder, "")], 0
    while waiting:
        place, before = waiting.pop()
        try:
            with os.scandir(place) as found:
                entries = list(islice(found, limits.FILES - count + 1))
        except OSError as error:
            what = f"A folder in it cannot be read: {error.strerror}."
            raise DamagedError(what, where=str(folder), fix="Take a good copy.") from error
        count += len(entries)
        if count > limits.FILES:
            fix = "A model or checkpoint has a few: this is none."
            raise DamagedError(f"The folder holds more than {limits.FILES:,} files.", where=str(folder), fix=fix)
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                waiting.append((place / entry.name, f"{before}{entry.name}/"))
            else:
                is_plain = entry.is_file(follow_symlinks=False)
                yield before + entry.name, entry.stat(follow_symlinks=False).st_size if is_plain else None


def _short(name: str) -> str:
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


def _canonical(files: dict[str, dict[str, int | str]]) -> bytes:
    return (json.dumps({"files": files, "format": 1}, indent=1, sort_keys=True) + "\n").encode()


def _parse(manifest: Path) -> dict[str, dict[str, int | str]]:
    content = read_plain(manifest, limits.SETTINGS)
    fix, why = "Take a good copy: nothing here can be trusted.", ""
    try:
        files = parse_json(content)["files"]
        good = _canonical(files) == content  # any flipped bit, even in a space, shows here
        for name in [name for name, facts in files.items() if not _is_good(name, facts)]:
            good, why = False, f": it says of {_short(name)!r} what is said of no file in this folder"
    except (ValueError, KeyError, TypeError, AttributeError):
        good, files = False, {}
    if not good:
        raise DamagedError(f"The manifest is damaged{why}.", where=str(manifest), fix=fix)
    return files


def _is_good(name: str, facts: dict[str, Any]) -> bool:
    """Whether this is a file inside the folder, and what is said of it a size and a hash."""
    kinds = {"bytes": int, "sha256": str}
    is_inside = name != MANIFEST and name.isprintable() and all(map(_NAME.fullmatch, name.split("/")))
    return is_inside and {key: type(value) for key, value in facts.items()} == kinds
