"""A score, and what exactly was measured."""

from collections.abc import Sequence
from dataclasses import dataclass

from regard.base.errors import RegardError


@dataclass(frozen=True)
class Score:
    """A number from 0 to 100, and the signature without which nobody can compare it with another."""

    value: float
    signature: str

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.signature})"


def check_pairs(hypotheses: Sequence[str], references: Sequence[str]) -> None:
    """As many texts as references, and some: scores of misaligned texts would mean nothing."""
    if isinstance(hypotheses, str) or isinstance(references, str):
        raise RegardError("One text was given, where a list is expected.", fix="Put it into a list.")
    if len(hypotheses) != len(references):
        raise RegardError(
            f"{len(hypotheses)} texts cannot be compared with {len(references)} references.",
            fix="Give one reference for each text, in the same order.",
        )
    if not hypotheses:
        raise RegardError("There is nothing to measure.", fix="Give at least one text and its reference.")
