"""Result of a proof: the number of injected faults, and every violated guarantee."""

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Verdict:
    """Counts faults and violations; `python -m tests.faults` prints its line."""

    name: str
    promise: str  # what the faults must not do: "left the run without a good checkpoint"
    faults: int = 0
    violations: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add_fault(self, fault: str, broken: list[str]) -> None:
        """Count a fault and record its violations."""
        self.faults += 1
        if broken:
            self.violations.append(f"{fault}: {'; '.join(broken)}")

    def require(self, message: str, holds: bool) -> None:
        """Record a violation if a condition of the proof itself does not hold."""
        if not holds:
            self.violations.append(message)

    @property
    def line(self) -> str:
        """One line: `R1  0 of 312 ...`."""
        text = f"{self.name}  {len(self.violations)} of {self.faults:,} {self.promise}"
        return text + "".join(f"; {note}" for note in self.notes)


Proof = Callable[[bool], Verdict]  # argument: quick
