"""Rules about single characters: garbled, lost, control and invisible ones, and HTML codes."""

import re
from collections.abc import Callable
from functools import partial
from html.entities import html5

from regard.data.doctor.rules import Finding, Span, listed
from regard.data.example import Example

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_INVISIBLE = re.compile("[\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb]")
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")


_ENCODINGS = ("cp1252", "latin-1", "cp1250", "mac_roman")


def _letters(encoding: str, first: int, last: int) -> str:
    """What the bytes from first to last are in an encoding, as a set in a regular expression."""
    return "[" + re.escape(bytes(range(first, last + 1)).decode(encoding, "ignore")) + "]"


def _garbled() -> re.Pattern[str]:
    """Bytes of UTF-8 that were read in a one-byte encoding: the lead byte's letter, then letters of 0x80 to 0xBF.

    Only leads of characters that European and Cyrillic text has are looked for: with all of them, the `ß“` that ends
    a German quotation would look like a letter of N'Ko.
    """
    kinds = []
    for letters in (partial(_letters, encoding) for encoding in _ENCODINGS):
        rest, second = letters(0x80, 0xBF), letters(0xC4, 0xC5) + letters(0x80, 0xBF)
        kinds.append(letters(0xC2, 0xC3) + rest)  # U+0080 to U+00FF: ä, é, ß, and the no-break space
        kinds.append(f"(?<=[A-Za-z]){second}|{second}(?=[A-Za-z])")  # ř, ż, ő, inside words
        kinds.append(f"(?:{letters(0xCE, 0xD1)}{rest}){{2,}}")  # Greek and Cyrillic: never one letter alone
        kinds.append(letters(0xE2, 0xE2) + letters(0x80, 0x84) + rest)  # dashes, quotation marks, the euro
    return re.compile("|".join(dict.fromkeys(kinds)))


_GARBLED = _garbled()
_LEADS = (*range(0xC2, 0xC6), *range(0xCE, 0xD2), 0xE2)
_LEAD = re.compile(
    f"[{re.escape(''.join(bytes(_LEADS).decode(encoding) for encoding in _ENCODINGS))}]"
)  # most text has none


def mojibake(example: Example) -> Finding | None:
    """Find UTF-8 that was read as another encoding.

    >>> from regard.data.example import Where
    >>> mojibake(Example(Where("a", 1), "fÃ¼r alle")).source
    ((1, 3),)
    """
    target = example.target or ""
    if _LEAD.search(example.source) is None and (not target or _LEAD.search(target) is None):
        return None
    return _marked("mojibake", _GARBLED, example, lambda hits: f"garbled: {listed(hits)}")


def replacement(example: Example) -> Finding | None:
    """Find the sign for a character that could not be read."""
    if "\ufffd" not in example.source and (example.target is None or "\ufffd" not in example.target):
        return None
    return _marked("replacement-character", re.compile("\ufffd"), example, lambda hits: f"{len(hits)} lost")


def control(example: Example) -> Finding | None:
    """Find codes that are no text; tab and newline are text."""
    if example.source.isprintable() and (example.target is None or example.target.isprintable()):
        return None
    return _marked("control-character", _CONTROL, example, _codes)


def invisible(example: Example) -> Finding | None:
    """Find characters of no width."""
    if example.source.isprintable() and (example.target is None or example.target.isprintable()):
        return None
    return _marked("invisible-character", _INVISIBLE, example, _codes)


def entity(example: Example) -> Finding | None:
    """Find HTML codes that were never decoded."""
    if "&" not in example.source and (example.target is None or "&" not in example.target):
        return None
    found = _marked("html-entity", _ENTITY, example, listed)
    known = found and any(
        text[start + 1] == "#" or text[start + 1 : end] in html5
        for text, spans in ((example.source, found.source), (example.target or "", found.target))
        for start, end in spans
    )
    return found if known else None


def _marked(
    rule: str, pattern: re.Pattern[str], example: Example, reason: Callable[[list[str]], str]
) -> Finding | None:
    """The rule's finding if the pattern occurs on either side; all occurrences are marked."""
    target = example.target or ""
    if pattern.search(example.source) is None and pattern.search(target) is None:
        return None
    spans: list[tuple[Span, ...]] = [
        tuple(match.span() for match in pattern.finditer(text)) for text in (example.source, target)
    ]
    hits = [example.source[a:b] for a, b in spans[0]] + [target[a:b] for a, b in spans[1]]
    return Finding(rule, reason(hits), *spans)


def _codes(hits: list[str]) -> str:
    return listed([f"U+{ord(hit):04X}" for hit in hits])
