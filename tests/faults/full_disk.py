"""R5: the disk is full once at each call of a save that needs space, and permanently from each `write` on.

The run ends with an error that names the path and the bytes needed. No earlier file is lost. A restart leaves no
temporary file and ends with the files of an undisturbed run.
"""

import re
from collections.abc import Mapping
from unittest import mock

from tests.faults.frozen import DONE, END, FAILED, SAVE, Frozen, Window, freeze_run, make_scratch_folder
from tests.faults.naive import NaiveCheckpoints
from tests.faults.syscalls import Call
from tests.faults.verdict import Verdict

SPACE_CALLS = {
    "mkdir",
    "openat",
    "ftruncate",
    "write",
    "renameat",
    "rename",
    "fsync",
}  # calls that can fail with ENOSPC
_BYTES = re.compile(r"[\d,]+ bytes")


def prove(quick: bool = False) -> Verdict:
    """At every call of save and rotate, and of the end of a run; or, quick, at some of them."""
    verdict = Verdict("R5", "full disks lost something, said nothing of use or left something behind")
    _strike(verdict, {SAVE: 4, END: 40} if quick else {SAVE: 1, END: 1})
    naive = Verdict("naive", "")
    with mock.patch("regard.training.trainer.Checkpoints", NaiveCheckpoints):
        _strike(naive, {SAVE: 12 if quick else 1})
    lost = [violation for violation in naive.violations if "it cannot be resumed" in violation]
    verdict.require("the naive saver was not detected", bool(lost))
    verdict.notes.append(f"with a naive saver {len(lost)} of {naive.faults} lose the run")
    return verdict


def _strike(verdict: Verdict, strides: Mapping[Window, int]) -> None:
    """Fill the disk at every n-th call of each window."""

    def experiment(run: Frozen, window: Window) -> None:
        calls = run.calls()
        if calls is None:
            return
        faults = [
            (call, end) for call in calls if _needs_space(call) for end in ("", "+") if not end or call.name == "write"
        ]
        for call, end in faults[:: -strides[window]]:
            result = run.strike(call.injection_options("error=ENOSPC", end))
            if result is None:
                return
            traced, message = result
            broken = run.find_violations() + _find_message_faults(run, window, traced.code, message)
            verdict.add_fault(f"{window.name}, {call}{end}", broken)

    with make_scratch_folder() as folder:
        freeze_run(folder, list(strides), experiment)


def _needs_space(call: Call) -> bool:
    return call.name in SPACE_CALLS and not (call.name == "openat" and "O_CREAT" not in call.rest)


def _find_message_faults(run: Frozen, window: Window, code: int, message: str) -> list[str]:
    """List what is missing in the error message."""
    if code != FAILED:
        return ["it continued without an error" if code == DONE else f"it ended with {code}: {message[-200:]}"]
    missing = [] if str(run.folder) in message else [f"no path in: {message}"]
    is_saving = f"step-{window.step:08}" in message  # only then the bytes needed are known
    return missing + ([f"no bytes in: {message}"] if is_saving and not _BYTES.search(message) else [])
