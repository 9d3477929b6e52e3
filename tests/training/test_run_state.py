"""The state on disk of a run: reading it changes nothing, and whatever it holds gets an answer."""

import copy
import json
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from regard.base.errors import DamagedError, RegardError
from regard.base.files import write_manifest
from regard.training.checkpoint.folder import Checkpoints
from regard.training.checkpoint.progress import Progress
from regard.training.options import FinishedError
from regard.training.run import fit, is_finished, resume
from tests.faults.frozen import hash_folder, make_scratch_folder
from tests.training.runs import compute_fingerprints, make_small_run, write_corpus

SHORT_RUN: dict[str, Any] = {
    "train.steps": 4, "train.save_every": 2, "train.average": 1, "validation.every_steps": 2,
    "validation.sentences": 0, "validation.samples": 0, "data.held_out": 0.2,
}  # fmt: skip


@pytest.fixture(scope="module")
def paused_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that is paused after three of its four steps; tests must not change it."""
    folder = tmp_path_factory.mktemp("paused")
    fit(make_small_run("causal_lm", write_corpus(folder / "corpus", 60), SHORT_RUN), folder / "run", pause_at=3)
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


@pytest.mark.parametrize("patience", [0, 1])
def test_run_killed_after_its_last_checkpoint_ends_when_resumed(patience: int, folder: Path) -> None:
    changes = {"train.steps": 9, "validation.patience": 1, "validation.metric": "accuracy"} if patience else {}
    end = resume(folder, changes=changes, force=True)
    assert end.reason == ("no improvement" if patience else "finished")
    expected = compute_fingerprints(folder)
    newest = folder / "checkpoints" / max(path.name for path in (folder / "checkpoints").iterdir())
    (folder / "finished.json").unlink()
    for leftover in (f"{newest.name}.old", "step-00000002.gone", "step-00000001"):  # replaced, removed, to be removed
        shutil.copytree(newest, newest.with_name(leftover))
    assert not is_finished(folder)
    again = resume(folder)
    assert (again.reason, again.step) == (end.reason, end.step)
    assert is_finished(folder)
    assert compute_fingerprints(folder) == expected
    with pytest.raises(FinishedError):
        resume(folder)


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


STRANGE_NAMES = (
    "step-1",
    "step-000000000009",  # leading zeros: another name of step 9
    "step-" + "\u0660" * 7 + "\u0669",  # digits of another script
    "step-" + "9" * 240,
    os.fsdecode(b"step-0000000\xff"),  # not UTF-8
    "step-\n0000009",
    "step-00000009.txt",
)


@pytest.mark.parametrize("name", STRANGE_NAMES, ids=ascii)
def test_a_checkpoint_of_a_strange_name_is_refused(name: str, folder: Path) -> None:
    shutil.copytree(folder / "checkpoints" / "step-00000003", folder / "checkpoints" / name)
    before = hash_folder(folder)
    with pytest.raises(RegardError, match="not a checkpoint name") as caught:
        resume(folder)
    assert "checkpoints" in (caught.value.location or "")
    assert str(caught.value).replace("\n", "").isprintable()
    assert hash_folder(folder) == before
    assert not is_finished(folder)


@pytest.mark.parametrize("name", ["step-00000004", "step-00000002.old", "step-00000004.tmp", "step-00000002.gone"])
def test_a_file_of_the_name_of_a_checkpoint_is_refused(name: str, folder: Path) -> None:
    (folder / "checkpoints" / name).write_text("mine")
    with pytest.raises(RegardError, match="This is not a folder") as caught:
        resume(folder)
    assert (caught.value.location or "").endswith(name)
    assert (folder / "checkpoints" / name).read_text() == "mine"


@pytest.mark.parametrize("name", ["checkpoints", "shards", "metrics.jsonl"])
def test_files_and_folders_are_not_confused(name: str, folder: Path) -> None:
    path = folder / name
    if path.is_dir():
        shutil.rmtree(path)
        path.write_text("mine")
    else:
        path.unlink()
        path.mkdir()
    with pytest.raises(RegardError, match=r"This is not a (regular file|folder)"):
        resume(folder)


def test_other_files_among_checkpoints_are_left_alone(folder: Path) -> None:
    names = ("notes.txt", "notes.tmp", "notes.old", "notes.gone")
    for name in names:
        (folder / "checkpoints" / name).write_text("mine")
    resume(folder)
    assert [(folder / "checkpoints" / name).read_text() for name in names] == ["mine"] * len(names)


def test_a_checkpoint_of_another_step_is_not_used(folder: Path) -> None:
    """A copy of step 2 that is named step 9 would stay the newest for ever."""
    shutil.copytree(folder / "checkpoints" / "step-00000002", folder / "checkpoints" / "step-00000009")
    assert Checkpoints(folder / "checkpoints", lambda _: None).load_newest_state() is not None
    with pytest.raises(DamagedError, match="contains the state of step 2"):
        Checkpoints(folder / "checkpoints", lambda _: None).load_state(9)
    assert resume(folder).step == 4


VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 3.5, 2**53, 2**63, -(2**63), 10**400, float("nan"), float("inf"), "7", "x", [], [1], ["x"],
    {}, {"a": 1}, {"a": "x"}, {"a": 10**400},
)  # fmt: skip


def iter_paths(table: dict[str, Any], prefix: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for key, value in table.items():
        yield (*prefix, key)
        if isinstance(value, dict):
            yield from iter_paths(value, (*prefix, key))


def test_any_value_in_the_progress_is_valid_or_refused(folder: Path) -> None:
    """Every value of the progress by types and sizes: a run resumes from what is accepted, or names the damage."""
    step = folder / "checkpoints" / "step-00000003"
    state = json.loads((step / "state.json").read_text())
    shutil.rmtree(folder / "checkpoints" / "step-00000002")
    pristine = folder.with_name("pristine")
    shutil.copytree(folder, pristine)
    accepted = []
    for path in iter_paths(state["progress"]):
        for value in VALUES:
            changed = copy.deepcopy(state)
            table = changed["progress"]
            for key in path[:-1]:
                table = table[key]
            table[path[-1]] = value
            try:
                Progress.from_state(changed, location="here")
            except DamagedError:
                continue
            if path[0] != "best_scores" and (value in (None, 2**53, {"a": 1}) or value != value):  # not harmless
                accepted.append((path, value, changed))
    assert 8 <= len(accepted) <= 16
    refusals = []
    for path, value, changed in accepted:
        shutil.rmtree(folder)
        shutil.copytree(pristine, folder)
        (step / "state.json").write_text(json.dumps(changed))
        write_manifest(step)
        try:
            resume(folder)
        except RegardError as error:
            refusals.append((path, value, error.location))
        except Exception as error:
            raise AssertionError(f"{path} = {value}: {error!r}") from error
    assert all(location for _, _, location in refusals), refusals
