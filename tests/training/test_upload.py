import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.local import LocalFileSystem  # type: ignore[import-untyped]

from regard.base.errors import DamagedError, RegardError
from regard.base.extras import import_optional
from regard.base.files import create_folder, verify
from regard.base.remote import RemoteFolder
from regard.store.run_folder import RunFolder
from regard.training.events import Event, Message, Saved
from regard.training.run import fit, resume
from regard.training.upload import Uploader, download_run, upload_run
from tests.training.runs import make_small_run, write_corpus

FSSPEC = import_optional("fsspec", "formats", "Opening a URL")
POINTS = 20  # at which an upload is killed


class Kill(BaseException):
    """As if the process had ended."""


class FragileFiles(LocalFileSystem):  # type: ignore[misc]
    """The local file system; a request can be the last one, and may then leave half a file behind."""

    protocol = "fragile"
    requests = 0
    last: int | None = None

    def _count(self, path: str, content: bytes = b"") -> None:
        FragileFiles.requests += 1
        if FragileFiles.last is not None and FragileFiles.requests > FragileFiles.last:
            if content:
                Path(self._strip_protocol(path)).write_bytes(content[: len(content) // 2])
            raise Kill

    def put_file(self, lpath: str, rpath: str, **kwargs: Any) -> None:
        """Copy a local file."""
        self._count(rpath, Path(lpath).read_bytes())
        super().put_file(lpath, rpath, **kwargs)

    def pipe_file(self, path: str, value: bytes, **kwargs: Any) -> None:
        """Write a file."""
        self._count(path, value)
        super().pipe_file(path, value, **kwargs)

    def mv(self, path1: str, path2: str, **kwargs: Any) -> None:
        """Rename a file."""
        self._count(path1)
        super().mv(path1, path2, **kwargs)

    def rm(self, path: str, **kwargs: Any) -> None:
        """Remove a folder."""
        self._count(path)
        super().rm(path, **kwargs)


FSSPEC.register_implementation("fragile", FragileFiles)


@pytest.fixture(autouse=True)
def without_kills(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(FragileFiles, "requests", 0)
    monkeypatch.setattr(FragileFiles, "last", None)
    monkeypatch.setattr("regard.base.remote.FIRST_DELAY", 0.001)
    return iter([None])


def write_state(folder: RunFolder, step: int) -> None:
    """Write what a run has at a step: a checkpoint, the best model, and lines of a journal."""
    folder.checkpoints.mkdir(parents=True, exist_ok=True)
    for path in folder.checkpoints.iterdir():
        shutil.rmtree(path)
    for path in (folder.checkpoints / f"step-{step:08}", folder.best):
        with create_folder(path, replace=True) as made:
            for name in ("model.safetensors", "optimizer.safetensors", "state.json"):
                (made / name).write_bytes(f"{path.name} {name} {step}\n".encode() * 50)
    folder.run.write_text("seed = 1\n")
    folder.metrics.write_text("".join(f"{number}\n" for number in range(step)))


def read_state(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_an_upload_killed_at_any_request_loses_nothing(tmp_path: Path) -> None:
    """After each kill the URL has the whole old state or the whole new one, and the next upload completes."""
    folder, url = RunFolder(tmp_path / "run"), f"fragile://{tmp_path / 'store'}"
    write_state(folder, 10)
    upload_run(folder, RemoteFolder(url))
    shutil.copytree(tmp_path / "store", tmp_path / "first")
    states = [read_state(folder.path)]
    write_state(folder, 20)
    states.append(read_state(folder.path))
    FragileFiles.requests = 0
    upload_run(folder, RemoteFolder(url))
    needed, seen = FragileFiles.requests, []
    for point in range(POINTS):
        shutil.rmtree(tmp_path / "store")
        shutil.copytree(tmp_path / "first", tmp_path / "store")
        FragileFiles.requests, FragileFiles.last = 0, point * needed // POINTS
        with pytest.raises(Kill):
            upload_run(folder, RemoteFolder(url))
        FragileFiles.last = None
        download_run(url, tmp_path / f"{point}")
        seen.append(states.index(read_state(tmp_path / f"{point}")))
        upload_run(folder, RemoteFolder(url))
        download_run(url, tmp_path / f"{point}-complete")
        assert read_state(tmp_path / f"{point}-complete") == states[1]
        index = json.loads((tmp_path / "store" / "run.json").read_bytes())
        folders = {path.parent for path in (tmp_path / "store").rglob("manifest.json")}
        assert folders == {tmp_path / "store" / place for place in index["folders"].values()}
    assert seen == sorted(seen)
    assert set(seen) == {0, 1}


def test_only_changed_folders_are_uploaded(tmp_path: Path) -> None:
    folder, remote = RunFolder(tmp_path / "run"), RemoteFolder(f"fragile://{tmp_path / 'store'}")
    write_state(folder, 10)
    upload_run(folder, remote)
    FragileFiles.requests = 0
    upload_run(folder, remote)
    assert FragileFiles.requests == 0


def test_a_damaged_copy_is_not_downloaded(tmp_path: Path) -> None:
    folder, url = RunFolder(tmp_path / "run"), f"fragile://{tmp_path / 'store'}"
    with pytest.raises(DamagedError, match="There is no run"):
        download_run(url, tmp_path / "out")
    write_state(folder, 10)
    upload_run(folder, RemoteFolder(url))
    (stored,) = (tmp_path / "store").glob("best@*/state.json")
    stored.write_bytes(stored.read_bytes()[::-1])
    with pytest.raises(DamagedError, match="sha256 differs"):
        download_run(url, tmp_path / "out")
    (tmp_path / "store" / "run.json").write_text('{"folders": {"../out": "best"}}')
    with pytest.raises(DamagedError, match="not a folder of a run"):
        download_run(url, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_failed_uploads_warn_and_a_later_run_is_protected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, url = RunFolder(tmp_path / "run"), f"fragile://{tmp_path / 'store'}"
    write_state(folder, 10)
    warnings: list[str] = []
    uploader = Uploader(url, folder, warnings.append)

    def fail(*_: object, **__: object) -> None:
        raise OSError("503 slow down")

    with monkeypatch.context() as patch:
        patch.setattr(FragileFiles, "put_file", fail)
        uploader(Saved(10, folder.checkpoints))
        uploader._wait()
    assert "503 slow down" in warnings[0]
    uploader(Saved(10, folder.checkpoints))
    uploader._wait()
    assert len(warnings) == 1
    with pytest.raises(RegardError, match="has a checkpoint of step 10; this run is at step 0"):
        Uploader(url, RunFolder(tmp_path / "new"), warnings.append)


def test_a_downloaded_run_resumes_exactly(tmp_path: Path) -> None:
    files = write_corpus(tmp_path / "corpus")
    changes: dict[str, Any] = {"train.steps": 6, "train.save_every": 2, "train.upload": f"fragile://{tmp_path}/store"}
    run = make_small_run("causal_lm", files, changes)
    events: list[Event] = []
    fit(run, tmp_path / "run", listeners=[events.append], pause_at=4)
    assert not [event for event in events if isinstance(event, Message) and event.kind == "warning"]
    download_run(changes["train.upload"], tmp_path / "copy")
    verify(tmp_path / "copy" / "checkpoints" / "step-00000004")
    resume(tmp_path / "run")
    (tmp_path / "store").rename(tmp_path / "finished")
    resume(tmp_path / "copy")
    for name in ("metrics.jsonl", "best/model.safetensors", "checkpoints/step-00000006/optimizer.safetensors"):
        assert (tmp_path / "copy" / name).read_bytes() == (tmp_path / "run" / name).read_bytes()
