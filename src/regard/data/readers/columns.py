"""Choose the columns of a table by their content: text, labels, numbers, ids, addresses or language codes.

Positions say little: Tatoeba exports (id, text, id, text), manythings.org (text, text, attribution), others add scores,
language codes or links. Every column is classified from a sample of rows; an ambiguous table is an error.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise, zip_longest
from typing import Any, Literal

from regard.base.errors import RegardError

Kind = Literal["text", "labels", "one value", "numbers", "ids", "links", "attributions", "language codes", "no text"]
LANGUAGE_CODES = {  # by English name
    "arabic": "ar", "chinese": "zh", "czech": "cs", "danish": "da", "dutch": "nl", "english": "en", "finnish": "fi",
    "french": "fr", "german": "de", "greek": "el", "hebrew": "he", "hindi": "hi", "hungarian": "hu", "indonesian": "id",
    "italian": "it", "japanese": "ja", "korean": "ko", "norwegian": "no", "polish": "pl", "portuguese": "pt",
    "romanian": "ro", "russian": "ru", "spanish": "es", "swedish": "sv", "turkish": "tr", "ukrainian": "uk",
    "vietnamese": "vi",
}  # fmt: skip
_CODES = {  # ISO 639-3, as Tatoeba writes them
    "ara": "ar", "cmn": "zh", "zho": "zh", "ces": "cs", "dan": "da", "nld": "nl", "eng": "en", "fin": "fi", "fra": "fr",
    "deu": "de", "ell": "el", "heb": "he", "hin": "hi", "hun": "hu", "ind": "id", "ita": "it", "jpn": "ja", "kor": "ko",
    "nob": "no", "pol": "pl", "por": "pt", "ron": "ro", "rus": "ru", "spa": "es", "swe": "sv", "tur": "tr", "ukr": "uk",
    "vie": "vi", **{code: code for code in LANGUAGE_CODES.values()},
}  # fmt: skip
_PATTERNS: dict[Kind, re.Pattern[str]] = {
    "numbers": re.compile(r"[-+]?\d[\d.,:/% -]*(e[-+]?\d+)?"),  # also scores, dates and times
    "links": re.compile(r"(https?://|www\.)\S+"),
    "attributions": re.compile(r".*(\bCC[- ]?(BY|0)\b|©|\b(attribution|licen[cs]ed?)\b).*", re.IGNORECASE),
    "ids": re.compile(r"(?=\S*\d)[\w.:/#-]+"),
}
_MIN_SHARE = 0.9  # of the fields that must match a pattern
_MIN_ROWS = 20  # rows from which the number of distinct values says something
_MAX_LABEL = 40  # characters
_SAMPLE = 24  # characters of a field in an error
_CHOOSE = (
    "Choose columns by number or name: --columns SOURCE,TARGET for pairs (e.g. --columns 2,4), --columns TEXT for text "
    'without translations, --columns TEXT,label=LABEL for labeled text; in Python columns="2,4".'
)


def parse_columns(columns: str) -> dict[str, int | str]:
    """Read the columns that the user chose.

    >>> parse_columns("2,4"), parse_columns("review,label=3")
    ({'source': 2, 'target': 4}, {'source': 'review', 'label': 3})
    """
    names: dict[str, int | str] = {}
    for role, column in zip_longest(("source", "target", "label"), columns.split(",")):
        key, _, value = (column or "").strip().rpartition("=")
        if column is not None:
            names[key or role] = int(value) if value.isdecimal() else value
    if not names.keys() <= {"source", "target", "label"} or "source" not in names or "" in names.values():
        raise RegardError(f"'{columns}' does not name columns.", hint=_CHOOSE)
    return names


def choose_columns(rows: Sequence[Sequence[str]], path: str) -> dict[str, Any]:
    """Choose the columns of a table without known names, and whether its first row is a header.

    Raises:
        RegardError: The content is ambiguous; the error lists the columns.
    """
    width = len(rows[0])
    table = [[row[number] for row in rows if len(row) == width] for number in range(width)]
    # A name above numbers or links is a header.
    has_header = any(
        len(fields) > 2 and _match_pattern(fields[1:]) in ("numbers", "links") and _match_pattern(fields[:1]) == "text"
        for fields in table
    )
    table = [fields[has_header:] for fields in table]
    kinds = [judge_column(fields, is_first=number == 0) for number, fields in enumerate(table)]
    numbers = defaultdict[Kind, list[int]](list)
    for number, kind in enumerate(kinds, 1):
        numbers[kind].append(number)
    texts, labels = numbers["text"], numbers["labels"] or (numbers["one value"] if width == 2 else [])
    chosen: dict[str, Any] = {"header": True} if has_header else {}
    match texts, labels, width:
        case [source, target], _, _:
            languages = _read_languages([table[number - 1] for number in numbers["language codes"]])
            return chosen | languages | {"source": source, "target": target}
        case ([text], [label], _) | (_, [text, label], 2):
            return chosen | {"source": text, "label": label}
        case _, _, 1:
            return chosen
    columns = zip(range(1, width + 1), kinds, table, strict=True)
    descriptions = "; ".join(f"{number} {kind} ({fields[0][:_SAMPLE]!r})" for number, kind, fields in columns)
    message = f"{len(texts) or 'None'} of its columns hold{'s' if len(texts) == 1 else ''} text"
    raise RegardError(
        f"It is not clear which columns to read: {message}. Columns: {descriptions}.", location=path, hint=_CHOOSE
    )


def _read_languages(columns: Sequence[Sequence[str]]) -> dict[str, Any]:
    """Return the languages of a table of pairs whose two columns of codes name one language each."""
    languages = [{_CODES[field.strip()] for field in fields if field.strip()} for fields in columns]
    match [tuple(language) for language in languages]:
        case [(source,), (target,)] if source != target:
            return {"languages": (source, target)}
    return {}


def judge_column(fields: Sequence[str], *, is_first: bool = False) -> Kind:
    """Classify the content of a column.

    >>> judge_column(["7", "12"]), judge_column(["1", "2"], is_first=True), judge_column(["good", "bad"] * 10)
    ('labels', 'numbers', 'labels')
    >>> judge_column(["gut", "schlecht"]), judge_column(["https://a.org/1", "https://a.org/2"])
    ('text', 'links')
    """
    values = [value for field in fields if (value := field.strip())]
    if not values:
        return "no text"
    count, distinct = len(values), set(values)
    kind = _match_pattern(values)
    is_few = 10 * len(distinct) <= count and max(map(len, distinct)) <= _MAX_LABEL
    if kind == "numbers":
        return "labels" if is_few or _are_classes(values, is_first=is_first) else "numbers"
    if kind in ("links", "attributions"):
        return kind
    if distinct <= _CODES.keys() and len(distinct) <= 2 < count:
        return "language codes"
    if is_few:
        return "labels" if len(distinct) > 1 else "one value"
    return kind


def _are_classes(values: Sequence[str], *, is_first: bool) -> bool:
    """Whether numbers are class labels: they repeat. In a few rows, short numbers are labels unless they count up."""
    if not all(value.isdecimal() for value in values):
        return False
    if len(values) >= _MIN_ROWS:
        return 2 * len(set(values)) <= len(values)
    counts = len(values) > 1 and all(int(second) == int(first) + 1 for first, second in pairwise(values))
    return max(map(len, values)) <= 2 and not (is_first and counts)


def _match_pattern(fields: Sequence[str]) -> Kind:
    """The first kind whose pattern most fields match, otherwise text."""
    values = [value for field in fields if (value := field.strip())]
    for kind, pattern in _PATTERNS.items():
        if values and sum(pattern.fullmatch(value) is not None for value in values) >= _MIN_SHARE * len(values):
            return kind
    return "text"
