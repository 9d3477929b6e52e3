"""Errors that teach: what went wrong, where, and what to do about it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


class RegardError(Exception):
    """Everything that Regard raises on purpose.

    >>> print(RegardError("The file is empty.", where="train.en", fix="Give a file with text."))
    The file is empty.
      where: train.en
      fix:   Give a file with text.
    """

    def __init__(self, what: str, *, where: str | None = None, fix: str | None = None) -> None:
        super().__init__(what, where, fix)
        self.what = what
        self.where = where
        self.fix = fix

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self.args, self.__dict__)  # errors travel between processes as they are

    def __str__(self) -> str:
        lines = [self.what]
        if self.where is not None:
            lines.append(f"  where: {self.where}")
        if self.fix is not None:
            lines.append(f"  fix:   {self.fix}")
        return _escape_unprintable("\n".join(lines))


def _escape_unprintable(text: str) -> str:
    r"""What a terminal would obey, or nobody would see, written out: names in files may come from strangers.

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
    """One thing wrong in a document: its path, what it is, and what would mend it."""

    path: str
    what: str
    fix: str | None = None

    def __str__(self) -> str:
        hint = f" {self.fix}" if self.fix else ""
        return f"{self.path}: {self.what}{hint}"


class ConfigError(RegardError):
    """A configuration with faults: it names every one of them at once."""

    def __init__(self, faults: Sequence[Fault], *, where: str | None = None, omitted: int = 0) -> None:
        """`more` counts those that nobody wants to read."""
        self.faults = tuple(faults)
        total = len(self.faults) + omitted
        count = "1 fault" if total == 1 else f"{total:,} faults"
        lines = [f"The configuration has {count}:", *(f"  - {fault}" for fault in self.faults)]
        lines += [f"  - and {omitted:,} more."] if omitted else []
        super().__init__("\n".join(lines), where=where)


class ShapeError(RegardError):
    """A tensor, length or capacity that does not fit the model."""


class DamagedError(RegardError):
    """A file or folder that is not what its manifest says."""
