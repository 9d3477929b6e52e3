"""Errors with a message, a location and a hint."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


class RegardError(Exception):
    """Base class of every error that Regard raises on purpose.

    >>> print(RegardError("The file is empty.", location="train.en", hint="Pass a file with text."))
    The file is empty.
      where: train.en
      fix:   Pass a file with text.
    """

    exit_code = 1
    """Exit code of a command that ends with this error."""

    def __init__(self, message: str, *, location: str | None = None, hint: str | None = None) -> None:
        super().__init__(message, location, hint)
        self.message = message
        self.location = location
        self.hint = hint

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self.args, self.__dict__)  # keeps every attribute when a worker process raises

    def __str__(self) -> str:
        lines = [self.message]
        if self.location is not None:
            lines.append(f"  where: {self.location}")
        if self.hint is not None:
            lines.append(f"  fix:   {self.hint}")
        return _escape_unprintable("\n".join(lines))


class RegardWarning(UserWarning):
    """A warning that does not stop the command."""


class RetryError(RegardError):
    """An error that may be transient: a launcher may restart the ranks of a run."""


class RanksFailedError(RegardError):
    """Ranks failed again and again without a new checkpoint, or a host is missing; on other hosts the run may go on."""

    exit_code = 77


def _escape_unprintable(text: str) -> str:
    r"""Escape control characters and other unprintable ones: file names may come from an untrusted source.

    >>> print(_escape_unprintable("\x1b[2Jgood\nmodel"))
    \x1b[2Jgood
    model
    """
    if text.replace("\n", "").isprintable():
        return text
    return "".join(
        character if character == "\n" or character.isprintable() else repr(character)[1:-1] for character in text
    )


def _restore(error_type: type[RegardError], arguments: tuple[Any, ...], state: dict[str, Any]) -> RegardError:
    error = error_type.__new__(error_type, *arguments)
    error.__dict__.update(state)
    return error


@dataclass(frozen=True)
class Fault:
    """One error in a settings file: the key, the problem, and how to fix it."""

    path: str
    message: str
    hint: str | None = None

    def __str__(self) -> str:
        hint = f" {self.hint}" if self.hint else ""
        return f"{self.path}: {self.message}{hint}"


class ConfigError(RegardError):
    """A configuration is invalid; the message lists all errors."""

    def __init__(self, faults: Sequence[Fault], *, location: str | None = None, omitted: int = 0) -> None:
        """Create the error.

        Args:
            faults: The faults to list.
            location: The file that contains them.
            omitted: Number of faults that are counted but not listed.
        """
        self.faults = tuple(faults)
        total = len(self.faults) + omitted
        count = "1 fault" if total == 1 else f"{total:,} faults"
        lines = [f"The configuration has {count}:", *(f"  - {fault}" for fault in self.faults)]
        lines += [f"  - and {omitted:,} more."] if omitted else []
        super().__init__("\n".join(lines), location=location)


class ShapeError(RegardError):
    """A tensor, a length or a capacity does not match the model."""


class DamagedError(RegardError):
    """A file or folder does not match its manifest, or cannot be read."""
