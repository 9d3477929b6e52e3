"""Rules that compare the two sides of a pair: empty sides, copies, numbers, addresses, brackets and markup."""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence

from regard.data.doctor.rules.rule import Finding, shorten
from regard.data.example import Example

# Thousands may be grouped: 1,000,000 is one number; 25.5.2005 is three.
_NUMBER = re.compile(r"\d{1,3}(?:[.,' \u2019\u00a0\u202f]\d{3})+(?!\d)|\d+")
_LINK = re.compile(r"(?:https?://|www\.)[^\s<>\"'“”„\u2018\u2019)\]]+|[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+")
_ENUMERATOR = re.compile(r"(?:^|(?<=[.;:,] ))\W?\(?(?:[0-9]{1,2}|[A-Za-z]|[ivxIVX]{1,4})\)")
_BRACKET = re.compile("[()\\[\\]{}（）【】［］]")  # noqa: RUF001 - full-width brackets of Chinese and Japanese
_WIDE_TO_ASCII = str.maketrans("（）【】［］", "()[][]")  # noqa: RUF001
# Tags <b>, </b>, <br/>, <x id="1"/>; placeholders {0}, {name}, {{name}}, ${name}, %s, %d, %1$s, %(name)s, %.2f.
_MARKUP = re.compile(
    r"</?[A-Za-z][\w:.-]{0,40}(?:\s[^<>]{0,200})?/?>"
    r"|\$?\{{1,2}\s?[A-Za-z0-9_.]{0,40}\s?\}{1,2}"
    r"|%(?:\d{1,2}\$|\(\w{1,40}\))?(?:\.\d{1,2})?[sdif](?!\w)"
)
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
    """Whether most pairs differ only in case, because the task is to restore case.

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
    unmatched = _find_unmatched(_NUMBER, example.source, example.target, _extract_digits)
    if not any(unmatched):
        return None  # before the union of the counters, which is slow: most lines end here
    if not all(unmatched) and all(
        len(digits) < 3 and int(digits) <= _MAX_SPELLED_OUT for digits in unmatched[0] | unmatched[1]
    ):
        return None  # "2" and "zwei": most likely spelled out
    return _describe_unmatched("numbers", _NUMBER, example, _extract_digits, unmatched)


def check_links(example: Example) -> Finding | None:
    """Find web and e-mail addresses without a counterpart."""
    if not (_may_have_link(example.source) or _may_have_link(example.target or "")):
        return None
    unmatched = _find_unmatched(_LINK, example.source, example.target, _fold_link)
    return _describe_unmatched("links", _LINK, example, _fold_link, unmatched)


def check_brackets(example: Example) -> Finding | None:
    """Find brackets without a counterpart; enumerators such as a) and (a) may differ."""
    if example.target is None or _BRACKET.findall(example.source) == _BRACKET.findall(example.target):
        return None
    source, target = (_ENUMERATOR.sub("", text) for text in (example.source, example.target))
    unmatched = _find_unmatched(_BRACKET, source, target, _fold_bracket)
    return _describe_unmatched("brackets", _BRACKET, example, _fold_bracket, unmatched, _format_counts)


def check_tags(example: Example) -> Finding | None:
    """Find tags and placeholders without a counterpart on the other side.

    >>> from regard.data.example import Location
    >>> check_tags(Example(Location("a", 1), "Press <b>OK</b>, {0}!", "Drücken Sie OK, {0}!")).reason
    'only in the source: <b>, </b>'
    """
    if not (_may_have_markup(example.source) or _may_have_markup(example.target or "")):
        return None
    unmatched = _find_unmatched(_MARKUP, example.source, example.target, _fold_tag)
    return _describe_unmatched("tags", _MARKUP, example, _fold_tag, unmatched)


def _find_unmatched(
    pattern: re.Pattern[str], source: str, target: str | None, fold: Callable[[str], str]
) -> tuple[Counter[str], Counter[str]]:
    """Count the matches, in their folded form, that only the source and only the target has; none without a target."""
    matches = pattern.findall(source), pattern.findall(target or "")
    if target is None or matches[0] == matches[1]:
        return Counter(), Counter()
    source_counts, target_counts = (Counter(map(fold, side)) for side in matches)
    return source_counts - target_counts, target_counts - source_counts


def _describe_unmatched(
    rule: str,
    pattern: re.Pattern[str],
    example: Example,
    fold: Callable[[str], str],
    unmatched: tuple[Counter[str], Counter[str]],
    format_counts: Callable[[Counter[str]], str] = shorten,
) -> Finding | None:
    """The finding of a rule about items that only one side has (`_find_unmatched`); None if there are none."""
    if not any(unmatched):
        return None
    spans = [
        tuple(match.span() for match in pattern.finditer(text or "") if fold(match.group()) in counts)
        for text, counts in zip((example.source, example.target), unmatched, strict=True)
    ]
    sides = zip(("source", "target"), unmatched, strict=True)
    reason = "; ".join(f"only in the {name}: {format_counts(counts)}" for name, counts in sides if counts)
    return Finding(rule, reason, *spans)


def _extract_digits(number: str) -> str:
    """The digits in ASCII without separators and leading zeros: 2,000 equals 2.000, and 05 equals 5."""
    digits = "".join(str(unicodedata.digit(character)) for character in number if character.isdigit())
    return digits.lstrip("0") or "0"


def _fold_link(link: str) -> str:
    return link.rstrip(".,;:!?…/").casefold()


def _may_have_link(text: str) -> bool:
    return "www." in text or "://" in text or "@" in text


def _may_have_markup(text: str) -> bool:
    return "<" in text or "{" in text or "%" in text


def _fold_tag(tag: str) -> str:
    """A tag in lower case without its attributes, whose text may be translated; placeholders as they are.

    >>> _fold_tag('<A title="Home" />'), _fold_tag("<br/>"), _fold_tag("%1$s")
    ('<a>', '<br>', '%1$s')
    """
    if not tag.startswith("<"):
        return tag
    name = tag.strip("<>").rstrip("/").split(maxsplit=1)[0]
    return f"<{name.lower()}>"


def _fold_bracket(bracket: str) -> str:
    return bracket.translate(_WIDE_TO_ASCII)


def _format_counts(counts: Counter[str]) -> str:
    """Format brackets with their counts, e.g. "(" or "3 x (".

    >>> _format_counts(Counter("((["))
    '2 x (, ['
    """
    return ", ".join(f"{count} x {bracket}" if count > 1 else bracket for bracket, count in counts.items())
