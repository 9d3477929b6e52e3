"""A score with its signature, and checks that hypotheses and references match."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from regard.base.errors import RegardError

References = Sequence[str] | Sequence[Sequence[str]]  # one per text, or several per text
MetricFunction = Callable[[Sequence[str], Sequence[str]], float]
"""Takes outputs and references (texts, or predicted and correct labels), returns a score."""


@dataclass(frozen=True)
class Score:
    """A value in percent, and the signature that says how it was computed."""

    value: float
    signature: str

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.signature})"


def check_is_list(texts: object) -> None:
    """Raise `RegardError` if a single text is given where a list is expected."""
    if isinstance(texts, str):
        raise RegardError("Expected a list of texts, got a single text.", hint="Put it into a list.")


def check_pairs(hypotheses: Sequence[str], references: References) -> None:
    """Raise `RegardError` unless there are as many texts as references, and at least one."""
    check_is_list(hypotheses)
    check_is_list(references)
    if len(hypotheses) != len(references):
        raise RegardError(
            f"The number of texts ({len(hypotheses)}) differs from the number of references ({len(references)}).",
            hint="Pass one reference per text, in the same order.",
        )
    if not hypotheses:
        raise RegardError("There are no texts to score.", hint="Pass at least one text and its reference.")


def reference_lists(references: References) -> list[tuple[str, ...]]:
    """Return the references of each text as tuples.

    >>> reference_lists(["one", ("two", "zwei")])
    [('one',), ('two', 'zwei')]
    """
    lists = [(reference,) if isinstance(reference, str) else tuple(reference) for reference in references]
    if () in lists:
        raise RegardError(f"Text {lists.index(()) + 1} has no reference.", hint="Pass at least one reference per text.")
    return lists


def reference_streams(references: References) -> list[list[str | None]]:
    """Return references as sacreBLEU expects them: the first of every text, the second of every text or None, ...

    >>> reference_streams(["one", ("two", "zwei")])
    [['one', 'two'], [None, 'zwei']]
    """
    lists = reference_lists(references)
    max_references = max(len(texts) for texts in lists)
    return [[texts[i] if i < len(texts) else None for texts in lists] for i in range(max_references)]
