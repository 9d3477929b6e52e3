"""An attack: a small function that spoils a good thing, the door that it is opened through, and what must be said."""

import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.hostile.child import Outcome, open_in_child
from tests.hostile.doors import Door, Place, enter, make_place, snapshot

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

    def register(spoil: Spoil) -> Spoil:
        name = getattr(spoil, "__name__", "").replace("_", "-")
        ATTACKS.append(Attack(f"{door}/{name}", door, says, spoil))
        return spoil

    return register


def try_attack(candidate: Attack, root: Path) -> tuple[Outcome, list[str]]:
    """Make it, open it, clean up: how it ended, and everything that is wrong with that."""
    place = make_place(root, candidate.door, candidate.name)
    try:
        path = candidate.spoil(place) or place.folder
        before = snapshot(place.outside)
        outcome = open_in_child(lambda: enter(candidate.door, path))
        violations = outcome.violations()
        what = outcome.message.replace(str(place.folder), "")  # the name of the attack is in it
        if outcome.ended == "refused" and not re.search(candidate.says, what):
            violations.append(f"says something else: {outcome.message!r}")
        if place.canary.exists():
            violations.append("EXECUTED the payload")
        if snapshot(place.outside) != before:
            violations.append("changed a file outside the folder")
        return outcome, violations
    finally:
        shutil.rmtree(place.folder.parent)
