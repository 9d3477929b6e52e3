"""A small finished run and the same run at rest, which cases copy and do things to."""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from regard.base.errors import RegardError
from regard.train.events import Event, Finished, Message, Spiked
from regard.train.fit import fit, resume
from tests.faults.frozen import hash_folder, make_smallest_run
from tests.train.runs import compute_fingerprints

Violations = list[str]


class World:
    """Each case gets a copy of the run at rest; what it may not break is asked for here."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.run = make_smallest_run(folder)
        fit(self.run, folder / "undisturbed")
        self.expected = compute_fingerprints(folder / "undisturbed")
        fit(self.run, folder / "rested", pause_at=8)
        self.corpus = folder / "corpus"
        shutil.copytree(self.corpus, folder / "corpus.kept")
        self.copy_folder = folder / "copy"

    def copy(self) -> Path:
        """The run at rest at update 8, with checkpoints 6 and 8; its corpus as it was."""
        for kept, copy in (("rested", self.copy_folder), ("corpus.kept", self.corpus)):
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(self.folder / kept, copy)
        return self.copy_folder

    def check_refused(self, words: str, action: Callable[[], object]) -> Violations:
        """It is refused with these words (each of them), and the folder is as it was."""
        before = hash_folder(self.copy_folder)
        try:
            action()
        except RegardError as error:
            missing = [f"{word!r} is not said: {error}" for word in words.split(" | ") if word not in str(error)]
            return missing + ([] if hash_folder(self.copy_folder) == before else ["the refusal changed the folder"])
        return ["it was not refused"]

    def check_resume_refused(self, words: str, **options: Any) -> Violations:
        """Resuming is refused with these words."""
        return self.check_refused(words, lambda: resume(self.copy_folder, **options))

    def check_same_end(self, says: str = "", **options: Any) -> Violations:
        """Resumed, it ends as the undisturbed run did, and says this on the way."""
        events: list[Event] = []
        resume(self.copy_folder, listeners=[events.append], **options)
        now = compute_fingerprints(self.copy_folder)
        names = sorted(self.expected.keys() | now.keys())
        differ = [f"{name} differs" for name in names if self.expected.get(name) != now.get(name)]
        is_said = any(isinstance(event, Message) and says in event.text for event in events)
        return differ if is_said or not says else [*differ, f"{says!r} is not said"]

    def run_with_spikes(self, changes: Mapping[str, Any]) -> tuple[list[Spiked], Finished]:
        """A new run in the copy's place: its spikes and its end."""
        self.copy()
        shutil.rmtree(self.copy_folder)
        events: list[Event] = []
        end = fit(make_smallest_run(self.folder, **changes), self.copy_folder, listeners=[events.append])
        return [event for event in events if isinstance(event, Spiked)], end
