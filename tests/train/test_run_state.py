"""The state on disk of a run: reading it changes nothing."""

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from regard.train.checkpoint import Checkpoints
from regard.train.fit import fit, is_finished, resume
from tests.faults.frozen import hash_folder, make_scratch_folder
from tests.train.runs import make_small_run, write_corpus

SHORT_RUN: dict[str, Any] = {
    "train.updates": 4, "train.save_every": 2, "train.average": 1, "validation.every": 2,
    "validation.sentences": 0, "validation.samples": 0, "data.held_out": 0.2,
}  # fmt: skip


@pytest.fixture(scope="module")
def paused_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that is paused after three of its four updates; tests must not change it."""
    folder = tmp_path_factory.mktemp("paused")
    fit(make_small_run("continue", write_corpus(folder / "corpus", 60), SHORT_RUN), folder / "run", pause_at=3)
    return folder / "run"


@pytest.fixture
def folder(paused_run: Path) -> Iterator[Path]:
    """A copy of it."""
    with make_scratch_folder() as scratch:
        shutil.copytree(paused_run, scratch / "copy")
        yield scratch / "copy"


def test_asking_whether_a_run_is_finished_changes_nothing(folder: Path) -> None:
    resume(folder)
    assert is_finished(folder)
    newest = folder / "checkpoints" / "step-00000004"
    # Another process is replacing the newest checkpoint: step-4.tmp is about to take its name.
    shutil.copytree(newest, newest.with_name(f"{newest.name}.tmp"))
    newest.rename(newest.with_name(f"{newest.name}.old"))
    before = hash_folder(folder)
    assert not is_finished(folder)
    assert hash_folder(folder) == before
    shutil.rmtree(folder / "checkpoints")
    assert not is_finished(folder)
    assert not (folder / "checkpoints").exists()


def test_a_run_may_be_asked_while_it_saves(folder: Path) -> None:
    checkpoints = Checkpoints(folder / "checkpoints", lambda _: None)
    checkpoint = checkpoints.load(3)
    shutil.rmtree(checkpoints.path(2))  # so that there is no older one to fall back to
    faults: list[Exception] = []
    is_over = threading.Event()

    def ask() -> None:
        while not is_over.is_set():
            try:
                assert not is_finished(folder)
            except Exception as error:
                faults.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        for _ in range(20):
            checkpoints.save(3, checkpoint)
    finally:
        is_over.set()
        thread.join()
    assert faults == []
