"""A score, and what exactly was measured."""

from collections.abc import Sequence
from dataclasses import dataclass

from regard.base.errors import RegardError

References = Sequence[str] | Sequence[Sequence[str]]  # one for each text, or several of which the best counts


@dataclass(frozen=True)
class Score:
    """A number, in percent, and the signature without which nobody can compare it with another."""

    value: float
    signature: str

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.signature})"


def check_pairs(hypotheses: Sequence[str], references: References) -> None:
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


def reference_lists(references: References) -> list[tuple[str, ...]]:
    """All references of each text.

    >>> reference_lists(["one", ("two", "zwei")])
    [('one',), ('two', 'zwei')]
    """
    lists = [(reference,) if isinstance(reference, str) else tuple(reference) for reference in references]
    if () in lists:
        raise RegardError(f"Text {lists.index(()) + 1} has no reference.", fix="Give every text one at least.")
    return lists


def reference_streams(references: References) -> list[list[str | None]]:
    """References as sacreBLEU reads them: the first of every text, the second of every text (None: it has none), ...

    >>> reference_streams(["one", ("two", "zwei")])
    [['one', 'two'], [None, 'zwei']]
    """
    lists = reference_lists(references)
    max_references = max(len(texts) for texts in lists)
    return [[texts[i] if i < len(texts) else None for texts in lists] for i in range(max_references)]
