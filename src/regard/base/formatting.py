"""Durations, counts, texts and dataclasses, formatted for display."""

import re
import shlex
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from math import log10
from os import PathLike, fspath
from typing import Any


def format_duration(seconds: float) -> str:
    """Format a duration in at most two units.

    >>> format_duration(42), format_duration(130), format_duration(3725), format_duration(200_000)
    ('42 s', '2 min 10 s', '1 h 02 min', '2 d 07 h')
    """
    total_seconds = round(seconds)
    if total_seconds < 60:
        return f"{total_seconds} s"
    if total_seconds < 3600:
        return f"{total_seconds // 60} min {total_seconds % 60:02} s"
    if total_seconds < 86400:
        return f"{total_seconds // 3600} h {total_seconds % 3600 // 60:02} min"
    return f"{total_seconds // 86400} d {total_seconds % 86400 // 3600:02} h"


def pluralize(count: int, singular: str, plural: str | None = None) -> str:
    """Format a count with its noun in singular or plural.

    >>> pluralize(1, "line"), pluralize(1200, "line"), pluralize(2, "batch", "batches")
    ('1 line', '1,200 lines', '2 batches')
    """
    return f"{count:,} {singular if count == 1 else plural or singular + 's'}"


def quote_path(path: str | PathLike[str]) -> str:
    """Return a path for a shell command, quoted if it has spaces or special characters.

    >>> quote_path("models/größe"), quote_path("my model"), quote_path("a$b")
    ('models/größe', '"my model"', "'a$b'")
    """
    text = fspath(path)
    if re.fullmatch(r"[\w./\\:@%+=,-]+", text):
        return text
    return shlex.quote(text) if set(text) & set('"$`!') else f'"{text}"'  # cmd.exe reads double quotes only


def round_digits(number: float, digits: int = 2) -> int:
    """Round a number to a few significant digits.

    >>> round_digits(7985.3), round_digits(123), round_digits(7)
    (8000, 120, 7)
    """
    if number < 1:
        return round(number)
    scale = 10 ** max(0, int(log10(number)) - digits + 1)
    return round(number / scale) * scale


def format_count(number: float) -> str:
    """Format a large number with two significant digits.

    >>> format_count(2605056), format_count(1115394), format_count(808064), format_count(950)
    ('2.6 million', '1.1 million', '810,000', '950')
    """
    if number >= 1e9:
        return f"{number / 1e9:.1f} billion"
    return f"{number / 1e6:.1f} million" if number >= 1e6 else f"{round_digits(number):,}"


def escape_control_characters(text: str) -> str:
    r"""Make line breaks and control characters visible, so that a text cannot move the cursor.

    >>> escape_control_characters("one\n\x1b[31mtwo")
    'one⏎\\x1b[31mtwo'
    """
    visible = (("⏎" if c == "\n" else c if c.isprintable() else c.encode("unicode_escape").decode()) for c in text)
    return "".join(visible)


def truncate(text: str, length: int) -> str:
    """Truncate a text to at most `length` characters, ending with "...".

    >>> truncate("one two three", 10)
    'one two...'
    """
    return text if len(text) <= length else f"{text[: length - 3]}..."


def join_lines(text: str) -> str:
    """Replace line breaks with spaces, so that a text stays on one output line."""
    return text.replace("\r", " ").replace("\n", " ")


class CompactRepr:
    """Gives dataclasses (`repr=False`) a short repr: rounded floats, no fields at their default or with `repr=False`.

    >>> from dataclasses import dataclass
    >>> from pathlib import PurePosixPath
    >>> @dataclass(frozen=True, repr=False)
    ... class Scores(CompactRepr):
    ...     folder: PurePosixPath
    ...     loss: float
    ...     is_best: bool = False
    >>> Scores(PurePosixPath("my-model"), 3.14159265)
    Scores(folder='my-model', loss=3.142)
    """

    def __repr__(self) -> str:
        shown = [field for field in fields(self) if field.repr]  # type: ignore[arg-type]
        values = {field.name: getattr(self, field.name) for field in shown if not _is_default(self, field)}
        return f"{type(self).__name__}({', '.join(f'{name}={_format(value)}' for name, value in values.items())})"


def _is_default(instance: object, field: "Field[Any]") -> bool:
    if field.default_factory is not MISSING:
        return bool(getattr(instance, field.name) == field.default_factory())
    return field.default is not MISSING and bool(getattr(instance, field.name) == field.default)


def _format(value: object) -> str:
    match value:
        case float():
            return f"{value:.4g}"
        case PathLike():
            return repr(fspath(value))
        case tuple():
            return f"({', '.join(map(_format, value))}{',' * (len(value) == 1)})"
        case Mapping():
            return f"{{{', '.join(f'{_format(key)}: {_format(item)}' for key, item in value.items())}}}"
    return repr(value)
