"""A small finished run and the same run at rest, which cases copy and do things to."""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from regard.base.errors import RegardError
from regard.train.events import Event, Finished, Said, Spiked
from regard.train.fit import fit, resume
from tests.faults.frozen import smallest, state_of
from tests.train.runs import fingerprints

Broken = list[str]


class World:
    """Each case gets a copy of the run at rest; what it may not break is asked for here."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.run = smallest(folder)
        fit(self.run, folder / "undisturbed")
        self.wanted = fingerprints(folder / "undisturbed")
        fit(self.run, folder / "rested", pause_at=8)
        self.corpus = folder / "corpus"
        shutil.copytree(self.corpus, folder / "corpus.kept")
        self.copied = folder / "copy"

    def copy(self) -> Path:
        """The run at rest at update 8, with checkpoints 6 and 8; its corpus as it was."""
        for kept, copy in (("rested", self.copied), ("corpus.kept", self.corpus)):
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(self.folder / kept, copy)
        return self.copied

    def refused(self, words: str, act: Callable[[], object]) -> Broken:
        """It is refused with these words (each of them), and the folder is as it was."""
        before = state_of(self.copied)
        try:
            act()
        except RegardError as error:
            missing = [f"{word!r} is not said: {error}" for word in words.split(" | ") if word not in str(error)]
            return missing + ([] if state_of(self.copied) == before else ["the refusal changed the folder"])
        return ["it was not refused"]

    def resume_refused(self, words: str, **options: Any) -> Broken:
        """Resuming is refused with these words."""
        return self.refused(words, lambda: resume(self.copied, **options))

    def ends_alike(self, says: str = "", **options: Any) -> Broken:
        """Resumed, it ends as the undisturbed run did, and says this on the way."""
        heard: list[Event] = []
        resume(self.copied, listeners=[heard.append], **options)
        now = fingerprints(self.copied)
        names = sorted(self.wanted.keys() | now.keys())
        differ = [f"{name} differs" for name in names if self.wanted.get(name) != now.get(name)]
        is_said = any(isinstance(event, Said) and says in event.text for event in heard)
        return differ if is_said or not says else [*differ, f"{says!r} is not said"]

    def spikes(self, changes: Mapping[str, Any]) -> tuple[list[Spiked], Finished]:
        """A new run in the copy's place: its spikes and its end."""
        self.copy()
        shutil.rmtree(self.copied)
        heard: list[Event] = []
        end = fit(smallest(self.folder, **changes), self.copied, listeners=[heard.append])
        return [event for event in heard if isinstance(event, Spiked)], end
