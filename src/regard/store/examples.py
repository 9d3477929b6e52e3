"""The validation examples that a run keeps as raw text (`validation.jsonl`)."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from regard.base import limits
from regard.base.errors import DamagedError

MAX_LINE_BYTES = 2 * limits.DOCUMENT  # bytes of a line


@dataclass(frozen=True)
class ValidationExample:
    """A validation example as raw text."""

    source: str
    target: str | None
    label: str | None = None
    languages: Sequence[str] = ()


def read_examples(path: Path, count: int | None = None) -> tuple[ValidationExample, ...]:
    """Read the first `count` examples of the file, or all; empty if the file does not exist.

    Raises:
        DamagedError: A line is not a valid example.
    """
    if not path.is_file():
        return ()
    try:
        with path.open("rb") as file:
            lines = islice(iter(partial(file.readline, MAX_LINE_BYTES + 1), b""), count)
            return tuple(_parse_example(json.loads(line.decode("utf-8", "surrogatepass"))) for line in lines)
    except (ValueError, TypeError, RecursionError) as error:
        hint = "Remove the file and resume: Regard rewrites it from the text."
        raise DamagedError(f"A validation example is damaged: {error}.", location=str(path), hint=hint) from error


def _parse_example(fields: list[Any]) -> ValidationExample:
    source, target, label, languages = fields
    if not (isinstance(source, str) and isinstance(target, str | None) and isinstance(languages, list)):
        raise TypeError("a field has the wrong type")
    return ValidationExample(source, target, label, languages)
