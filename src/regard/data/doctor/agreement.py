"""Rules about what the two sides of a pair must share: text, numbers, addresses, brackets; and not everything."""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable

from regard.data.doctor.rules import Finding, Span, listed
from regard.data.example import Example

# Thousands may be grouped: 1,000,000 is one number; 25.5.2005 is three.
_NUMBER = re.compile(r"\d{1,3}(?:[.,' \u2019\u00a0\u202f]\d{3})+(?!\d)|\d+")
_LINK = re.compile(r"(?:https?://|www\.)[^\s<>\"'“”„\u2018\u2019)\]]+|[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+")
_ENUMERATOR = re.compile(r"(?:^|(?<=[.;:,] ))\W?\(?(?:[0-9]{1,2}|[A-Za-z]|[ivxIVX]{1,4})\)")
_BRACKET = re.compile("[()\\[\\]{}（）【】［］]")  # noqa: RUF001 - the wide ones of Chinese and Japanese
_WIDE = str.maketrans("（）【】［］", "()[][]")  # noqa: RUF001
_SMALL = 12  # numbers up to this one are often written as words


def empty(example: Example) -> Finding | None:
    """Find a side without text."""
    sides = [
        name
        for name, text in (("source", example.source), ("target", example.target))
        if text is not None and not text.strip()
    ]
    return Finding("empty", f"{' and '.join(sides)} empty") if sides else None


def copy(example: Example) -> Finding | None:
    """Find a target that is its source; names, numbers and other short lines may be."""
    target = example.target
    if target is None or target.strip().casefold() != example.source.strip().casefold():
        return None
    if len(target.split()) < 4 and len(target) < 30:
        return None
    return Finding("copy", "the target is the source")


def numbers(example: Example) -> Finding | None:
    """Find numbers without a counterpart.

    >>> from regard.data.example import Where
    >>> numbers(Example(Where("a", 1), "In 1999, 2,000 people", "2.000 Menschen im Jahr 1998")).reason
    '1999 against 1998'
    """
    if example.target is None:
        return None
    ours, theirs = _NUMBER.findall(example.source), _NUMBER.findall(example.target)
    if ours == theirs:
        return None
    source, target = Counter(map(_digits, ours)), Counter(map(_digits, theirs))
    lonely, alone = source - target, target - source
    if not lonely and not alone:
        return None
    if not (lonely and alone) and all(len(digits) < 3 and int(digits) <= _SMALL for digits in lonely | alone):
        return None  # "2" against "zwei": most likely written out
    return Finding(
        "numbers",
        f"{listed(lonely) or 'none'} against {listed(alone) or 'none'}",
        _spans(_NUMBER, example.source, lambda text: _digits(text) in lonely),
        _spans(_NUMBER, example.target, lambda text: _digits(text) in alone),
    )


def links(example: Example) -> Finding | None:
    """Find web and e-mail addresses without a counterpart."""
    if example.target is None or not (_maybe_link(example.source) or _maybe_link(example.target)):
        return None
    source = Counter(map(_address, _LINK.findall(example.source)))
    target = Counter(map(_address, _LINK.findall(example.target)))
    lonely, alone = source - target, target - source
    if not lonely and not alone:
        return None
    return Finding(
        "links",
        f"{listed(lonely) or 'none'} against {listed(alone) or 'none'}",
        _spans(_LINK, example.source, lambda text: _address(text) in lonely),
        _spans(_LINK, example.target, lambda text: _address(text) in alone),
    )


def brackets(example: Example) -> Finding | None:
    """Find different numbers of brackets; enumerators such as a) and (a) may differ."""
    if example.target is None:
        return None
    ours, theirs = _BRACKET.findall(example.source), _BRACKET.findall(example.target)
    if ours == theirs:
        return None
    source, target = _brackets(example.source), _brackets(example.target)
    if source == target:
        return None
    lonely, alone = source - target, target - source
    return Finding(
        "brackets",
        f"{_counted(lonely)} against {_counted(alone)}",
        _spans(_BRACKET, example.source, lambda sign: sign.translate(_WIDE) in lonely),
        _spans(_BRACKET, example.target, lambda sign: sign.translate(_WIDE) in alone),
    )


def _digits(number: str) -> str:
    """The digits alone, in ASCII and without leading zeros, so that 2,000 is 2.000 and 05 is 5."""
    digits = "".join(str(unicodedata.digit(sign)) for sign in number if sign.isdigit())
    return digits.lstrip("0") or "0"


def _address(link: str) -> str:
    return link.rstrip(".,;:!?…/").casefold()


def _maybe_link(text: str) -> bool:
    return "www." in text or "://" in text or "@" in text


def _brackets(text: str) -> Counter[str]:
    return Counter(sign.translate(_WIDE) for sign in _BRACKET.findall(_ENUMERATOR.sub("", text)))


def _counted(signs: Counter[str]) -> str:
    """Brackets without a counterpart: "(" or "3 x (".

    >>> _counted(Counter("((["))
    '2 x (, ['
    """
    return ", ".join(f"{count} x {sign}" if count > 1 else sign for sign, count in signs.items()) or "none"


def _spans(pattern: re.Pattern[str], text: str, wanted: Callable[[str], bool]) -> tuple[Span, ...]:
    return tuple(match.span() for match in pattern.finditer(text) if wanted(match.group()))
