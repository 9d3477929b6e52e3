"""An attack: a small function that spoils a good thing, the door that it is opened through, and what must be said."""

import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.hostile.child import Outcome, opened
from tests.hostile.place import Door, Place, enter, made_place, snapshot

Spoil = Callable[[Place], Path | None]  # gives what is to be opened, where that is not the folder


@dataclass(frozen=True)
class Attack:
    """One of them."""

    name: str
    door: Door
    says: str  # a pattern that the refusal must match: it was refused for this reason, and not by luck
    spoil: Spoil

    @property
    def what(self) -> str:
        """What it does, in a line."""
        return (self.spoil.__doc__ or "").strip().rstrip(".")


ATTACKS: list[Attack] = []


def attack(door: Door, says: str) -> Callable[[Spoil], Spoil]:
    """Enter a function into the list."""

    def enlist(spoil: Spoil) -> Spoil:
        name = getattr(spoil, "__name__", "").replace("_", "-")
        ATTACKS.append(Attack(f"{door}/{name}", door, says, spoil))
        return spoil

    return enlist


def tried(one: Attack, root: Path) -> tuple[Outcome, list[str]]:
    """Make it, open it, clean up: how it ended, and everything that is wrong with that."""
    place = made_place(root, one.door, one.name)
    try:
        given = one.spoil(place) or place.folder
        before = snapshot(place.outside)
        outcome = opened(lambda: enter(one.door, given))
        found = outcome.violations()
        what = outcome.message.replace(str(place.folder), "")  # the name of the attack is in it
        if outcome.ended == "refused" and not re.search(one.says, what):
            found.append(f"says something else: {outcome.message!r}")
        if place.canary.exists():
            found.append("EXECUTED the payload")
        if snapshot(place.outside) != before:
            found.append("changed a file outside the folder")
        return outcome, found
    finally:
        shutil.rmtree(place.folder.parent)
