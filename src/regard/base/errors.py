"""Errors that say what went wrong, where, and what to do about it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


class RegardError(Exception):
    """Base class of every error that Regard raises on purpose.

    >>> print(RegardError("The file is empty.", location="train.en", hint="Give a file with text."))
    The file is empty.
      where: train.en
      fix:   Give a file with text.
    """

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


class RetryError(RegardError):
    """An error that need not come again: a launcher may start the ranks of a run once more."""


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
    """One fault in a settings file: the path of the key, what is wrong, and how to fix it."""

    path: str
    message: str
    hint: str | None = None

    def __str__(self) -> str:
        hint = f" {self.hint}" if self.hint else ""
        return f"{self.path}: {self.message}{hint}"


class ConfigError(RegardError):
    """A configuration has faults; the message lists all of them."""

    def __init__(self, faults: Sequence[Fault], *, location: str | None = None, omitted: int = 0) -> None:
        """Create the error.

        Args:
            faults: The faults to list.
            where: The file that has them.
            omitted: How many further faults the message only counts.
        """
        self.faults = tuple(faults)
        total = len(self.faults) + omitted
        count = "1 fault" if total == 1 else f"{total:,} faults"
        lines = [f"The configuration has {count}:", *(f"  - {fault}" for fault in self.faults)]
        lines += [f"  - and {omitted:,} more."] if omitted else []
        super().__init__("\n".join(lines), location=location)


class ShapeError(RegardError):
    """A tensor, a length or a capacity does not fit the model."""


class DamagedError(RegardError):
    """A file or folder does not match its manifest, or cannot be read."""
