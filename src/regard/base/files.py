"""Files that are whole or absent, and folders that can prove they are unchanged.

A crash at any instant leaves either the old file or the new one, never half of one: the bytes go to a
temporary name beside the target, reach the disk, and only then take the target's name. A folder is sealed
by `manifest.json`, written last: the name, size and sha256 of every file in it.
"""

import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from regard.base.errors import DamagedError, RegardError

MANIFEST = "manifest.json"


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


def verify(folder: Path) -> None:
    """Raise `DamagedError` unless the folder holds exactly what its manifest says; name every difference."""
    manifest = folder / MANIFEST
    if not manifest.is_file() or manifest.is_symlink():
        raise DamagedError("The folder has no manifest.", where=str(manifest), fix="It was never finished.")
    files = _parse(manifest)
    faults = []
    for name, facts in files.items():
        path = folder / name
        if path.is_symlink() or not path.is_file():
            faults.append(f"{name} is missing")
        elif path.stat().st_size != facts["bytes"]:
            faults.append(f"{name} has {path.stat().st_size} bytes, not {facts['bytes']}")
        elif sha256(path) != facts["sha256"]:
            faults.append(f"{name} has other content (sha256 differs)")
    inside = [path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir()]
    present = {path.relative_to(folder).as_posix() for path in inside}
    faults += [f"{name} is not in the manifest" for name in sorted(present - files.keys() - {MANIFEST})]
    if faults:
        raise DamagedError(
            "The folder is not what its manifest says: " + "; ".join(faults) + ".",
            where=str(folder),
            fix="Take a good copy: a damaged file is never used.",
        )


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
    content = manifest.read_bytes()
    try:
        files = json.loads(content)["files"]
        good = _canonical(files) == content  # any flipped bit, even in a space, shows here
        good = good and all(_inside(name) and {"bytes", "sha256"} == facts.keys() for name, facts in files.items())
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        good, files = False, {}
    if not good:
        raise DamagedError(
            "The manifest is damaged.",
            where=str(manifest),
            fix="Take a good copy: nothing here can be trusted.",
        )
    return files


def _inside(name: str) -> bool:
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts and name != MANIFEST
