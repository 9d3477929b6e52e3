"""Copies of a run under a URL (`train.upload`), made in the background whenever a checkpoint is complete on disk.

URL/run.json                              the parts of the run, and where they are; written last
URL/checkpoints/step-00000500@1f2e3d4c5b6a/   a sealed folder: its files, then its manifest.json
URL/best@0a1b2c3d4e5f/
URL/files@5a6b7c8d9e0f/                   run.toml, metrics.jsonl and the other files of the run folder

A folder is named after the sha256 of its manifest, so a newer one never replaces files of an older one, and a killed
upload continues with the files that are missing. What was uploaded is read back and compared with the manifest.
`run.json` names complete folders only; those that it no longer names are removed after it was written. The shards are
not copied: they can be prepared from the corpus again.
"""

import hashlib
import json
import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from regard.base.errors import DamagedError, RegardError
from regard.base.files import MANIFEST, FileEntry, read_manifest, serialize_manifest, verify
from regard.base.parsing import parse_json
from regard.base.remote import REQUESTS, RemoteFolder
from regard.store.run_folder import RunFolder, parse_step
from regard.training.events import Event, Finished, Saved

INDEX, FILES = "run.json", "files"
_UNSEALED = ("python-data", "corrections")  # folders without a manifest that cannot be made again
_PART = re.compile(r"(checkpoints/)?\w[\w.@-]*", re.ASCII)  # never a path out of the run folder


class Uploader:
    """Listener that uploads a run in the background after each checkpoint, and again when the run ends.

    Raises:
        RegardError: If the URL has a later checkpoint than the folder: it may be the only copy of that run.
    """

    def __init__(self, url: str, folder: RunFolder, warn: Callable[[str], None]) -> None:
        self._remote, self._folder, self._warn = RemoteFolder(url), folder, warn
        self._executor = ThreadPoolExecutor(1, "upload")
        self._pending: Future[None] | None = None
        stored = _find_newest(name.rpartition("/")[2] for name in _read_index(self._remote))
        local = _find_newest(path.name for path in _list_sealed(folder))
        if stored > local:
            message = f"The URL has a checkpoint of step {stored:,}; this run is at step {max(local, 0):,}."
            hint = f"Continue that run (`regard import {url} --out FOLDER`), or choose another URL."
            raise RegardError(message, location=url, hint=hint)

    def __call__(self, event: Event) -> None:
        """Upload what a checkpoint or the end of the run has changed."""
        if not isinstance(event, Saved | Finished):
            return
        if isinstance(event, Finished) or self._pending is None or self._pending.done():
            self._wait()
            self._pending = self._executor.submit(upload_run, self._folder, self._remote)
        if isinstance(event, Finished):
            self._wait()

    def _wait(self) -> None:
        """Wait for the last upload, and warn if it failed."""
        pending, self._pending = self._pending, None
        try:
            if pending is not None:
                pending.result()
        except FileNotFoundError:  # a newer checkpoint or model has replaced it: the next upload has that one
            pass
        except Exception as error:  # of any file system; training goes on
            self._warn(f"The run could not be uploaded and is on this disk only: {error}")


def upload_run(folder: RunFolder, remote: RemoteFolder) -> None:
    """Upload what has changed since the last upload.

    Raises:
        FileNotFoundError: If the run replaces a folder at the same time; nothing is lost, upload it again.
        RegardError: If requests fail.
    """
    before, after = _read_index(remote), dict[str, str]()
    sealed = [(path, (path / MANIFEST).read_bytes()) for path in _list_sealed(folder)]
    files, content = _read_files(folder.path)  # last: metrics.jsonl reaches at least as far as each checkpoint
    for path, manifest in sealed:
        name = path.relative_to(folder.path).as_posix()
        after[name] = _place(name, manifest)
        if before.get(name) != after[name]:
            _upload_sealed(path, remote, after[name], manifest)
    manifest = serialize_manifest(files)
    after[FILES] = _place(FILES, manifest)
    if before.get(FILES) != after[FILES]:
        for name, data in content.items():
            remote.write(f"{after[FILES]}/{name}", data)
        remote.write(f"{after[FILES]}/{MANIFEST}", manifest)
    if after != before:
        remote.write(INDEX, (json.dumps({"format": 1, "folders": after}, indent=1, sort_keys=True) + "\n").encode())
    used = set(after.values())
    for parent in ("", "checkpoints/"):
        for name in remote.list_folders(parent):
            if "@" in name and parent + name not in used:
                remote.remove_folder(parent + name)


