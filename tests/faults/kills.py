"""R1: SIGKILL at every file system call of save and rotate, and of all that a run writes at its end.

Whichever call the kill comes at, a whole checkpoint is there, and the run that goes on ends with the same files.
"""

from collections.abc import Callable
from signal import SIGKILL
from unittest import mock

from tests.faults.frozen import END, SAVE, Frozen, Window, frozen, room
from tests.faults.naive import NaiveCheckpoints
from tests.faults.syscalls import Call
from tests.faults.verdict import Verdict

CHANGING = {"mkdir", "openat", "write", "renameat", "rename", "unlinkat", "rmdir"}  # what is on the disk


def prove(quick: bool = False) -> Verdict:
    """All calls; or, quick, every third of those of save and rotate that change something."""
    verdict = Verdict("R1", "kills at a file system call left no whole checkpoint or another end")
    for window in (SAVE,) if quick else (SAVE, END):
        struck(verdict, window, (lambda call: _changes(call) and call.number % 3 == 1) if quick else lambda _: True)
    naive = Verdict("naive", "")
    with mock.patch("regard.train.trainer.Checkpoints", NaiveCheckpoints):
        struck(naive, SAVE, (lambda call: call.name == "renameat") if quick else lambda _: True)
    verdict.require("the naive saver was not found out", bool(naive.violations))
    verdict.notes.append(f"a naive saver fails at {len(naive.violations)} of {naive.faults}")
    return verdict


def struck(verdict: Verdict, window: Window, wanted: Callable[[Call], bool]) -> None:
    """Kill a child at every wanted call of the window."""

    def experiment(run: Frozen) -> None:
        calls = run.calls()
        if calls is None:
            return
        for call in filter(wanted, calls):
            found = run.strike(call.injecting("signal=KILL"))
            if found is None:
                return
            hit = found[0].code == -SIGKILL
            verdict.injected(f"{window.name}, {call}", run.broken() if hit else ["it was not hit"])
        verdict.notes.append(f"{window.name}: {len(calls)} calls, {run.states} different folders")

    with room() as folder:
        frozen(folder, window, experiment)


def _changes(call: Call) -> bool:
    return call.name in CHANGING and not (call.name == "openat" and "O_CREAT" not in call.rest)
