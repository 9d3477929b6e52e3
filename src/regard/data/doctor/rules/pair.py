"""Rules about what the two sides of a pair must share: text, numbers, addresses, brackets; and not everything."""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable

from regard.data.doctor.rules.rule import Finding, Span, shorten
from regard.data.example import Example

# Thousands may be grouped: 1,000,000 is one number; 25.5.2005 is three.
_NUMBER = re.compile(r"\d{1,3}(?:[.,' \u2019\u00a0\u202f]\d{3})+(?!\d)|\d+")
_LINK = re.compile(r"(?:https?://|www\.)[^\s<>\"'“”„\u2018\u2019)\]]+|[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+")
_ENUMERATOR = re.compile(r"(?:^|(?<=[.;:,] ))\W?\(?(?:[0-9]{1,2}|[A-Za-z]|[ivxIVX]{1,4})\)")
_BRACKET = re.compile("[()\\[\\]{}（）【】［］]")  # noqa: RUF001 - the wide ones of Chinese and Japanese
_WIDE_TO_ASCII = str.maketrans("（）【】［］", "()[][]")  # noqa: RUF001
_MAX_SPELLED_OUT = 12  # numbers up to this one are often written as words


def check_empty(example: Example) -> Finding | None:
    """Find a side without text."""
    empty_sides = [
        name
        for name, text in (("source", example.source), ("target", example.target))
        if text is not None and not text.strip()
    ]
    return Finding("empty", f"{' and '.join(empty_sides)} empty") if empty_sides else None


def check_copy(example: Example) -> Finding | None:
    """Find a target that is its source; names, numbers and other short lines may be."""
    target = example.target
    if target is None or target.strip().casefold() != example.source.strip().casefold():
        return None
    if len(target.split()) < 4 and len(target) < 30:
        return None
    return Finding("copy", "the target is the source")


def check_numbers(example: Example) -> Finding | None:
    """Find numbers without a counterpart.

    >>> from regard.data.example import Location
    >>> check_numbers(Example(Location("a", 1), "In 1999, 2,000 people", "2.000 Menschen im Jahr 1998")).reason
    '1999 against 1998'
    """
    if example.target is None:
        return None
    source_numbers, target_numbers = _NUMBER.findall(example.source), _NUMBER.findall(example.target)
    if source_numbers == target_numbers:
        return None
    source_counts, target_counts = (
        Counter(map(_extract_digits, source_numbers)),
        Counter(map(_extract_digits, target_numbers)),
    )
    source_only, target_only = source_counts - target_counts, target_counts - source_counts
    if not source_only and not target_only:
        return None
    if not (source_only and target_only) and all(
        len(digits) < 3 and int(digits) <= _MAX_SPELLED_OUT for digits in source_only | target_only
    ):
        return None  # "2" against "zwei": most likely written out
    return Finding(
        "numbers",
        f"{shorten(source_only) or 'none'} against {shorten(target_only) or 'none'}",
        _find_spans(_NUMBER, example.source, lambda text: _extract_digits(text) in source_only),
        _find_spans(_NUMBER, example.target, lambda text: _extract_digits(text) in target_only),
    )


def check_links(example: Example) -> Finding | None:
    """Find web and e-mail addresses without a counterpart."""
    if example.target is None or not (_may_have_link(example.source) or _may_have_link(example.target)):
        return None
    source_counts = Counter(map(_fold_link, _LINK.findall(example.source)))
    target_counts = Counter(map(_fold_link, _LINK.findall(example.target)))
    source_only, target_only = source_counts - target_counts, target_counts - source_counts
    if not source_only and not target_only:
        return None
    return Finding(
        "links",
        f"{shorten(source_only) or 'none'} against {shorten(target_only) or 'none'}",
        _find_spans(_LINK, example.source, lambda text: _fold_link(text) in source_only),
        _find_spans(_LINK, example.target, lambda text: _fold_link(text) in target_only),
    )


def check_brackets(example: Example) -> Finding | None:
    """Find different numbers of brackets; enumerators such as a) and (a) may differ."""
    if example.target is None:
        return None
    source_brackets, target_brackets = _BRACKET.findall(example.source), _BRACKET.findall(example.target)
    if source_brackets == target_brackets:
        return None
    source_counts, target_counts = _count_brackets(example.source), _count_brackets(example.target)
    if source_counts == target_counts:
        return None
    source_only, target_only = source_counts - target_counts, target_counts - source_counts
    return Finding(
        "brackets",
        f"{_format_counts(source_only)} against {_format_counts(target_only)}",
        _find_spans(_BRACKET, example.source, lambda sign: sign.translate(_WIDE_TO_ASCII) in source_only),
        _find_spans(_BRACKET, example.target, lambda sign: sign.translate(_WIDE_TO_ASCII) in target_only),
    )


def _extract_digits(number: str) -> str:
    """The digits alone, in ASCII and without leading zeros, so that 2,000 is 2.000 and 05 is 5."""
    digits = "".join(str(unicodedata.digit(character)) for character in number if character.isdigit())
    return digits.lstrip("0") or "0"


def _fold_link(link: str) -> str:
    return link.rstrip(".,;:!?…/").casefold()


def _may_have_link(text: str) -> bool:
    return "www." in text or "://" in text or "@" in text


def _count_brackets(text: str) -> Counter[str]:
    return Counter(bracket.translate(_WIDE_TO_ASCII) for bracket in _BRACKET.findall(_ENUMERATOR.sub("", text)))


def _format_counts(counts: Counter[str]) -> str:
    """Brackets without a counterpart: "(" or "3 x (".

    >>> _format_counts(Counter("((["))
    '2 x (, ['
    """
    return ", ".join(f"{count} x {bracket}" if count > 1 else bracket for bracket, count in counts.items()) or "none"


def _find_spans(pattern: re.Pattern[str], text: str, is_wanted: Callable[[str], bool]) -> tuple[Span, ...]:
    return tuple(match.span() for match in pattern.finditer(text) if is_wanted(match.group()))
