"""A small finished run and the same run paused, which cases copy and modify."""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from regard.base.errors import RegardError
from regard.training.events import Event, Finished, Message, Spiked
from regard.training.run import fit, resume
from tests.faults.frozen import hash_folder, make_smallest_run
from tests.training.runs import compute_fingerprints

Violations = list[str]


class World:
    """Gives each case a copy of the paused run, and checks its outcome."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.run = make_smallest_run(folder)
        fit(self.run, folder / "undisturbed")
        self.expected = compute_fingerprints(folder / "undisturbed")
        fit(self.run, folder / "paused", pause_at=8)
        self.corpus = folder / "corpus"
        shutil.copytree(self.corpus, folder / "corpus.original")
        self.copy_folder = folder / "copy"

    def copy(self) -> Path:
        """Copy the run paused at step 8, with checkpoints 6 and 8, and restore its corpus."""
        for original, copy in (("paused", self.copy_folder), ("corpus.original", self.corpus)):
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(self.folder / original, copy)
        return self.copy_folder

    def check_refused(self, words: str, action: Callable[[], object]) -> Violations:
        """Check that an action is refused with each of these phrases, and that the folder is unchanged."""
        before = hash_folder(self.copy_folder)
        try:
            action()
        except RegardError as error:
            missing = [
                f"{word!r} is not in the message: {error}" for word in words.split(" | ") if word not in str(error)
            ]
            return missing + ([] if hash_folder(self.copy_folder) == before else ["the refusal changed the folder"])
        return ["it was not refused"]

    def check_resume_refused(self, words: str, **options: Any) -> Violations:
        """Check that resuming is refused with these phrases."""
        return self.check_refused(words, lambda: resume(self.copy_folder, **options))

    def check_same_end(self, says: str = "", **options: Any) -> Violations:
        """Check that the resumed run ends with the undisturbed files and reports this message."""
        events: list[Event] = []
        resume(self.copy_folder, listeners=[events.append], **options)
        now = compute_fingerprints(self.copy_folder)
        names = sorted(self.expected.keys() | now.keys())
        differ = [f"{name} differs" for name in names if self.expected.get(name) != now.get(name)]
        is_reported = any(isinstance(event, Message) and says in event.text for event in events)
        return differ if is_reported or not says else [*differ, f"{says!r} is not reported"]

    def run_with_spikes(self, changes: Mapping[str, Any]) -> tuple[list[Spiked], Finished]:
        """Start a new run in place of the copy; return its spikes and its end."""
        self.copy()
        shutil.rmtree(self.copy_folder)
        events: list[Event] = []
        end = fit(make_smallest_run(self.folder, **changes), self.copy_folder, listeners=[events.append])
        return [event for event in events if isinstance(event, Spiked)], end
