"""Rules about characters: mojibake, replacement, control and invisible characters, and HTML entities."""

import re
from collections.abc import Callable
from functools import partial
from html.entities import html5

from regard.base.formatting import pluralize
from regard.data.doctor.rules.rule import Finding, shorten
from regard.data.example import Example

_REPLACEMENT = re.compile("\ufffd")
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_INVISIBLE = re.compile("[\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb]")
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")


_ENCODINGS = ("cp1252", "latin-1", "cp1250", "mac_roman")


def _make_character_class(encoding: str, first_byte: int, last_byte: int) -> str:
    """A regular expression for one character that a byte of the range decodes to."""
    return "[" + re.escape(bytes(range(first_byte, last_byte + 1)).decode(encoding, "ignore")) + "]"


def _make_mojibake_pattern() -> re.Pattern[str]:
    """A pattern for UTF-8 that was decoded in a one-byte encoding: a lead byte, then bytes 0x80 to 0xBF.

    Only lead bytes of European and Cyrillic text are included: with all of them, the `ß“` that ends a German quotation
    would match as a letter of N'Ko.
    """
    patterns = []
    for byte_class in (partial(_make_character_class, encoding) for encoding in _ENCODINGS):
        continuation, latin_extended = byte_class(0x80, 0xBF), byte_class(0xC4, 0xC5) + byte_class(0x80, 0xBF)
        patterns.append(byte_class(0xC2, 0xC3) + continuation)  # U+0080 to U+00FF: ä, é, ß, and the no-break space
        patterns.append(f"(?<=[A-Za-z]){latin_extended}|{latin_extended}(?=[A-Za-z])")  # ř, ż, ő, inside words
        patterns.append(f"(?:{byte_class(0xCE, 0xD1)}{continuation}){{2,}}")  # Greek and Cyrillic: at least two letters
        patterns.append(
            byte_class(0xE2, 0xE2) + byte_class(0x80, 0x84) + continuation
        )  # dashes, quotation marks, the euro
    return re.compile("|".join(dict.fromkeys(patterns)))


_MOJIBAKE = _make_mojibake_pattern()
_LEAD_BYTES = (*range(0xC2, 0xC6), *range(0xCE, 0xD2), 0xE2)
_LEAD_CHARACTER = re.compile(
    f"[{re.escape(''.join(bytes(_LEAD_BYTES).decode(encoding) for encoding in _ENCODINGS))}]"
)  # most text has none


def check_mojibake(example: Example) -> Finding | None:
    """Find UTF-8 that was decoded in another encoding.

    >>> from regard.data.example import Location
    >>> check_mojibake(Example(Location("a", 1), "fÃ¼r alle")).source_spans
    ((1, 3),)
    """
    return _find_pattern(
        "mojibake", _MOJIBAKE, example, lambda hits: f"garbled: {shorten(hits)}", _LEAD_CHARACTER.search
    )


def check_replacement(example: Example) -> Finding | None:
    """Find the replacement character U+FFFD."""
    return _find_pattern(
        "replacement-character", _REPLACEMENT, example, lambda hits: pluralize(len(hits), "lost character")
    )


def check_control(example: Example) -> Finding | None:
    """Find control characters; tab and newline are text."""
    return _find_pattern("control-character", _CONTROL, example, _format_code_points, _is_unprintable)


def check_invisible(example: Example) -> Finding | None:
    """Find zero-width characters."""
    return _find_pattern("invisible-character", _INVISIBLE, example, _format_code_points, _is_unprintable)


def check_entity(example: Example) -> Finding | None:
    """Find HTML entities that were not decoded."""
    finding = _find_pattern("html-entity", _ENTITY, example, shorten, lambda text: "&" in text)
    is_known = finding and any(
        text[start + 1] == "#" or text[start + 1 : end] in html5
        for text, spans in ((example.source, finding.source_spans), (example.target or "", finding.target_spans))
        for start, end in spans
    )
    return finding if is_known else None


def _find_pattern(
    rule: str,
    pattern: re.Pattern[str],
    example: Example,
    format_reason: Callable[[list[str]], str],
    may_match: Callable[[str], object] = bool,
) -> Finding | None:
    """The finding with all matches on both sides; None if there are none. `may_match` is a fast test of a text."""
    texts = (example.source, example.target or "")
    if not any(map(may_match, texts)):
        return None
    matches = [list(pattern.finditer(text)) for text in texts]
    hits = [match.group() for side in matches for match in side]
    if not hits:
        return None
    return Finding(rule, format_reason(hits), *(tuple(match.span() for match in side) for side in matches))


def _is_unprintable(text: str) -> bool:
    return not text.isprintable()


def _format_code_points(hits: list[str]) -> str:
    return shorten([f"U+{ord(hit):04X}" for hit in hits])
