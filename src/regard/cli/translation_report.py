"""What `regard translate` says on standard error about translations that somebody should check."""

from dataclasses import replace
from typing import TYPE_CHECKING

import typer  # noqa: TID251

if TYPE_CHECKING:
    from regard.tasks.results import Translation

MAX_LINES = 20  # reported one by one; of the others, only the number


class TranslationReport:
    """Reports lines to check, and removes translations below a minimum quality.

    Args:
        minimum: The lowest accepted quality. None: poor translations are reported, but not removed.
    """

    def __init__(self, minimum: float | None = None) -> None:
        self._minimum = minimum
        self._lines = self._to_check = self._alarms = 0

    def add(self, translation: "Translation", location: str) -> None:
        """Report a translation."""
        from regard.text.familiarity import ALARMS  # imports pydantic

        reasons = list(translation.find_reasons(self._minimum))
        if translation.unsatisfied_terms:
            reasons.append(f"the translation lacks {', '.join(map(repr, translation.unsatisfied_terms))}")
        self._lines += 1
        self._to_check += bool(reasons)
        self._alarms += not ALARMS.isdisjoint(translation.warnings)
        if reasons and self._to_check <= MAX_LINES:
            typer.echo(f"{location}: {'; '.join(reasons)}", err=True)

    def reject(self, translation: "Translation") -> "Translation":
        """Return the translation without its text if the quality is below the minimum."""
        is_rejected = self._minimum is not None and translation.is_below(self._minimum)
        return replace(translation, text="") if is_rejected else translation

    def finish(self) -> None:
        """Report the number of lines that were not reported, and whether this is the wrong model for the input."""
        if self._to_check > MAX_LINES:
            typer.echo(f"{self._to_check - MAX_LINES:,} more of {self._lines:,} lines should be checked.", err=True)
        if not self._alarms:
            return
        from regard.tasks.translation.quality import is_foreign  # imports pydantic

        if is_foreign(self._alarms, self._lines):
            message = f"{self._alarms:,} of {self._lines:,} lines are unlike the training data"
            typer.echo(f"{message}: this may be the wrong model, or another language.", err=True)