def _upload_sealed(path: Path, remote: RemoteFolder, place: str, manifest: bytes) -> None:
    entries = read_manifest(path / MANIFEST)
    with ThreadPoolExecutor(REQUESTS) as executor:
        places = [f"{place}/{name}" for name in entries]
        list(executor.map(remote.upload, [path / name for name in entries], places, entries.values()))
    remote.write(f"{place}/{MANIFEST}", manifest)


def download_run(url: str, folder: Path) -> None:
    """Download a run that was uploaded, into a new folder.

    Raises:
        DamagedError: If the URL has no complete run, or a file does not match its manifest.
        RegardError: If the folder exists.
    """
    if folder.exists():
        raise RegardError("The folder already exists.", location=str(folder), hint="Choose another name or remove it.")
    remote = RemoteFolder(url)
    folders = _read_index(remote)
    if not folders:
        hint = "Give the URL of train.upload, after the first checkpoint."
        raise DamagedError("There is no run.", location=f"{remote.url}/{INDEX}", hint=hint)
    temporary = folder.with_name(f"{folder.name}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    for name, place in folders.items():
        path = temporary if name == FILES else temporary / name
        path.mkdir(parents=True, exist_ok=True)
        (path / MANIFEST).write_bytes(remote.read(f"{place}/{MANIFEST}"))
        entries = read_manifest(path / MANIFEST)  # checks the names: they cannot leave the folder
        for entry in entries:
            (path / entry).parent.mkdir(parents=True, exist_ok=True)
        with ThreadPoolExecutor(REQUESTS) as executor:
            places = [f"{place}/{entry}" for entry in entries]
            list(executor.map(remote.download, places, [path / entry for entry in entries], entries.values()))
        if name == FILES:
            (path / MANIFEST).unlink()
        else:
            verify(path)
    temporary.rename(folder)


def _read_index(remote: RemoteFolder) -> dict[str, str]:
    """Return the places of the complete folders by name; empty if nothing was uploaded."""
    try:
        folders: Any = parse_json(remote.read(INDEX))["folders"]
        if wrong := [name for item in folders.items() for name in item if not _PART.fullmatch(name)]:
            raise ValueError(f"{wrong[0][:80]!r} is not a folder of a run")
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        hint = "Remove it to upload the run again."
        message = f"The list of uploaded folders is damaged: {error}."
        raise DamagedError(message, location=f"{remote.url}/{INDEX}", hint=hint) from error
    return dict(folders)


def _find_newest(names: Iterable[str]) -> int:
    """Return the last step of some checkpoints; -1 without any."""
    return max((step for name in names if (step := parse_step(name)) is not None), default=-1)


def _place(name: str, manifest: bytes) -> str:
    return f"{name}@{hashlib.sha256(manifest).hexdigest()[:12]}"


def _list_sealed(folder: RunFolder) -> Iterator[Path]:
    """Yield the complete folders of a run: checkpoints, models, tokenizers."""
    for path in (*sorted(folder.checkpoints.glob("*")), *sorted(folder.path.glob("*"))):
        is_final = path.parent == folder.path or parse_step(path.name) is not None
        if is_final and path.suffix not in (".tmp", ".old") and path.name[0] != "." and (path / MANIFEST).is_file():
            yield path


def _read_files(folder: Path) -> tuple[dict[str, FileEntry], dict[str, bytes]]:
    """Return the manifest entries and the content of the files that are in no sealed folder."""
    paths = [path for path in folder.iterdir() if path.is_file() and path.name[0] != "." and path.suffix != ".db"]
    paths += [path for name in _UNSEALED for path in (folder / name).rglob("*") if path.is_file()]
    content = {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(paths)}
    return {name: _describe(data) for name, data in content.items()}, content


def _describe(content: bytes) -> FileEntry:
    return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
