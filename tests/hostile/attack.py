"""An attack: a function that damages a valid folder, how it is opened, and the expected message."""

import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.hostile.child import MAX_SECONDS, Outcome, open_in_child
from tests.hostile.doors import Door, Place, enter, make_place, snapshot

REPEATS = 2
Spoil = Callable[[Place], Path | None]  # returns the path to open, or None for the folder


@dataclass(frozen=True)
class Attack:
    """One attack."""

    name: str
    door: Door
    says: str  # a pattern that the message must match, so that the refusal has the right reason
    spoil: Spoil

    @property
    def what(self) -> str:
        """Its description in one line."""
        return (self.spoil.__doc__ or "").strip().rstrip(".")


ATTACKS: list[Attack] = []


def attack(door: Door, says: str) -> Callable[[Spoil], Spoil]:
    """Register a function as an attack."""

    def register(spoil: Spoil) -> Spoil:
        name = getattr(spoil, "__name__", "").replace("_", "-")
        ATTACKS.append(Attack(f"{door}/{name}", door, says, spoil))
        return spoil

    return register


def try_attack(candidate: Attack, root: Path) -> tuple[Outcome, list[str]]:
    """Prepare and open an attack, clean up, and return the outcome and its violations."""
    place = make_place(root, candidate.door, candidate.name)
    try:
        path = candidate.spoil(place) or place.folder
        before = snapshot(place.outside)
        outcome = open_in_child(lambda: enter(candidate.door, path))
        for _ in range(REPEATS):  # a busy machine adds to the CPU time of a child, and never takes from it
            if outcome.ended == "refused" and outcome.seconds > MAX_SECONDS:
                outcome = open_in_child(lambda: enter(candidate.door, path))
        violations = outcome.violations()
        what = outcome.message.replace(str(place.folder), "")  # it contains the name of the attack
        if outcome.ended == "refused" and not re.search(candidate.says, what):
            violations.append(f"has another message: {outcome.message!r}")
        if place.canary.exists():
            violations.append("EXECUTED the payload")
        if snapshot(place.outside) != before:
            violations.append("changed a file outside the folder")
        return outcome, violations
    finally:
        shutil.rmtree(place.folder.parent)
