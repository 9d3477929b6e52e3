"""Rules that compare the two sides of a pair: empty sides, copies, numbers, addresses and brackets."""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence

from regard.data.doctor.rules.rule import Finding, Span, shorten
from regard.data.example import Example

# Thousands may be grouped: 1,000,000 is one number; 25.5.2005 is three.
_NUMBER = re.compile(r"\d{1,3}(?:[.,' \u2019\u00a0\u202f]\d{3})+(?!\d)|\d+")
_LINK = re.compile(r"(?:https?://|www\.)[^\s<>\"'“”„\u2018\u2019)\]]+|[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+")
_ENUMERATOR = re.compile(r"(?:^|(?<=[.;:,] ))\W?\(?(?:[0-9]{1,2}|[A-Za-z]|[ivxIVX]{1,4})\)")
_BRACKET = re.compile("[()\\[\\]{}（）【】［］]")  # noqa: RUF001 - full-width brackets of Chinese and Japanese
_WIDE_TO_ASCII = str.maketrans("（）【】［］", "()[][]")  # noqa: RUF001
_MAX_SPELLED_OUT = 12  # numbers up to this one are often spelled out


def check_empty(example: Example) -> Finding | None:
    """Find an empty side."""
    empty_sides = [
        name
        for name, text in (("source", example.source), ("target", example.target))
        if text is not None and not text.strip()
    ]
    return Finding("empty", f"empty {' and '.join(empty_sides)}") if empty_sides else None


def check_copy(example: Example) -> Finding | None:
    """Find a target that equals its source except for case; short lines such as names and numbers may."""
    target = example.target
    if target is None or target.strip().casefold() != example.source.strip().casefold():
        return None
    if len(target.split()) < 4 and len(target) < 30:
        return None
    return Finding("copy", "the target equals the source")


def check_exact_copy(example: Example) -> Finding | None:
    """Find a copy as `check_copy` does, but only if the case is the same."""
    if example.target is None or example.target.strip() != example.source.strip():
        return None
    return check_copy(example)


def is_recasing(sources: Sequence[str], targets: Sequence[str]) -> bool:
    """Whether most pairs differ in case alone: then the case is what a model shall learn.

    >>> is_recasing(["in paris", "the dog"], ["In Paris", "The dog"])
    True
    """
    recased = sum(
        source != target and source.casefold() == target.casefold()
        for source, target in zip(sources, targets, strict=True)
    )
    return recased > len(sources) / 2


def check_numbers(example: Example) -> Finding | None:
    """Find numbers without a counterpart.

    >>> from regard.data.example import Location
    >>> check_numbers(Example(Location("a", 1), "In 1999, 2,000 people", "2.000 Menschen im Jahr 1998")).reason
    'only in the source: 1999; only in the target: 1998'
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
        return None  # "2" and "zwei": most likely spelled out
    return Finding(
        "numbers",
        format_difference(shorten(source_only), shorten(target_only)),
        find_spans(_NUMBER, example.source, lambda text: _extract_digits(text) in source_only),
        find_spans(_NUMBER, example.target, lambda text: _extract_digits(text) in target_only),
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
        format_difference(shorten(source_only), shorten(target_only)),
        find_spans(_LINK, example.source, lambda text: _fold_link(text) in source_only),
        find_spans(_LINK, example.target, lambda text: _fold_link(text) in target_only),
    )


def check_brackets(example: Example) -> Finding | None:
    """Find brackets without a counterpart; enumerators such as a) and (a) may differ."""
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
        format_difference(_format_counts(source_only), _format_counts(target_only)),
        find_spans(_BRACKET, example.source, lambda sign: sign.translate(_WIDE_TO_ASCII) in source_only),
        find_spans(_BRACKET, example.target, lambda sign: sign.translate(_WIDE_TO_ASCII) in target_only),
    )


def _extract_digits(number: str) -> str:
    """The digits in ASCII without separators and leading zeros: 2,000 equals 2.000, and 05 equals 5."""
    digits = "".join(str(unicodedata.digit(character)) for character in number if character.isdigit())
    return digits.lstrip("0") or "0"


def _fold_link(link: str) -> str:
    return link.rstrip(".,;:!?…/").casefold()


def _may_have_link(text: str) -> bool:
    return "www." in text or "://" in text or "@" in text


def _count_brackets(text: str) -> Counter[str]:
    return Counter(bracket.translate(_WIDE_TO_ASCII) for bracket in _BRACKET.findall(_ENUMERATOR.sub("", text)))


def format_difference(source_only: str, target_only: str) -> str:
    """Describe what occurs on one side only.

    >>> format_difference("1999", "")
    'only in the source: 1999'
    """
    sides = (("source", source_only), ("target", target_only))
    return "; ".join(f"only in the {name}: {items}" for name, items in sides if items)


def _format_counts(counts: Counter[str]) -> str:
    """Format brackets with their counts, e.g. "(" or "3 x (".

    >>> _format_counts(Counter("((["))
    '2 x (, ['
    """
    return ", ".join(f"{count} x {bracket}" if count > 1 else bracket for bracket, count in counts.items())


def find_spans(pattern: re.Pattern[str], text: str, is_match: Callable[[str], bool]) -> tuple[Span, ...]:
    """The spans of the matches that `is_match` accepts."""
    return tuple(match.span() for match in pattern.finditer(text) if is_match(match.group()))
