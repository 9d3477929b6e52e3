"""What a proof found: how many faults were injected, and every promise that one of them broke."""

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Verdict:
    """Counts faults and violations while a proof runs; its line is what `python -m tests.faults` prints."""

    name: str
    promise: str  # what N faults must not have done: "left the run without a good checkpoint"
    faults: int = 0
    violations: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add_fault(self, fault: str, broken: list[str]) -> None:
        """One more fault, and what it broke: nothing, if all is well."""
        self.faults += 1
        if broken:
            self.violations.append(f"{fault}: {'; '.join(broken)}")

    def require(self, what: str, holds: bool) -> None:
        """Something that must hold for the proof to count at all."""
        if not holds:
            self.violations.append(what)

    @property
    def line(self) -> str:
        """One line: `R1  0 of 312 ...`."""
        text = f"{self.name}  {len(self.violations)} of {self.faults:,} {self.promise}"
        return text + "".join(f"; {note}" for note in self.notes)


Proof = Callable[[bool], Verdict]  # given whether it must be quick
