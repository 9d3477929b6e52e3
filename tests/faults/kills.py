"""R1: SIGKILL at every file system call of save and rotate, and of everything that a run writes at its end.

At every call a complete checkpoint exists, and the resumed run ends with the same files.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from signal import SIGKILL
from unittest import mock

from tests.faults.frozen import END, SAVE, Frozen, Window, freeze_run, make_scratch_folder
from tests.faults.naive import NaiveCheckpoints, rename_before_sealing
from tests.faults.syscalls import Call
from tests.faults.verdict import Verdict

Selection = Callable[[list[Call]], Iterable[Call]]
CHANGE_CALLS = {"mkdir", "openat", "write", "renameat", "rename", "unlinkat", "rmdir"}  # they change the disk


def prove(quick: bool = False) -> Verdict:
    """All calls; or, quick, a sample of those that change something."""
    verdict = Verdict("R1", "kills at a file system call left no whole checkpoint or another end")
    strike_calls(verdict, {SAVE: _sample, END: _sample_end} if quick else {SAVE: _take_all, END: _take_all})
    early = Verdict("early", "")
    with mock.patch("regard.training.checkpoint.folder.create_folder", rename_before_sealing):
        strike_calls(early, {SAVE: partial(filter, _names_manifest if quick else _is_change)})
    verdict.require("renaming before sealing was not detected", bool(early.violations))
    naive = Verdict("naive", "")
    with mock.patch("regard.training.trainer.Checkpoints", NaiveCheckpoints):
        strike_calls(naive, {SAVE: partial(filter, _creates_tensors) if quick else _take_all})
    verdict.require("the naive saver was not detected", bool(naive.violations))
    verdict.notes.append(f"a naive saver fails at {len(naive.violations)} of {naive.faults}")
    verdict.notes.append(f"one that renames before it seals at {len(early.violations)} of {early.faults}")
    return verdict


def strike_calls(verdict: Verdict, selections: Mapping[Window, Selection]) -> None:
    """Kill a child at every selected call of each window."""

    def experiment(run: Frozen, window: Window) -> None:
        calls = run.calls()
        if calls is None:
            return
        for call in selections[window](calls):
            result = run.strike(call.injection_options("signal=KILL"))
            if result is None:
                return
            was_hit = result[0].code == -SIGKILL
            verdict.add_fault(f"{window.name}, {call}", run.find_violations() if was_hit else ["it was not hit"])
        verdict.notes.append(f"{window.name}: {len(calls)} calls, {run.states} different folders")

    with make_scratch_folder() as folder:
        freeze_run(folder, list(selections), experiment)


def _take_all(calls: list[Call]) -> list[Call]:
    return calls


def _sample(calls: list[Call]) -> list[Call]:
    """Return every rename, and every third of the other calls that change something."""
    return [call for call in calls if _is_change(call) and (_is_rename(call) or call.number % 3 == 1)]


def _sample_end(calls: list[Call]) -> list[Call]:
    """Return a sample from the call on that moves the last checkpoint away, before its final state takes its place."""
    start = max(number for number, call in enumerate(calls) if _is_rename(call) and '.old"' in call.rest)
    return _sample(calls[start:])


def _is_change(call: Call) -> bool:
    return call.name in CHANGE_CALLS and not (call.name == "openat" and "O_CREAT" not in call.rest)


def _is_rename(call: Call) -> bool:
    """Whether this is a rename: just before each of them a save is in another state."""
    return call.name.startswith("rename")


def _names_manifest(call: Call) -> bool:
    """Whether this is the rename that gives the manifest its name."""
    return _is_rename(call) and "manifest.json" in call.rest


def _creates_tensors(call: Call) -> bool:
    """Whether this call creates a file of tensors."""
    return call.name == "openat" and "O_CREAT" in call.rest and ".safetensors" in call.rest
